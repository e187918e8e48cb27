"""Order, fences and groups, compared with the simplest program that can tell them."""

from __future__ import annotations

import random
from collections import deque

import pytest
from compositions import act, gemm, ping_pong, proxied
from hypothesis import given
from hypothesis import strategies as st
from interleavings import DEADLOCK, OK, explore

from pipelink_rules.check.protocol.analyze import analyze_case
from pipelink_rules.check.protocol.async_groups import completions, in_flight
from pipelink_rules.check.protocol.event_graph import EventGraph, MemoryAccess
from pipelink_rules.check.protocol.liveness import order_of
from pipelink_rules.check.protocol.model import (
    SOME,
    Action,
    Composition,
    Kind,
    Named,
    Process,
    unroll,
)
from pipelink_rules.check.protocol.protocol_problems import NoProxyFence, StarvedWait
from pipelink_rules.check.protocol.vector_clocks import VectorClocks


def reaches(graph: EventGraph, start: int, goal: int, fenced: bool) -> bool:
    """Whether a path leads from one node to another, over a fence if asked."""
    after: dict[int, list[int]] = {}
    for node, edges in enumerate(graph.before):
        for earlier, _ in edges:
            after.setdefault(earlier, []).append(node)
    is_fence = [action is not None and action.kind == Kind.FENCE for action in graph.actions]
    todo = deque([(start, not fenced or is_fence[start])])
    seen = set(todo)
    while todo:
        node, passed = todo.popleft()
        if node == goal and passed:
            return True
        for later in after.get(node, ()):
            state = (later, passed or is_fence[later])
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return False


def unfenced_pairs(run: Composition) -> set[tuple[str, str]]:
    """Every generic access that an asynchronous one of the same stage follows without a fence."""
    graph = EventGraph(run)
    found = set()
    accesses: list[MemoryAccess] = [item for items in graph.accesses.values() for item in items]
    for first in accesses:
        for second in accesses:
            a, b = first.action, second.action
            if a.target != b.target or first.asynchronous or not second.asynchronous:
                continue
            stages = run.memories[a.target].stages
            needed = b.item >= a.item and (b.item - a.item) % stages == 0
            needed = needed and (second.writes if b.item > a.item else first.writes)
            if needed and not reaches(graph, first.node, second.node, True):
                found.add((a.origin.text, b.origin.text))
    return found


def test_fences_are_found_where_a_search_finds_them() -> None:
    seen = {True: 0, False: 0}
    for seed in range(150):
        composition = proxied(random.Random(f"proxied {seed}"))
        problems = analyze_case(composition)
        assert {type(problem) for problem in problems} <= {NoProxyFence}
        reported = {
            tuple(origin.text for origin in problem.origins if origin) for problem in problems
        }
        assert reported == unfenced_pairs(unroll(composition, 4)), seed
        seen[bool(reported)] += 1
    assert min(seen.values()) > 15


def test_clocks_are_reachability() -> None:
    for composition in (gemm(2, 3), ping_pong(), proxied(random.Random(3))):
        graph = EventGraph(unroll(composition, 3))
        clocks = VectorClocks(graph, order_of(graph).order)
        for node in range(0, len(graph.actions), 3):
            for process, base in enumerate(graph.base):
                for position in range(graph.lengths[process]):
                    known = clocks.rows[node][process] >= position
                    assert known is (reaches(graph, base + position, node, False))


def test_cycle_is_short_and_closed() -> None:
    graph = EventGraph(gemm(stages=1, trip=4, lag=1))
    cycle = order_of(graph).cycle
    assert sum(distance for _, _, distance in cycle) <= 0
    assert [edge[1] for edge in cycle] == [edge[0] for edge in cycle[1:] + cycle[:1]]
    waits = [graph.actions[node] for node, _, _ in cycle]
    assert sum(action is not None and action.kind == Kind.WAIT for action in waits) == 2


def turns(first: bool, second: bool) -> Composition:
    """Two processes that meet once per period, and before it if asked."""
    processes = []
    for name, early in (("a", first), ("b", second)):
        meet = [act(Kind.SIGNAL, "b", int(early), 32), act(Kind.MEET, "b", int(early))]
        before = [act(Kind.SIGNAL, "b", 0, 32), act(Kind.MEET, "b", 0)] if early else []
        processes.append(Process(name, tuple(meet), tuple(before)))
    return Composition({}, {}, {"b": Named(64, 1)}, tuple(processes))


def test_distances_may_be_negative() -> None:
    """An operation before the first period shifts a whole role by a period."""
    graph = EventGraph(turns(True, True))
    assert any(distance < 0 for edges in graph.before for _, distance in edges)
    assert len(order_of(graph).order) == len(graph.before)
    assert not analyze_case(turns(True, True)) and not analyze_case(unroll(turns(True, True), 3))
    assert explore(unroll(turns(True, True), 3)) == OK


def test_a_role_that_begins_early_hangs_at_the_end() -> None:
    assert [type(problem) for problem in analyze_case(unroll(turns(True, False), 3))] == [
        StarvedWait
    ]
    assert explore(unroll(turns(True, False), 3)) == DEADLOCK


@given(
    st.lists(
        st.one_of(
            st.just(act(Kind.MMA, "m")),
            st.just(act(Kind.STORE, "m")),
            st.builds(lambda n: act(Kind.AWAIT, "mma", 0, n), st.integers(0, 3)),
            st.builds(lambda n: act(Kind.AWAIT, "store", 0, n), st.integers(0, 3)),
        ),
        min_size=1,
        max_size=7,
    )
)
def test_groups_complete_where_counting_says(period: list[Action]) -> None:
    rounds = 9
    pending: dict[str, list[tuple[int, int]]] = {"mma": [], "store": []}
    over: dict[int, int] = {}
    for time in range(rounds * len(period)):
        action = period[time % len(period)]
        if action.kind == Kind.AWAIT:
            queue = pending[action.target]
            while len(queue) > action.amount:
                turn, place = queue.pop(0)
                if turn == 0:
                    over[place] = time
        else:
            pending[action.kind].append((time // len(period), time % len(period)))
    assert completions(period, finite=False) == over


@pytest.mark.parametrize(("depth", "allowed", "late"), [(0, 0, False), (1, 0, True), (1, 1, False)])
def test_accumulators_are_used_after_their_groups(depth: int, allowed: int, late: bool) -> None:
    period = [
        act(Kind.MMA, "m"),
        act(Kind.AWAIT, "mma", 0, depth),
        act(Kind.TOUCH, "acc", 0, allowed),
    ]
    touched, left = in_flight(period)
    assert bool(touched) is late and left[Kind.MMA] == depth and sum(left.values()) == depth


LOAD, LOADED = act(Kind.TENSOR_LOAD, "acc"), act(Kind.AWAIT, Kind.TENSOR_LOAD, 0, 0)
OUT, USE = act(Kind.TOUCH, "C", 0, SOME), act(Kind.TOUCH, "acc", 0, 0)


@pytest.mark.parametrize(
    ("period", "late"),
    [
        ([LOAD, OUT, LOADED], [1]),
        ([LOAD, LOADED, OUT], []),
        (
            [LOAD, LOADED, LOAD, OUT, LOADED, OUT],
            [],
        ),  # the second is loaded as the first is written
        ([LOAD, LOADED, LOAD, USE, LOADED], [3]),  # all of them are handed over
        ([LOAD, act(Kind.WRITE, "b"), LOADED], [1]),
        (
            [act(Kind.MMA, "m"), OUT, act(Kind.AWAIT, "mma", 0, 0)],
            [],
        ),  # not of the wgmma that may be pending
    ],
)
def test_what_is_written_was_loaded(period: list[Action], late: list[int]) -> None:
    touched, _ = in_flight(period)
    assert [place for place, _, _ in touched] == late


def test_a_copy_ends_where_its_barrier_is_waited_for() -> None:
    graph = EventGraph(gemm(2, 1))
    (copy,) = [a for items in graph.accesses.values() for a in items if a.action.kind == Kind.COPY]
    (end,) = copy.ends
    assert end == (1, 0)
