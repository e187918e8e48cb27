"""What the placement of whole kernels must be, in numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.placement import (
    BarrierRequest,
    Placement,
    SharedAllocation,
    StageVariable,
    entry_registers,
)
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import objective, solve
from pipelink_rules.place.greedy import canonical_order, first_fit
from pipelink_rules.place.place import place
from pipelink_rules.place.rectangles import Rectangle
from pipelink_rules.place.verify import verify
from tests.unit.place.problems import decode, gemm, stream


def registers(placement: Placement) -> dict[str, int]:
    return {name: placement.registers(name) for name, _ in placement.warps}


def test_gemm() -> None:
    placement = place(gemm())
    assert placement.threads == 384
    assert placement.entry_registers == 168
    assert placement.setmaxnreg
    assert registers(placement) == {"load": 40, "mma": 232}
    assert placement.first_warp("load") == 0
    assert placement.first_warp("mma") == 4
    assert placement.stage_count("load.ab") == 4  # 5 x 49,152 + 32,768 > 232,448
    assert placement.shared_bytes == placement.bound_bytes == 4 * 49152 + 32768 + 64
    assert placement.proved
    assert not placement.kept


def test_mbarrier_table_lists_channels_by_name() -> None:
    placement = place(stream(mbarriers_fixed=3))
    table = placement.offset("barriers")
    loads, norms = placement.stage_count("load.x"), placement.stage_count("norm.y")
    assert placement.barriers == (
        ("load.x", table),
        ("norm.y", table + 16 * loads),
        ("fixed", table + 16 * (loads + norms)),
    )
    assert table % 16 == 0


def test_occupancy_divides_shared_memory_and_registers() -> None:
    items = tuple(replace(item, bytes=16384) for item in stream().items)
    placement = place(stream(occupancy=2, items=items))
    assert placement.shared_bytes <= TARGETS["sm_90a"].shared_limit(2) == 115712
    assert placement.entry_registers == entry_registers(TARGETS["sm_90a"], 6, 2) == 168


def test_stages_by_priority_then_evenly_then_by_name() -> None:
    items = (
        SharedAllocation("a", 16384, 1024, 1, "a"),
        SharedAllocation("b", 16384, 1024, 1, "b"),
        SharedAllocation("c", 65536, 1024, 1, "c"),
    )
    common = {"items": items, "mbarriers_per_stage": ()}

    def stages(*priorities: int) -> tuple[int, ...]:
        variables = tuple(
            StageVariable(name, 1, 8, priority)
            for name, priority in zip("abc", priorities, strict=True)
        )
        return tuple(count for _, count in place(gemm(stages=variables, **common)).stages)

    assert stages(0, 0, 0) == (4, 2, 2)  # least count 2 for all, then the sum, then a before b
    assert stages(1, 1, 0) == (1, 1, 3)
    assert stages(0, 0, 1) == (5, 5, 1)
    assert stages(0, 1, 2) == (8, 2, 1)


def test_a_stage_is_never_lost_to_a_fixed_maximum() -> None:
    items = (SharedAllocation("a", 1024, 1024, 1, "a"), SharedAllocation("b", 16384, 1024, 1, "b"))
    variables = (StageVariable("a", 1, 2), StageVariable("b", 1, 8))
    placement = place(gemm(items=items, stages=variables, mbarriers_per_stage=()))
    assert placement.stages == (("a", 2), ("b", 8))


def test_items_of_different_phases_overlay() -> None:
    items = (
        SharedAllocation("q", 131072, 1024, 0b01),
        SharedAllocation("o", 131072, 1024, 0b10),
        SharedAllocation("scale", 1024, 128, 0b11),
    )
    placement = place(
        gemm(lifetimes=("loop", "end"), items=items, stages=(), mbarriers_per_stage=())
    )
    assert placement.offset("q") == placement.offset("o") == 0
    assert placement.shared_bytes == placement.bound_bytes == 132096


def test_named_ids_avoid_reserved_ones_and_return_in_later_phases() -> None:
    barriers = (BarrierRequest("a", 0b01), BarrierRequest("b", 0b11), BarrierRequest("c", 0b10))
    placement = place(
        gemm(
            lifetimes=("one", "two"),
            items=(),
            stages=(),
            mbarriers_per_stage=(),
            barriers=barriers,
            reserved_barriers=(0, 1, 3),
        )
    )
    assert placement.named == (("a", 2), ("b", 4), ("c", 2))


def test_sixty_items_are_placed_with_a_solver_that_proves_nothing_open() -> None:
    problem = decode()
    assert len(problem.items) >= 55
    placement = place(problem)
    assert verify(problem, placement) == []
    assert placement.proved
    assert placement.notes == ()


def test_where_first_fit_fails_the_solver_finds_the_canonical_layout() -> None:
    page = 16384
    items = (
        SharedAllocation("a", 8 * page, 1024, 0b001),
        SharedAllocation("b", 2 * page, 1024, 0b110),
        SharedAllocation("c", 5 * page, 1024, 0b011),
        SharedAllocation("d", 7 * page, 1024, 0b100),
    )
    rectangles = [Rectangle(item.name, item.bytes, item.align, item.lifetimes) for item in items]
    limit = TARGETS["sm_90a"].shared_limit(1)
    assert first_fit(sorted(rectangles, key=canonical_order))[1] > limit
    problem = gemm(lifetimes=("x", "y", "z"), items=items, stages=(), mbarriers_per_stage=())
    placement = place(problem)
    assert verify(problem, placement) == []
    # a and d as low as can be; c leaves a page free, so that b finds room under it
    assert dict(placement.offsets) == {"a": 0, "d": 0, "b": 7 * page, "c": 9 * page}


def test_ids_of_barriers_that_pause_between_phases() -> None:
    # 12 + 2 + 1 meet in the second phase; the one of phases 1 and 4 must share an id with another.
    masks = [3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 3, 3, 9, 3, 10]
    barriers = tuple(BarrierRequest(f"b{index:02}", mask) for index, mask in enumerate(masks))
    problem = gemm(lifetimes=tuple("abcd"), barriers=barriers)
    placement = place(problem)
    assert verify(problem, placement) == []
    assert max(number for _, number in placement.named) == 15


def test_barriers_that_meet_in_pairs_are_counted_though_no_phase_holds_them_all() -> None:
    masks = [0b011] * 6 + [0b110] * 6 + [0b101] * 6
    barriers = tuple(BarrierRequest(f"b{index:02}", mask) for index, mask in enumerate(masks))
    with pytest.raises(PipelinkError) as caught:
        place(gemm(lifetimes=tuple("abc"), barriers=barriers))
    (finding,) = caught.value.diagnostics
    assert finding.code == "PL0103"
    assert "18 named barriers of which every two are live at the same time" in finding.message


def test_a_spent_budget_is_not_a_refusal() -> None:
    with pytest.raises(PipelinkError) as caught:
        place(decode(), rlimit=10)
    (finding,) = caught.value.diagnostics
    assert finding.code == "PL0105"
    assert "a placement may still exist" in finding.notes


def test_a_wrong_placement_never_leaves_the_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    def overlapping(search, kept):  # type: ignore[no-untyped-def]
        search.values = {**search.values, **dict.fromkeys(search.encoding.starts.values(), 0)}

    monkeypatch.setattr(objective, "fix_ids", overlapping)
    with pytest.raises(PipelinkError) as caught:
        solve.solve(gemm())
    assert caught.value.diagnostics[0].code == "PL9901"
