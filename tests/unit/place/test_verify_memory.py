"""The verifier of stages, shared memory, mbarriers and tensor memory: every fault, exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelink_rules.model.placement import (
    SharedAllocation,
    TensorMemoryRequest,
)
from pipelink_rules.place.verify import verify
from tests.unit.place.verified import BOTH, PLACEMENT, PROBLEM, Change, P, changed

# What changes in the problem, what in the placement, and the faults of that.
CASES: dict[str, tuple[Change, Change, list[str]]] = {
    "none": ({}, {}, []),
    "unknown target": ({"target": "sm_1"}, {"target": "sm_1"}, ["unknown target sm_1"]),
    "another target": (
        {},
        {"target": "sm_90a"},
        ["the placement is for ('k', 'sm_90a', 2), the problem is ('k', 'sm_100a', 2)"],
    ),
    "another name": (
        {},
        {"name": "q"},
        ["the placement is for ('q', 'sm_100a', 2), the problem is ('k', 'sm_100a', 2)"],
    ),
    "another occupancy": (
        {},
        {"occupancy": 1},
        ["the placement is for ('k', 'sm_100a', 1), the problem is ('k', 'sm_100a', 2)"],
    ),
    "stages below": (
        {},
        {"stages": changed(P.stages, ring=1)},
        ["channel ring: 1 stages, allowed 2..4"],
    ),
    "stages above": (
        {},
        {"stages": changed(P.stages, ring=5)},
        ["channel ring: 5 stages, allowed 2..4"],
    ),
    "stages missing": ({}, {"stages": (("ring", 3),)}, ["channel acc: not placed"]),
    "stages too many": (
        {},
        {"stages": (*P.stages, ("more", 1))},
        ["channel more: placed but not part of the problem"],
    ),
    "stages twice": ({}, {"stages": (*P.stages, ("ring", 3))}, ["channel ring: placed twice"]),
    "overlap of one phase": (
        {},
        {"offsets": changed(P.offsets, early=2944)},
        ["lifetime 0: early overlaps ring"],
    ),
    "overlap of the other phase": (
        {},
        {"offsets": changed(P.offsets, late=2944)},
        ["lifetime 1: late overlaps ring"],
    ),
    "overlap past a neighbor": (
        {
            "items": (
                *PROBLEM.items,
                SharedAllocation("n", 16, 16, 1),
                SharedAllocation("m", 16, 16, 1),
            )
        },
        {"offsets": (*P.offsets, ("n", 16), ("m", 1040)), "bound_bytes": 3960},
        ["lifetime 0: n overlaps ring", "lifetime 0: m overlaps ring"],
    ),
    "unaligned": (
        {},
        {"offsets": changed(P.offsets, early=3080)},
        ["allocation early: offset 3080 is not a multiple of 128"],
    ),
    "negative": (
        {},
        {"offsets": changed(P.offsets, ring=-1024)},
        ["allocation ring: offset -1024 is not a multiple of 1024"],
    ),
    "below zero by a byte": (
        {"items": (SharedAllocation("b", 8, 1, 1), *PROBLEM.items)},
        {"offsets": (*P.offsets, ("b", -1)), "bound_bytes": 3960},
        ["allocation b: offset -1 is not a multiple of 1", "lifetime 0: ring overlaps b"],
    ),
    "past the end": ({}, {"shared_bytes": 3951}, ["allocation barriers: ends at 3960, past 3951"]),
    "at the limit": (
        {"items": (*PROBLEM.items, SharedAllocation("b", 111744, 128, BOTH))},
        {"offsets": (*P.offsets, ("b", 3968)), "bound_bytes": 115704, "shared_bytes": 115712},
        [],
    ),
    "past the limit": (
        {},
        {"shared_bytes": 115713},
        ["shared memory: 115,713 bytes, limit 115,712"],
    ),
    "wrong bound": (
        {},
        {"bound_bytes": 3959},
        ["lower bound: 3959 bytes, but 3960 in the fullest lifetime"],
    ),
    "allocation missing": (
        {},
        {"offsets": changed(P.offsets, early=None)},
        ["allocation early: not placed"],
    ),
    "late allocation missing": (
        {},
        {"offsets": changed(P.offsets, late=None), "bound_bytes": 3704},
        ["allocation late: not placed"],
    ),
    "allocation too many": (
        {},
        {"offsets": (*P.offsets, ("x", 0))},
        ["allocation x: placed but not part of the problem"],
    ),
    "table unaligned": (
        {},
        {
            "offsets": changed(P.offsets, barriers=3848),
            "barriers": (("acc", 3848), ("fixed", 3960), ("ring", 3912)),
        },
        ["allocation barriers: offset 3848 is not a multiple of 16"],
    ),
    "table with a gap": (
        {},
        {"barriers": changed(P.barriers, ring=3912)},
        [
            "mbarriers of ring: at 3912, expected at 3904",
            "mbarriers of fixed: at 3952, expected at 3960",
        ],
    ),
    "table part twice": (
        {},
        {"barriers": (*P.barriers, ("ring", 3904))},
        ["mbarriers of ring: placed twice", "mbarriers of ring: at 3904, expected at 3952"],
    ),
    "table part missing": (
        {},
        {"barriers": (("acc", 3840), ("ring", 3904))},
        ["mbarriers of fixed: not placed", "mbarrier table: ends at 3960, its last part at 3952"],
    ),
    "table part unknown": (
        {},
        {"barriers": (*P.barriers, ("x", 3960))},
        ["mbarriers of x: placed but not part of the problem"],
    ),
    "table elsewhere": (
        {},
        {"barriers": tuple((n, at + 8) for n, at in P.barriers)},
        [
            "mbarriers of acc: at 3848, expected at 3840",
            "mbarrier table: ends at 3960, its last part at 3968",
        ],
    ),
    "no table": (
        {"mbarriers_fixed": 0, "mbarriers_per_stage": ()},
        {"barriers": (), "offsets": changed(P.offsets, barriers=None), "bound_bytes": 3840},
        [],
    ),
    "one fixed mbarrier only": (
        {"mbarriers_fixed": 1, "mbarriers_per_stage": ()},
        {"barriers": (("fixed", 3840),), "bound_bytes": 3848},
        [],
    ),
    "table not fixed": (
        {"mbarriers_fixed": 0},
        {"barriers": changed(P.barriers, fixed=None), "bound_bytes": 3952},
        [],
    ),
    "table not placed": (
        {"mbarriers_per_stage": ()},
        {
            "barriers": (("fixed", 0),),
            "offsets": changed(P.offsets, barriers=None),
            "bound_bytes": 3840,
        },
        ["allocation barriers: not placed"],
    ),
    "columns missing": ({}, {"columns": P.columns[1:]}, ["tensor memory of acc: not placed"]),
    "column missing that is free": (
        {},
        {"columns": P.columns[:2]},
        ["tensor memory of late: not placed", "lifetime 1: acc overlaps late"],
    ),
    "columns overlap": (
        {},
        {"columns": changed(P.columns, early=127)},
        ["lifetime 0: early overlaps acc"],
    ),
    "columns overlap late": (
        {},
        {"columns": changed(P.columns, late=127)},
        ["lifetime 1: late overlaps acc"],
    ),
    "columns negative": (
        {},
        {"columns": changed(P.columns, acc=-1)},
        ["tensor memory of acc: columns -1..126 of 256"],
    ),
    "columns past": (
        {},
        {"columns": changed(P.columns, late=161)},
        ["tensor memory of late: columns 161..256 of 256"],
    ),
    "columns at the end": ({}, {"columns": changed(P.columns, late=160)}, []),
    "not a power of two": (
        {},
        {"tensor_columns": 255},
        ["tensor memory: 255 columns cannot be allocated"],
    ),
    "too few columns": (
        {"tensor": ()},
        {"columns": (), "tensor_columns": 16},
        ["tensor memory: 16 columns cannot be allocated"],
    ),
    "fewest columns": ({"tensor": ()}, {"columns": (), "tensor_columns": 32}, []),
    "no columns": ({"tensor": ()}, {"columns": (), "tensor_columns": 0}, []),
    "none allocated": (
        {"tensor": PROBLEM.tensor[1:2]},
        {"columns": (("early", 0),), "tensor_columns": 0},
        [
            "tensor memory: 0 columns cannot be allocated",
            "tensor memory of early: columns 0..31 of 0",
        ],
    ),
    "too many columns": (
        {},
        {"tensor_columns": 512},
        ["tensor memory: 512 columns x 2 CTAs exceed the SM"],
    ),
    "columns without a channel": (
        {"tensor": (TensorMemoryRequest("x", 32, 1),)},
        {"columns": (("x", 0),), "tensor_columns": 32},
        [],
    ),
    "no lifetime at all": (
        {"lifetimes": (), "items": PROBLEM.items[:1]},
        {"offsets": changed(P.offsets, early=None, late=None), "bound_bytes": 3192},
        [],
    ),
    "nothing to place": (
        {"items": (), "mbarriers_fixed": 0, "mbarriers_per_stage": ()},
        {"offsets": (), "barriers": (), "bound_bytes": 0},
        [],
    ),
    "ends together": (
        {
            "items": (
                *PROBLEM.items,
                SharedAllocation("n", 16, 16, 1),
                SharedAllocation("m", 8, 4, 1),
            )
        },
        {"offsets": (*P.offsets, ("n", 3056), ("m", 3060)), "bound_bytes": 3960},
        ["lifetime 0: n overlaps ring", "lifetime 0: m overlaps ring"],
    ),
    "two fixed mbarriers": ({"mbarriers_fixed": 2}, {"bound_bytes": 3968}, []),
    "table parts missing": (
        {},
        {"barriers": ()},
        [
            "mbarriers of acc: not placed",
            "mbarriers of fixed: not placed",
            "mbarriers of ring: not placed",
        ],
    ),
    "columns of a channel without stages": (
        {},
        {"stages": (("ring", 3),), "columns": changed(P.columns, early=64)},
        ["channel acc: not placed"],
    ),
    "columns of nothing": (
        {"tensor": (TensorMemoryRequest("x", 0, 1),)},
        {"columns": (("x", 0),)},
        ["tensor memory of x: columns 0..-1 of 256"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_faults(name: str) -> None:
    problem, placement, faults = CASES[name]
    assert verify(replace(PROBLEM, **problem), replace(PLACEMENT, **placement)) == faults
