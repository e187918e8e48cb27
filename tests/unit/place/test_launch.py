"""Warps and registers of a launch, in numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelink_rules.model.placement import Placement, RoleRequest
from pipelink_rules.place import solve, warps
from pipelink_rules.place.place import place
from tests.unit.place.problems import gemm, stream


def registers(placement: Placement) -> dict[str, int]:
    return {name: placement.registers(name) for name, _ in placement.warps}


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
    roles = tuple(RoleRequest(f"mma{index}", 4, True, 120, 240, 0) for index in range(4))
    placement = place(gemm(roles=roles))
    assert (placement.setmaxnreg, placement.entry_registers) == (False, 128)


def test_a_warpgroup_without_a_role_gets_the_minimum() -> None:
    roles = tuple(replace(role, entry=0) for role in gemm().roles)
    problem = gemm(roles=roles)
    padded = solve._solve_shape(problem, warps.moving_shape(problem, 4), None, solve.RLIMIT)
    assert isinstance(padded, Placement)
    assert [group.registers for group in padded.warpgroups] == [40, 224, 224, 24]  # 4 x 128
    assert padded.warpgroups[3].roles == ()
    assert place(problem).threads == 384  # it is never the better choice


def test_several_producers_share_a_warpgroup_on_different_schedulers() -> None:
    roles = (
        *(RoleRequest(name, 1, False, 24, 24, 0) for name in ("a", "b", "c", "d")),
        RoleRequest("mma", 8, True, 160, 240, 0),
    )
    placement = place(gemm(roles=roles))
    assert placement.threads == 384
    assert sorted(placement.first_warp(name) for name in "abcd") == [0, 1, 2, 3]
    assert placement.warpgroups[0].registers == 24
    assert placement.registers("mma") == 240


def test_a_shared_warpgroup_serves_its_hungriest_role() -> None:
    roles = (
        RoleRequest("load", 1, False, 24, 24, 0),
        RoleRequest("sort", 2, False, 96, 96, 0),
        RoleRequest("mma", 8, True, 160, 240, 0),
    )
    placement = place(gemm(roles=roles))
    assert registers(placement) == {"load": 96, "sort": 96, "mma": 200}  # 504 - 96 = 408


def test_attention_registers_as_tuned_by_hand() -> None:
    # softmax 2 x 192, correction 80, mma/load/store 48: what a hand-tuned kernel ships.
    roles = (
        RoleRequest("softmax0", 4, True, 160, 192, 0),
        RoleRequest("softmax1", 4, True, 160, 192, 0),
        RoleRequest("correction", 4, True, 80, 80, 0),
        *(RoleRequest(name, 1, False, 48, 48, 0) for name in ("mma", "load", "store")),
    )
    placement = place(gemm(target="sm_100a", roles=roles))
    given = registers(placement)
    assert (given["softmax0"], given["softmax1"]) == (192, 192)
    assert (given["correction"], given["mma"]) == (80, 48)


def test_without_setmaxnreg_all_warps_get_the_same() -> None:
    roles = (RoleRequest("a", 8, False, 100, 240, 0), RoleRequest("b", 4, False, 24, 24, 0))
    placement = place(stream(target="sm_80", roles=roles))
    assert (placement.setmaxnreg, placement.entry_registers) == (False, 168)


def test_equality_of_the_register_pool_is_one_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    roles = (RoleRequest("load", 1, False, 24, 24, 0), RoleRequest("mma", 8, True, 160, 200, 0))
    free = place(gemm(roles=roles))
    assert [group.registers for group in free.warpgroups] == [24, 200, 200]  # 424 of 504
    monkeypatch.setattr(warps, "POOL_EQUALITY", True)
    spent = place(gemm(roles=roles))
    assert sum(group.registers for group in spent.warpgroups) == 504
