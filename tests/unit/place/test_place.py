"""What the placement of whole kernels must be, in numbers."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.codec import read_json, to_json, write_json
from pipelink_rules.model.placement import (
    BarrierNeed,
    Placement,
    PlacementProblem,
    RoleNeed,
    SharedItem,
    StageVariable,
    entry_registers,
)
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import joint, objective, warps
from pipelink_rules.place.greedy import canonical_order, first_fit
from pipelink_rules.place.place import place
from pipelink_rules.place.sizes import Rectangle
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


def test_content_kernels_emit_no_setmaxnreg() -> None:
    placement = place(stream())
    assert not placement.setmaxnreg
    assert placement.threads == 6 * 32
    assert placement.entry_registers == 255
    assert {group.registers for group in placement.warpgroups} == {255}


@pytest.mark.parametrize("rows", [4, 8, 16])
def test_wide_loose_roles_straddle_no_warpgroup(rows: int) -> None:
    placement = place(stream(rows))
    assert placement.first_warp("norm") % 4 == 0
    assert placement.threads == 32 * (rows + 2)
    assert len({placement.first_warp(name) % 4 for name in ("load", "store")}) == 2


def test_loose_roles_ask_for_setmaxnreg_only_in_need() -> None:
    # 18 warps enter with 96 registers: a wish for 128 moves nothing, a need of 104 does.
    wish = place(stream(16))
    assert (wish.setmaxnreg, wish.entry_registers) == (False, 96)
    roles = tuple(
        replace(role, minimum=104) if role.warps > 1 else role for role in stream(16).roles
    )
    need = place(stream(16, roles=roles))
    assert (need.setmaxnreg, need.threads) == (True, 640)
    assert need.registers("norm") >= 104
    assert need.registers("load") == need.registers("store") == 40  # they share a warpgroup


def test_setmaxnreg_that_moves_nothing_is_not_emitted() -> None:
    roles = tuple(RoleNeed(f"mma{index}", 4, True, 120, 240, 0) for index in range(4))
    placement = place(gemm(roles=roles))
    assert (placement.setmaxnreg, placement.entry_registers) == (False, 128)


def test_a_warpgroup_without_a_role_gets_the_minimum() -> None:
    roles = tuple(replace(role, entry=0) for role in gemm().roles)
    problem = gemm(roles=roles)
    padded = joint._solve_shape(problem, warps.moving_shape(problem, 4), None, joint.RLIMIT)
    assert isinstance(padded, Placement)
    assert [group.registers for group in padded.warpgroups] == [40, 224, 224, 24]  # 4 x 128
    assert padded.warpgroups[3].roles == ()
    assert place(problem).threads == 384  # it is never the better choice


def test_several_producers_share_a_warpgroup_on_different_schedulers() -> None:
    roles = (
        *(RoleNeed(name, 1, False, 24, 24, 0) for name in ("a", "b", "c", "d")),
        RoleNeed("mma", 8, True, 160, 240, 0),
    )
    placement = place(gemm(roles=roles))
    assert placement.threads == 384
    assert sorted(placement.first_warp(name) for name in "abcd") == [0, 1, 2, 3]
    assert placement.warpgroups[0].registers == 24
    assert placement.registers("mma") == 240


def test_a_shared_warpgroup_serves_its_hungriest_role() -> None:
    roles = (
        RoleNeed("load", 1, False, 24, 24, 0),
        RoleNeed("sort", 2, False, 96, 96, 0),
        RoleNeed("mma", 8, True, 160, 240, 0),
    )
    placement = place(gemm(roles=roles))
    assert registers(placement) == {"load": 96, "sort": 96, "mma": 200}  # 504 - 96 = 408


def test_attention_registers_as_tuned_by_hand() -> None:
    # softmax 2 x 192, correction 80, mma/load/store 48: what a hand-tuned kernel ships.
    roles = (
        RoleNeed("softmax0", 4, True, 160, 192, 0),
        RoleNeed("softmax1", 4, True, 160, 192, 0),
        RoleNeed("correction", 4, True, 80, 80, 0),
        *(RoleNeed(name, 1, False, 48, 48, 0) for name in ("mma", "load", "store")),
    )
    placement = place(gemm(target="sm_100a", roles=roles))
    given = registers(placement)
    assert (given["softmax0"], given["softmax1"]) == (192, 192)
    assert (given["correction"], given["mma"]) == (80, 48)


def test_without_setmaxnreg_all_warps_get_the_same() -> None:
    roles = (RoleNeed("a", 8, False, 100, 240, 0), RoleNeed("b", 4, False, 24, 24, 0))
    placement = place(stream(target="sm_80", roles=roles))
    assert (placement.setmaxnreg, placement.entry_registers) == (False, 168)


def test_occupancy_divides_shared_memory_and_registers() -> None:
    items = tuple(replace(item, bytes=16384) for item in stream().items)
    placement = place(stream(occupancy=2, items=items))
    assert placement.shared_bytes <= TARGETS["sm_90a"].shared_limit(2) == 115712
    assert placement.entry_registers == entry_registers(TARGETS["sm_90a"], 6, 2) == 168


def test_stages_by_priority_then_evenly_then_by_name() -> None:
    items = (
        SharedItem("a", 16384, 1024, 1, "a"),
        SharedItem("b", 16384, 1024, 1, "b"),
        SharedItem("c", 65536, 1024, 1, "c"),
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
    items = (SharedItem("a", 1024, 1024, 1, "a"), SharedItem("b", 16384, 1024, 1, "b"))
    variables = (StageVariable("a", 1, 2), StageVariable("b", 1, 8))
    placement = place(gemm(items=items, stages=variables, mbarriers_per_stage=()))
    assert placement.stages == (("a", 2), ("b", 8))


def test_items_of_different_phases_overlay() -> None:
    items = (
        SharedItem("q", 131072, 1024, 0b01),
        SharedItem("o", 131072, 1024, 0b10),
        SharedItem("scale", 1024, 128, 0b11),
    )
    placement = place(gemm(phases=("loop", "end"), items=items, stages=(), mbarriers_per_stage=()))
    assert placement.offset("q") == placement.offset("o") == 0
    assert placement.shared_bytes == placement.bound_bytes == 132096


def test_named_ids_avoid_reserved_ones_and_return_in_later_phases() -> None:
    barriers = (BarrierNeed("a", 0b01), BarrierNeed("b", 0b11), BarrierNeed("c", 0b10))
    placement = place(
        gemm(
            phases=("one", "two"),
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
        SharedItem("a", 8 * page, 1024, 0b001),
        SharedItem("b", 2 * page, 1024, 0b110),
        SharedItem("c", 5 * page, 1024, 0b011),
        SharedItem("d", 7 * page, 1024, 0b100),
    )
    rectangles = [Rectangle(item.name, item.bytes, item.align, item.phases) for item in items]
    limit = TARGETS["sm_90a"].shared_limit(1)
    assert first_fit(sorted(rectangles, key=canonical_order))[1] > limit
    problem = gemm(phases=("x", "y", "z"), items=items, stages=(), mbarriers_per_stage=())
    placement = place(problem)
    assert verify(problem, placement) == []
    # a and d as low as can be; c leaves a page free, so that b finds room under it
    assert dict(placement.offsets) == {"a": 0, "d": 0, "b": 7 * page, "c": 9 * page}


def test_ids_of_barriers_that_pause_between_phases() -> None:
    # 12 + 2 + 1 meet in the second phase; the one of phases 1 and 4 must share an id with another.
    masks = [3, 3, 3, 3, 3, 3, 3, 3, 3, 2, 2, 3, 3, 9, 3, 10]
    barriers = tuple(BarrierNeed(f"b{index:02}", mask) for index, mask in enumerate(masks))
    problem = gemm(phases=tuple("abcd"), barriers=barriers)
    placement = place(problem)
    assert verify(problem, placement) == []
    assert max(number for _, number in placement.named) == 15


def test_barriers_that_meet_in_pairs_are_counted_though_no_phase_holds_them_all() -> None:
    masks = [0b011] * 6 + [0b110] * 6 + [0b101] * 6
    barriers = tuple(BarrierNeed(f"b{index:02}", mask) for index, mask in enumerate(masks))
    with pytest.raises(PipelinkError) as caught:
        place(gemm(phases=tuple("abc"), barriers=barriers))
    (finding,) = caught.value.diagnostics
    assert finding.code == "PL0103"
    assert "18 named barriers that meet each other in pairs" in finding.message


def test_a_spent_budget_is_not_a_refusal() -> None:
    with pytest.raises(PipelinkError) as caught:
        place(decode(), rlimit=10)
    (finding,) = caught.value.diagnostics
    assert finding.code == "PL0105"
    assert "this is no proof that it does not fit" in finding.notes


def test_placements_are_files(tmp_path: object) -> None:
    placement = place(gemm())
    path = write_json(f"{tmp_path}/gemm.placement.json", placement)
    assert read_json(path, Placement) == placement
    path = write_json(f"{tmp_path}/gemm.problem.json", gemm())
    assert read_json(path, PlacementProblem) == gemm()


PROGRAM = """
import sys
if sys.argv[1] == "junk":
    import z3
    for number in range(3):
        solver = z3.Solver()
        solver.add([z3.Int(f"k{i}") + number < z3.Int(f"s{i}") * i for i in range(40)])
        solver.check()
from pipelink_rules.files.codec import to_json
from pipelink_rules.place.place import place
from tests.unit.place.problems import decode, gemm, stream
sys.stdout.write("".join(to_json(place(p)) for p in (gemm(), stream(16), decode(4))))
"""


def test_same_bytes_across_hash_seeds_and_junk_contexts() -> None:
    here = "".join(to_json(place(problem)) for problem in (gemm(), stream(16), decode(4)))
    for seed, junk in (("1", "no"), ("77", "junk")):
        there = subprocess.run(
            [sys.executable, "-c", PROGRAM, junk],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(p or "." for p in sys.path)},
        )
        assert there.stdout == here


def test_the_order_of_declaration_does_not_matter() -> None:
    problem = stream(16)
    turned = replace(
        problem,
        items=problem.items[::-1],
        stages=problem.stages[::-1],
        roles=problem.roles[::-1],
        mbarriers_per_stage=problem.mbarriers_per_stage[::-1],
    )
    assert place(turned) == place(problem)


def test_equality_of_the_register_pool_is_one_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = (RoleNeed("load", 1, False, 24, 24, 0), RoleNeed("mma", 8, True, 160, 200, 0))
    free = place(gemm(roles=roles))
    assert [group.registers for group in free.warpgroups] == [24, 200, 200]  # 424 of 504
    monkeypatch.setattr(warps, "POOL_EQUALITY", True)
    spent = place(gemm(roles=roles))
    assert sum(group.registers for group in spent.warpgroups) == 504


def test_the_solver_is_imported_only_when_asked() -> None:
    code = "import sys, pipelink_rules.place.place; sys.exit('z3' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(p or "." for p in sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0


def test_a_wrong_placement_never_leaves_the_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    def overlapping(search, encoding, sizes, kept):  # type: ignore[no-untyped-def]
        search.values = {**search.values, **{k: 0 for k, _ in encoding.offsets.values()}}

    monkeypatch.setattr(objective, "settle_offsets", overlapping)
    with pytest.raises(PipelinkError) as caught:
        joint.solve(gemm())
    assert caught.value.diagnostics[0].code == "PL9901"
