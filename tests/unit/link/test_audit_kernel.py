"""The audit: a kernel as planned passes, each single difference is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from link_fixtures import audit_of_demo, log_of, placement_of_demo, program_of_demo

from pipelink_rules.link.audit_kernel import compare, planned_setmaxnreg, region_registers
from pipelink_rules.link.sass import KernelCode
from pipelink_rules.model.contract import Operation, Repeat
from pipelink_rules.model.linked_kernel import BarrierSite
from pipelink_rules.model.placement import Warpgroup
from pipelink_rules.model.source_span import Expr

NEVER = (Repeat(Expr("0"), (Operation("sync", "turn"),)),)


def codes(found: dict[str, Any], placement: dict[str, Any] | None = None, log: str = "") -> list:
    audit, place = audit_of_demo(**found), placement_of_demo(**(placement or {}))
    return [item.code for item in compare(audit, program_of_demo(), place, log_of(log))]


def test_the_planned_kernel_passes() -> None:
    assert codes({}) == []


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ({"setmaxnreg": (40,)}, "PL0920"),
        ({"setmaxnreg": (40, 40, 232)}, "PL0920"),
        ({"setmaxnreg": (40, 240)}, "PL0920"),
        ({"registers": 176}, "PL0927"),
        ({"registers": 160}, "PL0927"),
        ({"stack_bytes": 8}, "PL0921"),
        ({"spill_loads": 8}, "PL0921"),
        ({"static_shared_bytes": 16}, "PL0924"),
        ({"calls": ("_Z3padi",)}, "PL0922"),
        ({"calls": ("(register)",)}, "PL0922"),
        ({"barrier_ids": ((0, 1), (2, 1))}, "PL0925"),
        ({"barrier_ids": ((-1, 1),)}, "PL0925"),
        ({"region_registers": (("load", 41), ("mma", 154))}, "PL0923"),
        (
            {"calls": ("$__internal_0_$div",), "pipelined_calls": ("$__internal_0_$div",)},
            "PL0929",
        ),
    ],
)
def test_each_difference_is_found(found: dict[str, Any], code: str) -> None:
    assert codes(found) == [code]


@pytest.mark.parametrize(
    "found",
    [
        {"calls": ("$__internal_0_$__cuda_sm20_div_u32",)},
        {"calls": ("report (ends the kernel)",), "stack_bytes": 16},
        {"barrier_sites": (BarrierSite(1, "sync", 256, 1),)},  # two that were found to be one
        {"barrier_sites": (BarrierSite(1, "sync", 256, 7),)},  # an unrolled loop
        {"region_registers": (("load", 40), ("mma", 232))},
    ],
)
def test_what_is_allowed(found: dict[str, Any]) -> None:
    assert codes(found) == []


@pytest.mark.parametrize(
    "sites",
    [
        (),  # it folded away, and no thread waits
        (BarrierSite(1, "arrive", 256, 2),),
        (BarrierSite(1, "arrive", 256, 1), BarrierSite(1, "sync", 256, 2)),
        (BarrierSite(1, "reduce", 256, 1), BarrierSite(1, "sync", 256, 2)),
        (BarrierSite(1, "sync", 128, 1), BarrierSite(1, "sync", 256, 1)),
        (BarrierSite(1, "sync", 0, 2),),
        (BarrierSite(1, "sync", -1, 2),),
    ],
)
def test_a_barrier_is_used_as_the_contracts_say(sites: tuple[BarrierSite, ...]) -> None:
    assert codes({"barrier_sites": sites}) == ["PL0938"]


def test_operations_that_never_happen_need_no_site() -> None:
    program = program_of_demo()
    role = replace(program.instances[0].variant.contract.roles[0], body=NEVER)
    contract = replace(program.instances[0].variant.contract, roles=(role,))
    variant = replace(program.instances[0].variant, contract=contract)
    quiet = replace(program, instances=(replace(program.instances[0], variant=variant),))
    for sites, expected in (((), []), ((BarrierSite(1, "sync", 256, 1),), ["PL0938"])):
        audit = audit_of_demo(barrier_sites=sites)
        found = compare(audit, quiet, placement_of_demo(), log_of(""))
        assert [item.code for item in found] == expected


def test_no_setmaxnreg_planned_and_none_found() -> None:
    alike = {
        "setmaxnreg": False,
        "warpgroups": (Warpgroup(0, ("load", "mma"), 168),),
        "threads": 128,
    }
    assert codes({"setmaxnreg": (), "registers": 90}, alike) == []
    assert codes({"setmaxnreg": (40,)}, alike) == ["PL0920"]


@pytest.mark.parametrize("code", ["C7504", "C7507", "C7508"])
def test_a_remark_is_enough(code: str) -> None:
    assert codes({}, log=f"ptxas info    : ({code}) 'setmaxnreg' ignored") == ["PL0920"]


@pytest.mark.parametrize("code", ["C7510", "C7511", "C7514", "C7517"])
def test_serialised_wgmma_is_an_information_line(code: str) -> None:
    text = f"ptxas info    : ({code}) Potential Performance Loss: wgmma serialized"
    assert codes({}, log=text) == ["PL0926"]


def test_planned_values_are_one_per_run_of_alike_warpgroups() -> None:
    groups = (
        Warpgroup(0, ("load",), 40),
        Warpgroup(1, ("mma",), 232),
        Warpgroup(2, ("mma",), 232),
        Warpgroup(3, ("epilogue",), 232),
        Warpgroup(4, ("keeps",), 168),
        Warpgroup(5, (), 40),
    )
    placement = placement_of_demo(warpgroups=groups)
    assert planned_setmaxnreg(placement) == (40, 232, 232)
    assert planned_setmaxnreg(placement_of_demo(warpgroups=groups, setmaxnreg=False)) == ()


def test_roles_with_one_value_share_what_is_found_for_it() -> None:
    text = """
        /*0000*/               @P0 BRA `(.L_x_0) ;
        /*0010*/                   USETMAXREG.DEALLOC.CTAPOOL 0x28 ;
        /*0020*/                   MOV R30, R2 ;
        /*0030*/                   EXIT ;
.L_x_0:
        /*0040*/                   MOV R7, R2 ;
        /*0050*/                   EXIT ;
"""
    groups = (Warpgroup(0, ("a", "b"), 40), Warpgroup(1, ("c",), 168))
    placement = placement_of_demo(warpgroups=groups, warps=(("c", 4), ("b", 1), ("a", 0)))
    assert tuple(region_registers(KernelCode(text), placement)) == (("a", 31), ("b", 31), ("c", 8))
