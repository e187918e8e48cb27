"""Data flows in topological order, and cycles are what cannot be ordered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelink_rules.program.roles import topological_order

NODE = st.tuples(st.just("n"), st.sampled_from("abcdef"))
EDGES = st.lists(st.tuples(NODE, NODE), max_size=10)


def reaches(edges: set[tuple[object, object]], start: object, goal: object) -> bool:
    """Whether a path of at least one edge leads there."""
    seen, front = set(), [b for a, b in edges if a == start]
    while front:
        node = front.pop()
        if node not in seen:
            seen.add(node)
            front += [b for a, b in edges if a == node]
    return goal in seen


@given(nodes=st.lists(NODE, unique=True), edges=EDGES)
def test_order_respects_every_edge_outside_cycles(
    nodes: list[tuple[str, str]], edges: list[tuple[tuple[str, str], tuple[str, str]]]
) -> None:
    order, stuck = topological_order(nodes, edges)
    inside = {(a, b) for a, b in edges if a in nodes and b in nodes}
    assert sorted(order) == sorted(nodes)
    cyclic = {node for node in nodes if reaches(inside, node, node)}
    behind = {node for node in nodes if any(reaches(inside, start, node) for start in cyclic)}
    assert set(stuck) == cyclic | behind
    for a, b in inside:
        if b not in stuck:
            assert order.index(a) < order.index(b)


@given(nodes=st.lists(NODE, unique=True), edges=EDGES, seed=st.randoms())
def test_order_does_not_depend_on_the_input_order(
    nodes: list[tuple[str, str]],
    edges: list[tuple[tuple[str, str], tuple[str, str]]],
    seed: object,
) -> None:
    first = topological_order(nodes, edges)
    seed.shuffle(nodes)  # type: ignore[attr-defined]
    seed.shuffle(edges)  # type: ignore[attr-defined]
    assert topological_order(nodes, edges) == first


def test_ties_go_by_name() -> None:
    names = [("c", "r"), ("a", "r"), ("b", "r")]
    assert topological_order(names, [(("c", "r"), ("a", "r"))])[0] == [
        ("b", "r"),
        ("c", "r"),
        ("a", "r"),
    ]
