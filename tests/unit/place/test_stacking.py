"""Layouts without the solver: as good as every order of stacking, and found in time."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.placement import PlacementProblem, SharedAllocation, StageVariable
from pipelink_rules.place import stacking
from pipelink_rules.place.greedy import canonical_order
from pipelink_rules.place.place import place
from pipelink_rules.place.rectangles import Rectangle, round_up
from pipelink_rules.place.stacking import Exhausted, Steps, lowest, stack, stackable
from pipelink_rules.place.verify import verify
from tests.unit.place.problems import gemm

SECONDS = 1  # of one placement, on an idle core
items_of = st.lists(
    st.tuples(st.integers(1, 60), st.sampled_from((8, 16, 32, 64))), min_size=1, max_size=6
).map(lambda raw: [Rectangle(f"i{n}", size, align, 1) for n, (size, align) in enumerate(raw)])


def orders(items: list[Rectangle], limit: int) -> list[dict[str, int]]:
    """Every stack within the limit, each allocation as low as the one below it allows."""
    found = []
    for order in permutations(items):
        offsets, top = {}, 0
        for item in order:
            offsets[item.name] = round_up(top, item.align)
            top = offsets[item.name] + item.bytes
        if top <= limit:
            found.append(offsets)
    return found


def apart(items: list[Rectangle], offsets: dict[str, int], limit: int) -> bool:
    ends = sorted((offsets[item.name], offsets[item.name] + item.bytes) for item in items)
    return (
        ends[-1][1] <= limit
        and all(low >= high for (_, high), (low, _) in pairwise(ends))
        and all(offsets[item.name] % item.align == 0 for item in items)
    )


@settings(max_examples=150)
@given(items_of, st.integers(1, 30).map(lambda n: 8 * n))
def test_a_stack_is_found_iff_some_order_fits(items: list[Rectangle], limit: int) -> None:
    if not stackable(items, limit):
        return
    found = stack(items, limit, {}, Steps())
    assert (found is not None) == bool(orders(items, limit))
    assert found is None or apart(items, found, limit)


def every_layout(items: list[Rectangle], limit: int) -> dict[str, int] | None:
    """The first layout in canonical order, by trying every start of every allocation."""
    ordered = sorted(items, key=canonical_order)

    def extend(taken: list[tuple[int, int]]) -> list[int] | None:
        if len(taken) == len(ordered):
            return []
        item = ordered[len(taken)]
        for start in range(0, limit - item.bytes + 1, item.align):
            end = start + item.bytes
            if all(end <= low or high <= start for low, high in taken):
                rest = extend([*taken, (start, end)])
                if rest is not None:
                    return [start, *rest]
        return None

    starts = extend([])
    return starts and {item.name: s for item, s in zip(ordered, starts, strict=True)}


@settings(max_examples=80)
@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.sampled_from((8, 16, 32))), min_size=1, max_size=5
    ).map(lambda raw: [Rectangle(f"i{n}", *parts, 1) for n, parts in enumerate(raw)]),
    st.integers(0, 3),
)
def test_the_lowest_layout_is_the_first_of_all(items: list[Rectangle], spare: int) -> None:
    limit = round_up(sum(item.bytes for item in items), 8) + 8 * spare
    if not stackable(items, limit):
        return
    known = stack(items, limit, {}, Steps())
    if known is None:
        assert every_layout(items, limit) is None
        return
    assert lowest(items, limit, known, Steps()) == (every_layout(items, limit), True)


def test_a_spent_budget_proves_nothing() -> None:
    items = [Rectangle(f"i{n}", 1000 + 40 * n, 1 << (3 + n % 8), 1) for n in range(14)]
    limit = round_up(sum(item.bytes for item in items), 1024)
    with pytest.raises(Exhausted):
        stack(items, limit, {}, Steps(3))
    whole = Steps(stacking.QUESTION + 5)
    part = whole.part()
    for _ in range(stacking.QUESTION):
        part.take()
    assert whole.left == 5
    with pytest.raises(Exhausted):
        part.take()


@st.composite
def odd_rings(draw: st.DrawFn) -> PlacementProblem:
    """Return 5 to 24 rings of odd sizes that nearly fill a CTA at their minimum."""
    count = draw(st.integers(5, 24))
    items, stages, share = [], [], 232_448 // count
    for n in range(count):
        name, minimum = f"r{n:02}.x", draw(st.integers(1, 2))
        size = draw(st.integers(share // 8, share // 2))
        align = draw(st.sampled_from((16, 128, 1024)))
        items.append(SharedAllocation(name, size, align, 1, name))
        maximum = minimum + draw(st.integers(0, 6))
        stages.append(StageVariable(name, minimum, maximum, draw(st.integers(0, 2))))
    return gemm(
        items=tuple(items),
        stages=tuple(stages),
        barriers=(),
        mbarriers_per_stage=tuple((stage.name, 2) for stage in stages),
    )


@settings(max_examples=25)
@given(odd_rings())
def test_odd_rings_are_placed_in_time(problem: PlacementProblem) -> None:
    start = time.process_time()
    try:
        placement = place(problem)
    except PipelinkError as refused:
        assert {finding.code for finding in refused.diagnostics} <= {"PL0101", "PL0102"}
        return
    assert time.process_time() - start < 2 * SECONDS
    assert verify(problem, placement) == []
    assert placement.proved == (not any("`stages`" in note for note in placement.notes))


@pytest.mark.parametrize("count", [14, 20])
def test_many_odd_rings_are_placed_in_a_second(count: int) -> None:
    items = tuple(
        SharedAllocation(f"r{n:02}", 4001 + 617 * n % 5003, (1024, 128, 16)[n % 3], 1, f"r{n:02}")
        for n in range(count)
    )
    problem = gemm(
        items=items,
        stages=tuple(StageVariable(item.name, 1, 8, n % 3) for n, item in enumerate(items)),
        barriers=(),
        mbarriers_per_stage=tuple((item.name, 2) for item in items),
    )
    start = time.process_time()
    placement = place(problem)
    assert time.process_time() - start < 2 * SECONDS
    assert verify(problem, placement) == []
    assert place(replace(problem, items=items[::-1])) == placement
