"""A placement of every resource that passes the verifier, to be changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipelink_rules.model.placement import (
    BarrierRequest,
    Placement,
    PlacementProblem,
    RoleRequest,
    SharedAllocation,
    StageVariable,
    TensorMemoryRequest,
    Warpgroup,
)

Change = dict[str, Any]
Table = tuple[tuple[str, int], ...]
BOTH = 3  # the mask of both phases

PROBLEM = PlacementProblem(
    name="k",
    target="sm_100a",
    occupancy=2,
    lifetimes=("early", "late"),
    items=(
        SharedAllocation("ring", 1024, 1024, BOTH, "ring"),
        SharedAllocation("early", 512, 128, 1),
        SharedAllocation("late", 768, 128, 2),
    ),
    stages=(StageVariable("ring", 2, 4), StageVariable("acc", 1, 2)),
    roles=(
        RoleRequest("load", 1, False, 24, 40, 32),
        RoleRequest("sums", 2, False, 32, 64, 0),
        RoleRequest("mma", 8, True, 96, 240, 80),
    ),
    barriers=(BarrierRequest("a", 1), BarrierRequest("b", 2), BarrierRequest("c", BOTH)),
    mbarriers_per_stage=(("acc", 4), ("ring", 2)),
    mbarriers_fixed=1,
    tensor=(
        TensorMemoryRequest("acc", 64, BOTH, "acc"),
        TensorMemoryRequest("early", 32, 1),
        TensorMemoryRequest("late", 96, 2),
    ),
)
# 12 warps, 2 CTAs: entry registers 80, pool 3 * 80 = 240.
PLACEMENT = Placement(
    name="k",
    target="sm_100a",
    stages=(("acc", 2), ("ring", 3)),
    offsets=(("barriers", 3840), ("early", 3072), ("late", 3072), ("ring", 0)),
    barriers=(("acc", 3840), ("fixed", 3952), ("ring", 3904)),
    shared_bytes=3968,
    bound_bytes=3960,
    named=(("a", 1), ("b", 1), ("c", 2)),
    warps=(("load", 2), ("mma", 4), ("sums", 0)),
    threads=384,
    entry_registers=80,
    setmaxnreg=True,
    warpgroups=(
        Warpgroup(0, ("sums", "load"), 48),
        Warpgroup(1, ("mma",), 96),
        Warpgroup(2, ("mma",), 96),
    ),
    occupancy=2,
    proved=True,
    solver="none",
    columns=(("acc", 0), ("early", 128), ("late", 128)),
    tensor_columns=256,
)
P = PLACEMENT


def changed(table: Table, **numbers: int | None) -> Table:
    """Return the table with other numbers, None for none."""
    return tuple((k, v) for k, v in {**dict(table), **numbers}.items() if v is not None)


def groups(*registers: int) -> tuple[Warpgroup, ...]:
    """Return the warpgroups with other registers."""
    return tuple(replace(g, registers=r) for g, r in zip(P.warpgroups, registers, strict=True))
