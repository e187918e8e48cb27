"""Placement problems that several tests use."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipelink_rules.model.placement import (
    BarrierRequest,
    PlacementProblem,
    RoleRequest,
    SharedAllocation,
    StageVariable,
)


def gemm(**changes: Any) -> PlacementProblem:
    """A persistent GEMM, tile 128 x 256 x 64 in bf16: one loader warp, two mma warpgroups."""
    problem = PlacementProblem(
        name="gemm",
        target="sm_90a",
        occupancy=1,
        lifetimes=("work",),
        items=(
            SharedAllocation("load.ab", 49152, 1024, 1, "load.ab"),
            SharedAllocation("store.staging", 32768, 1024, 1),
        ),
        stages=(StageVariable("load.ab", 2, 8),),
        roles=(
            RoleRequest("load", 1, False, 40, 40, 24),
            RoleRequest("mma", 8, True, 160, 240, 154),
        ),
        barriers=(BarrierRequest("store.sync", 1),),
        mbarriers_per_stage=(("load.ab", 2),),
    )
    return replace(problem, **changes)


def stream(rows: int = 4, **changes: Any) -> PlacementProblem:
    """A row kernel without warpgroups: a loader, `rows` computing warps, a storer."""
    problem = PlacementProblem(
        name="rms_norm",
        target="sm_90a",
        occupancy=1,
        lifetimes=("work",),
        items=(
            SharedAllocation("load.x", 32768, 128, 1, "load.x"),
            SharedAllocation("norm.y", 32768, 128, 1, "norm.y"),
        ),
        stages=(StageVariable("load.x", 2, 8, 0), StageVariable("norm.y", 2, 8, 1)),
        roles=(
            RoleRequest("load", 1, False, 40, 40, 0),
            RoleRequest("norm", rows, False, 64, 128, 0),
            RoleRequest("store", 1, False, 24, 24, 0),
        ),
        barriers=(),
        mbarriers_per_stage=(("load.x", 2), ("norm.y", 2)),
    )
    return replace(problem, **changes)


def _phases(first: int, end: int) -> int:
    return ((1 << (end - first)) - 1) << first


def decode(ops: int = 7) -> PlacementProblem:
    """A decode megakernel: ops whose load, compute and store overlap, over 16 KiB pages."""
    pages = ((3, 2, 1), (1, 2, 2), (4, 2, 2), (3, 2, 1), (4, 2, 2), (4, 2, 2), (4, 1, 1))
    items: list[SharedAllocation] = []
    barriers: list[BarrierRequest] = []
    count = 2 * ops + 2
    for index, (weights, inputs, outputs) in enumerate(pages[:ops]):
        at = 2 * index
        for kind, number, life in (
            ("w", weights, _phases(at, at + 3)),
            ("act", inputs, _phases(at + 1, at + 3)),
            ("out", outputs, _phases(at + 2, at + 4)),
        ):
            items += [
                SharedAllocation(f"op{index}.{kind}{n}", 16384, 1024, life) for n in range(number)
            ]
        items.append(SharedAllocation(f"op{index}.scratch", 2048, 128, _phases(at + 1, at + 4)))
        barriers += [BarrierRequest(f"op{index}.b{n}", _phases(at + 1, at + 4)) for n in range(3)]
    every = _phases(0, count)
    items += [
        SharedAllocation("instructions", 1024, 128, every),
        SharedAllocation("timing", 512, 16, every),
        SharedAllocation("state", 256, 16, every),
    ]
    return PlacementProblem(
        name="decode",
        target="sm_90a",
        occupancy=1,
        lifetimes=tuple(f"p{index}" for index in range(count)),
        items=tuple(items),
        stages=(),
        roles=(
            RoleRequest("consumer", 16, True, 104, 240, 0),
            *(RoleRequest(n, 1, False, 32, 32, 0) for n in ("loader", "storer", "control")),
        ),
        barriers=tuple(barriers),
        mbarriers_per_stage=(),
        mbarriers_fixed=51,
    )
