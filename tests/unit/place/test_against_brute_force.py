"""The solver against brute force on tiny problems, and the checker against all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.placement import (
    BarrierRequest,
    Placement,
    PlacementProblem,
    RoleRequest,
    SharedAllocation,
    StageVariable,
    entry_registers,
)
from pipelink_rules.model.target import KIB, TARGETS, Target
from pipelink_rules.place import warps
from pipelink_rules.place.greedy import layout
from pipelink_rules.place.place import place
from pipelink_rules.place.rectangles import Rectangle, bound
from pipelink_rules.place.solve import solve
from pipelink_rules.place.verify import verify
from tests.unit.place.oracle import best_launch, best_shared, boxes, fewest_moved, overlaps

TINY = Target(
    "tiny",
    shared_bytes_cta=64,
    shared_bytes_sm=228 * KIB,
    registers_sm=4 * 32 * 3 * 40,  # 12 warps enter with 40 registers
    registers_thread=56,
    warps_cta=12,
    setmaxnreg_maximum=56,
)


@pytest.fixture(autouse=True, scope="module")
def tiny_target() -> Iterator[None]:
    TARGETS[TINY.name] = TINY
    yield
    del TARGETS[TINY.name]


def problem_with(**parts: object) -> PlacementProblem:
    empty: dict[str, object] = {
        "items": (),
        "stages": (),
        "roles": (),
        "barriers": (),
        "mbarriers_per_stage": (),
        "lifetimes": ("work",),
    }
    return PlacementProblem(name="tiny", target="tiny", occupancy=1, **{**empty, **parts})  # type: ignore[arg-type]


@st.composite
def shared_problems(draw: st.DrawFn) -> PlacementProblem:
    phases = draw(st.integers(1, 3))
    masks = st.integers(1, (1 << phases) - 1)
    channels = draw(st.integers(0, 2))
    items = [
        SharedAllocation(
            f"c{n}",
            draw(st.integers(1, 16)),
            draw(st.sampled_from((1, 8, 16))),
            draw(masks),
            f"c{n}",
        )
        for n in range(channels)
    ]
    items += [
        SharedAllocation(
            f"i{n}", draw(st.integers(4, 40)), draw(st.sampled_from((4, 8, 16, 32))), draw(masks)
        )
        for n in range(draw(st.integers(0, 4)))
    ]
    stages = []
    for n in range(channels):
        minimum = draw(st.integers(1, 2))
        maximum = minimum + draw(st.integers(0, 2))
        stages.append(StageVariable(f"c{n}", minimum, maximum, draw(st.integers(0, 1))))
    return problem_with(
        lifetimes=tuple(f"p{n}" for n in range(phases)),
        items=tuple(items),
        stages=tuple(stages),
        mbarriers_per_stage=tuple((f"c{n}", 1) for n in range(channels) if draw(st.booleans())),
        mbarriers_fixed=draw(st.integers(0, 1)),
    )


@settings(max_examples=150)
@given(shared_problems())
def test_shared_memory_is_the_best_there_is(problem: PlacementProblem) -> None:
    expected = best_shared(problem, TINY.shared_limit(1))
    try:
        placement = place(problem)
    except PipelinkError as refused:
        assert expected is None
        assert {finding.code for finding in refused.diagnostics} <= {"PL0101", "PL0102"}
        return
    assert expected is not None
    assert (dict(placement.stages), dict(placement.offsets)) == expected
    assert placement.proved


@st.composite
def launches(draw: st.DrawFn) -> PlacementProblem:
    registers = {
        "minimum": st.sampled_from((16, 24, 32, 40)),
        "want": st.sampled_from((24, 40, 56)),
    }
    hungry = RoleRequest("hungry", 4, True, draw(st.sampled_from((24, 48, 56))), 56, 0)
    loose = [
        RoleRequest(
            f"loose{n}",
            draw(st.sampled_from((1, 1, 2, 3, 4))),
            False,
            draw(registers["minimum"]),
            draw(registers["want"]),
            0,
        )
        for n in range(draw(st.integers(1, 3)))
    ]
    aligned = [
        RoleRequest(f"aligned{n}", 4, True, draw(registers["minimum"]), draw(registers["want"]), 0)
        for n in range(draw(st.integers(0, 1 if sum(role.warps for role in loose) <= 4 else 0)))
    ]
    return problem_with(roles=(*loose, hungry, *aligned))


@settings(max_examples=60)
@given(launches())
def test_launch_is_the_best_there_is(problem: PlacementProblem) -> None:
    shape = warps.moving_shape(problem)
    assume(shape.warps <= TINY.warps_cta)
    plain = warps.plain_shape(problem)
    greedy = any(role.want > plain.entry for role in problem.roles if role.warpgroup)
    assume(greedy or not warps.admits(problem, plain))  # else setmaxnreg is not needed
    expected = best_launch(problem, shape.warps, shape.entry)
    found = solve(problem)
    if expected is None:
        assert isinstance(found, str) or found.threads != 32 * shape.warps or not found.setmaxnreg
        return
    assert isinstance(found, Placement)
    if not found.setmaxnreg:  # nothing was to be gained
        entry = found.entry_registers
        assert all(
            expected[1][expected[0][r.name] // 4] <= entry or r.want <= entry for r in problem.roles
        )
        return
    assert dict(found.warps) == expected[0]
    assert [group.registers for group in found.warpgroups] == expected[1]


@settings(max_examples=40)
@given(st.lists(st.integers(1, 63), min_size=1, max_size=24))
def test_ids_are_distinct_or_the_refusal_is_right(masks: list[int]) -> None:
    problem = problem_with(
        lifetimes=tuple("abcdef"),
        barriers=tuple(BarrierRequest(f"b{n:02}", mask) for n, mask in enumerate(masks)),
    )
    fullest = max(sum(mask >> phase & 1 for mask in masks) for phase in range(6))
    try:
        placement = place(problem)
    except PipelinkError as refused:
        assert [finding.code for finding in refused.diagnostics] == ["PL0103"]
        assert len(masks) > 15
        return
    assert fullest <= 15
    assert verify(problem, placement) == []


@st.composite
def offsets(draw: st.DrawFn) -> tuple[PlacementProblem, Placement]:
    problem = draw(shared_problems())
    found = solve(problem)
    assume(isinstance(found, Placement))
    assert isinstance(found, Placement)
    moved = tuple(
        (name, start if draw(st.booleans()) else draw(st.integers(0, 63)))
        for name, start in found.offsets
    )
    return problem, replace(found, offsets=moved)


@settings(max_examples=60)
@given(offsets())
def test_the_checker_agrees_with_all_pairs(case: tuple[PlacementProblem, Placement]) -> None:
    problem, placement = case
    said = [fault for fault in verify(problem, placement) if "overlaps" in fault]
    assert bool(said) == bool(overlaps(problem, placement))
    for fault in said:
        pair = frozenset((fault.split()[2], fault.split()[-1]))
        assert pair in overlaps(problem, placement)


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(1, 40), st.sampled_from((1, 4, 16)), st.integers(1, 15)),
        min_size=1,
        max_size=12,
    )
)
def test_greedy_layouts_are_valid_and_above_the_bound(raw: list[tuple[int, int, int]]) -> None:
    items = [Rectangle(f"i{n}", *parts) for n, parts in enumerate(raw)]
    floor, _ = bound(items)
    starts, height = layout(items, floor)
    assert height >= floor
    assert height == max(starts[item.name] + item.bytes for item in items)
    for one in items:
        assert starts[one.name] % one.align == 0
        for other in items:
            if one is not other and one.lifetimes & other.lifetimes:
                low, high = starts[one.name], starts[other.name]
                assert low + one.bytes <= high or high + other.bytes <= low


@settings(max_examples=60)
@given(shared_problems(), st.data())
def test_a_swap_moves_no_more_than_it_must(problem: PlacementProblem, data: st.DataObject) -> None:
    before = solve(problem)
    assume(isinstance(before, Placement) and problem.items)
    assert isinstance(before, Placement)
    index = data.draw(st.integers(0, len(problem.items) - 1))
    grown = replace(problem.items[index], bytes=data.draw(st.integers(1, 40)))
    changed = replace(problem, items=(*problem.items[:index], grown, *problem.items[index + 1 :]))
    after, fresh = solve(changed, before), solve(changed)
    assert isinstance(after, Placement) == isinstance(fresh, Placement)
    if not isinstance(after, Placement) or not isinstance(fresh, Placement):
        return
    assert after.stages == fresh.stages
    assert verify(changed, after) == []
    assert _moved(changed, before, after) == fewest_moved(changed, before, dict(after.stages))
    assert solve(changed, after) == replace(after, notes=(), kept=True)


def _moved(problem: PlacementProblem, before: Placement, after: Placement) -> int:
    was, now = dict(before.offsets), dict(after.offsets)
    return sum(
        size
        for name, size, _, _ in boxes(problem, dict(after.stages))
        if name in was and was[name] != now[name]
    )


def test_entry_registers_of_the_design() -> None:
    target = TARGETS["sm_90a"]
    table = {128: 255, 256: 255, 288: 168, 384: 168, 512: 128, 640: 96, 896: 72, 1024: 64}
    assert {threads: entry_registers(target, threads // 32) for threads in table} == table
    assert entry_registers(target, 12, 2) == 80
