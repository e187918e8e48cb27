"""The verifier of barrier ids, warps and registers: every fault, exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.placement import (
    RoleRequest,
    Warpgroup,
)
from pipelink_rules.model.source_span import Span
from pipelink_rules.place.verify import demand, verify
from tests.unit.place.verified import PLACEMENT, PROBLEM, Change, P, changed, groups

# What changes in the problem, what in the placement, and the faults of that.
CASES: dict[str, tuple[Change, Change, list[str]]] = {
    "id missing": ({}, {"named": P.named[1:]}, ["named barrier a: not placed"]),
    "id shared": (
        {},
        {"named": changed(P.named, c=1)},
        ["lifetime 0: id 1 belongs to a and c", "lifetime 1: id 1 belongs to b and c"],
    ),
    "id reserved": ({}, {"named": changed(P.named, b=0)}, ["named barrier b: id 0 is reserved"]),
    "id not reserved": ({"reserved_barriers": ()}, {"named": changed(P.named, b=0)}, []),
    "id negative": (
        {},
        {"named": changed(P.named, b=-1)},
        ["named barrier b: id -1 does not exist"],
    ),
    "id past the last": (
        {},
        {"named": changed(P.named, b=16)},
        ["named barrier b: id 16 does not exist"],
    ),
    "last id": ({}, {"named": changed(P.named, b=15)}, []),
    "id shared in the second phase": (
        {},
        {"named": changed(P.named, b=2)},
        ["lifetime 1: id 2 belongs to b and c"],
    ),
    "role missing": (
        {},
        {
            "warps": changed(P.warps, sums=None),
            "warpgroups": (Warpgroup(0, ("load",), 48), *P.warpgroups[1:]),
        },
        ["role sums: not placed"],
    ),
    "role too many": (
        {},
        {"warps": (*P.warps, ("x", 3))},
        ["role x: placed but not part of the problem"],
    ),
    "warps shared": (
        {},
        {"warps": changed(P.warps, load=1)},
        ["warp 1: belongs to load and sums"],
    ),
    "warps shared at the first": (
        {},
        {"warps": changed(P.warps, load=0)},
        ["warp 0: belongs to load and sums"],
    ),
    "warp negative": (
        {},
        {"warps": changed(P.warps, sums=-1)},
        [
            "role sums: warps -1..0 of 12",
            "role sums: its warpgroups have different register counts",
        ],
    ),
    "warps past the last": (
        {},
        {"warps": changed(P.warps, load=12)},
        ["role load: warps 12..12 of 12", "warpgroup 0: lists sums, load"],
    ),
    "warpgroup unaligned": (
        {},
        {"warps": changed(P.warps, mma=3)},
        [
            "role mma: warps 3..10 are not whole warpgroups",
            "warpgroup 0: lists sums, load",
            "role mma: needs 96 registers, warpgroup 0 has 48",
            "role mma: its warpgroups have different register counts",
            "role mma: its warpgroups have different register counts",
        ],
    ),
    "warpgroup of six": (
        {"roles": (*PROBLEM.roles[:2], RoleRequest("mma", 6, True, 96, 240, 80))},
        {},
        ["role mma: warps 4..9 are not whole warpgroups"],
    ),
    "threads not whole warpgroups": (
        {},
        {"threads": 352},
        ["352 threads: not a whole number of warpgroups", "role mma: warps 4..11 of 11"],
    ),
    "threads not whole warps": (
        {},
        {"threads": 385},
        ["385 threads: not a whole number of warpgroups"],
    ),
    "plain threads not whole warps": (
        {},
        {"threads": 385, "setmaxnreg": False, "warpgroups": groups(80, 80, 80)},
        [
            "385 threads: not a whole number of warps",
            "role mma: needs 96 registers, warpgroup 1 has 80",
            "role mma: needs 96 registers, warpgroup 2 has 80",
        ],
    ),
    "last warp": (
        {"roles": (*PROBLEM.roles[:2], RoleRequest("tail", 1, False, 24, 24, 0))},
        {
            "warps": (("load", 2), ("sums", 0), ("tail", 11)),
            "warpgroups": (
                Warpgroup(0, ("sums", "load"), 48),
                Warpgroup(1, (), 96),
                Warpgroup(2, ("tail",), 96),
            ),
        },
        [],
    ),
    "too many warps of the SM": (
        {"occupancy": 6},
        {"occupancy": 6},
        [
            "12 warps x 6 CTAs exceed the SM",
            "entry registers: 80, but the launch provides 24",
            "role load: needs 32 entry registers, the launch has 24",
            "role mma: needs 80 entry registers, the launch has 24",
            "registers: 240 x 128 assigned, 24 x 384 available",
            "tensor memory: 256 columns x 6 CTAs exceed the SM",
        ],
    ),
    "too many warps of a CTA": (
        {"occupancy": 1},
        {"occupancy": 1, "threads": 1056},
        [
            "1056 threads: not a whole number of warpgroups",
            "33 warps x 1 CTAs exceed the SM",
            "entry registers: 80, but the launch provides 56",
            "warpgroups [0, 1, 2] of 33 warps",
        ],
    ),
    "most warps of a CTA": (
        {"occupancy": 2, "roles": (RoleRequest("all", 32, True, 24, 24, 0),)},
        {
            "threads": 1024,
            "warps": (("all", 0),),
            "entry_registers": 32,
            "setmaxnreg": False,
            "warpgroups": tuple(Warpgroup(n, ("all",), 32) for n in range(8)),
        },
        [],
    ),
    "most warps of the SM, one more": (
        {
            "occupancy": 3,
            "roles": (RoleRequest("all", 22, False, 24, 24, 0),),
            "items": PROBLEM.items[:1],
        },
        {
            "occupancy": 3,
            "threads": 704,
            "warps": (("all", 0),),
            "entry_registers": 24,
            "setmaxnreg": False,
            "warpgroups": tuple(Warpgroup(n, ("all",), 24) for n in range(6)),
        },
        [
            "allocation early: placed but not part of the problem",
            "allocation late: placed but not part of the problem",
            "lower bound: 3960 bytes, but 3192 in the fullest lifetime",
            "22 warps x 3 CTAs exceed the SM",
            "tensor memory: 256 columns x 3 CTAs exceed the SM",
        ],
    ),
    "entry registers": (
        {},
        {"entry_registers": 88},
        ["entry registers: 88, but the launch provides 80"],
    ),
    "entry too small for a role": (
        {"roles": (RoleRequest("load", 1, False, 24, 40, 81), *PROBLEM.roles[1:])},
        {},
        ["role load: needs 81 entry registers, the launch has 80"],
    ),
    "no setmaxnreg": (
        {"target": "sm_80", "items": PROBLEM.items[:1], "tensor": ()},
        {"target": "sm_80", "columns": (), "tensor_columns": 0},
        [
            "allocation early: placed but not part of the problem",
            "allocation late: placed but not part of the problem",
            "lower bound: 3960 bytes, but 3192 in the fullest lifetime",
            "sm_80 has no setmaxnreg",
        ],
    ),
    "pool exceeded": (
        {},
        {"warpgroups": groups(56, 96, 96)},
        ["registers: 248 x 128 assigned, 80 x 384 available"],
    ),
    "role without its registers": (
        {},
        {"warpgroups": groups(24, 96, 96)},
        ["role sums: needs 32 registers, warpgroup 0 has 24"],
    ),
    "role with fewer registers": (
        {},
        {"warpgroups": groups(48, 88, 96)},
        [
            "role mma: needs 96 registers, warpgroup 1 has 88",
            "role mma: its warpgroups have different register counts",
        ],
    ),
    "not a multiple of 8": (
        {},
        {"warpgroups": groups(44, 96, 96)},
        ["warpgroup 0: 44 is not a setmaxnreg value"],
    ),
    "too few registers for setmaxnreg": (
        {
            "roles": (
                RoleRequest("load", 1, False, 16, 16, 0),
                RoleRequest("sums", 2, False, 16, 16, 0),
                PROBLEM.roles[2],
            )
        },
        {"warpgroups": groups(16, 96, 96)},
        ["warpgroup 0: 16 is not a setmaxnreg value"],
    ),
    "fewest registers": (
        {
            "roles": (
                RoleRequest("load", 1, False, 24, 24, 0),
                RoleRequest("sums", 2, False, 16, 16, 0),
                PROBLEM.roles[2],
            )
        },
        {"warpgroups": groups(24, 96, 96)},
        [],
    ),
    "most registers": (
        {"occupancy": 1, "roles": (RoleRequest("a", 8, False, 24, 24, 0),)},
        {
            "occupancy": 1,
            "entry_registers": 255,
            "threads": 256,
            "warps": (("a", 0),),
            "warpgroups": (Warpgroup(0, ("a",), 240), Warpgroup(1, ("a",), 240)),
        },
        [],
    ),
    "too many registers for setmaxnreg": (
        {"occupancy": 1, "roles": (RoleRequest("a", 8, False, 24, 24, 0),)},
        {
            "occupancy": 1,
            "entry_registers": 255,
            "threads": 256,
            "warps": (("a", 0),),
            "warpgroups": (Warpgroup(0, ("a",), 248), Warpgroup(1, ("a",), 248)),
        },
        [
            "warpgroup 0: 248 is not a setmaxnreg value",
            "warpgroup 1: 248 is not a setmaxnreg value",
        ],
    ),
    "a role's warpgroups differ": (
        {},
        {"warpgroups": groups(40, 96, 104)},
        ["role mma: its warpgroups have different register counts"],
    ),
    "warpgroup missing": ({}, {"warpgroups": P.warpgroups[:2]}, ["warpgroups [0, 1] of 12 warps"]),
    "warpgroup too many": (
        {},
        {"warpgroups": (*P.warpgroups, Warpgroup(3, (), 24))},
        ["warpgroups [0, 1, 2, 3] of 12 warps"],
    ),
    "warpgroup numbered wrong": (
        {},
        {"warpgroups": (*P.warpgroups[:2], Warpgroup(3, ("mma",), 96))},
        ["warpgroups [0, 1, 3] of 12 warps"],
    ),
    "warpgroup lists too much": (
        {},
        {"warpgroups": (Warpgroup(0, ("sums", "load", "mma"), 48), *P.warpgroups[1:])},
        ["warpgroup 0: lists sums, load, mma"],
    ),
    "warpgroup lists nobody": (
        {},
        {"warpgroups": (*P.warpgroups[:2], Warpgroup(2, (), 96))},
        ["warpgroup 2: lists no role"],
    ),
    "warpgroup without a role": (
        {"roles": PROBLEM.roles[:2]},
        {
            "warps": P.warps[:1] + P.warps[2:],
            "warpgroups": (P.warpgroups[0], Warpgroup(1, (), 24), Warpgroup(2, (), 24)),
        },
        [],
    ),
    "plain": (
        {"roles": (*PROBLEM.roles[:2], RoleRequest("mma", 8, True, 80, 240, 80))},
        {"setmaxnreg": False, "warpgroups": groups(80, 80, 80)},
        [],
    ),
    "plain with other registers": (
        {"roles": (*PROBLEM.roles[:2], RoleRequest("mma", 8, True, 80, 240, 80))},
        {"setmaxnreg": False, "warpgroups": groups(72, 80, 80)},
        ["warpgroup 0: 72 registers without setmaxnreg"],
    ),
    "plain on sm_80": (
        {
            "target": "sm_80",
            "items": PROBLEM.items[:1],
            "tensor": (),
            "roles": (*PROBLEM.roles[:2], RoleRequest("mma", 8, True, 80, 240, 80)),
        },
        {
            "target": "sm_80",
            "columns": (),
            "tensor_columns": 0,
            "offsets": changed(P.offsets, early=None, late=None),
            "bound_bytes": 3192,
            "setmaxnreg": False,
            "warpgroups": groups(80, 80, 80),
        },
        [],
    ),
    "no thread": (
        {"roles": ()},
        {"threads": 0, "warps": (), "warpgroups": (), "entry_registers": 255},
        [],
    ),
    "two faults of stages and warps": (
        {},
        {"stages": changed(P.stages, ring=5), "warps": changed(P.warps, load=1)},
        ["channel ring: 5 stages, allowed 2..4", "warp 1: belongs to load and sums"],
    ),
    "too many warps are not checked one by one": (
        {"occupancy": 1},
        {
            "occupancy": 1,
            "threads": 1152,
            "warps": changed(P.warps, load=1),
            "entry_registers": 56,
        },
        ["36 warps x 1 CTAs exceed the SM", "warpgroups [0, 1, 2] of 36 warps"],
    ),
    "warps past the last and unaligned": (
        {},
        {"warps": changed(P.warps, mma=9)},
        [
            "role mma: warps 9..16 of 12",
            "warpgroup 1: lists mma",
        ],
    ),
    "one warp of eight CTAs": (
        {
            "occupancy": 8,
            "roles": (RoleRequest("a", 1, False, 24, 24, 0),),
            "items": (),
            "mbarriers_fixed": 0,
            "mbarriers_per_stage": (),
            "tensor": (),
        },
        {
            "occupancy": 8,
            "threads": 32,
            "warps": (("a", 0),),
            "entry_registers": 255,
            "setmaxnreg": False,
            "warpgroups": (Warpgroup(0, ("a",), 255),),
            "offsets": (),
            "barriers": (),
            "shared_bytes": 0,
            "bound_bytes": 0,
            "columns": (),
            "tensor_columns": 0,
        },
        [],
    ),
    "a role ends where a warpgroup begins": ({}, {"warps": changed(P.warps, load=0, sums=2)}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_faults(name: str) -> None:
    problem, placement, faults = CASES[name]
    assert verify(replace(PROBLEM, **problem), replace(PLACEMENT, **placement)) == faults


def test_a_file_with_faults_is_refused() -> None:
    placement = replace(PLACEMENT, bound_bytes=1, named=P.named[1:])
    with pytest.raises(PipelinkError) as refused:
        demand(PROBLEM, placement, "build/k.placement.json")
    (finding,) = refused.value.diagnostics
    assert finding.code == "PL0107" and finding.subject == "k"
    assert finding.message == "the placement of `k` does not solve its problem"
    assert finding.labels[0].span == Span("build/k.placement.json")
    assert finding.expected == "a placement without faults"
    assert [finding.found, *finding.notes] == verify(PROBLEM, placement)
    assert finding.suggestions == ("delete the file and run `scons megakernels/k`",)
    demand(PROBLEM, PLACEMENT)
    with pytest.raises(PipelinkError) as refused:
        demand(replace(PROBLEM, span=Span("SConscript", 3)), placement)
    assert refused.value.diagnostics[0].labels[0].span == Span("SConscript", 3)
