"""The resources that a program needs of an SM: Program -> PlacementProblem."""

from pathlib import Path

from pipelink_rules.files.codec import read_json
from pipelink_rules.model.placement import (
    BarrierRequest,
    Placement,
    PlacementProblem,
    RoleRequest,
    SharedAllocation,
    StageVariable,
    TensorMemoryRequest,
)
from pipelink_rules.model.program import HANDOVER, TENSOR_MEMORY, Channel, Program
from pipelink_rules.place.verify import demand
from pipelink_rules.program.link_constants import constant_value

LIFETIME = "work"  # the only one: every allocation is live as long as the kernel
LIVE = 1  # its mask
FULL_AND_EMPTY = 2  # mbarriers of one stage of one ring
# One fixed entry of the table, not an mbarrier, holds the address of the tensor memory.

# Priority of stages: rings that hide the latency of global memory come first.
COPIED, WRITTEN, HANDED_OVER = 0, 1, 2


def placement_problem(program: Program) -> PlacementProblem:
    """Return the placement problem of a program.

    Channels are `channel.name`, buffers `instance.buffer`, named barriers `instance.barrier`,
    roles `ProgramRole.name`.
    """
    channels = [
        SharedAllocation(item.name, item.stage_bytes, item.align, LIVE, item.name, item.span)
        for item in program.channels
        if item.kind != TENSOR_MEMORY
    ]
    buffers = [
        SharedAllocation(
            f"{item.name}.{buffer.name}",
            constant_value(buffer.bytes),
            buffer.align,
            LIVE,
            span=buffer.span,
        )
        for item in program.instances
        for buffer in item.variant.contract.buffers
    ]
    barriers = [
        BarrierRequest(f"{instance.name}.{barrier.name}", LIVE, barrier.span)
        for instance in program.instances
        for barrier in instance.variant.contract.named_barriers
    ]
    return PlacementProblem(
        name=program.name,
        target=program.target,
        occupancy=program.occupancy,
        lifetimes=(LIFETIME,),
        items=tuple(sorted((*channels, *buffers), key=lambda item: item.name)),
        stages=tuple(
            StageVariable(
                item.name, item.minimum, item.maximum, _priority(program, item), item.span
            )
            for item in program.channels
        ),
        roles=tuple(
            RoleRequest(
                role.name,
                role.warps,
                role.warpgroup,
                role.minimum,
                role.want,
                role.entry,
                program.instance(role.members[0][0]).span,
            )
            for role in program.roles
        ),
        barriers=tuple(sorted(barriers, key=lambda item: item.name)),
        mbarriers_per_stage=tuple(
            (item.name, FULL_AND_EMPTY * item.shares) for item in program.channels
        ),
        mbarriers_fixed=int(any(item.kind == TENSOR_MEMORY for item in program.channels)),
        span=program.spec.span,
        tensor=tuple(
            TensorMemoryRequest(item.name, item.columns, LIVE, item.name, item.span)
            for item in program.channels
            if item.kind == TENSOR_MEMORY
        ),
    )


def _priority(program: Program, channel: Channel) -> int:
    if channel.kind in (HANDOVER, TENSOR_MEMORY):  # they hold nothing from global memory
        return HANDED_OVER
    return COPIED if program.port(channel.producer).proxy == "async" else WRITTEN


def read_placement(path: str | Path, program: Program) -> Placement:
    """The placement in a file; PL0107 where it is none of this program."""
    placement = read_json(path, Placement)
    demand(placement_problem(program), placement, str(path))
    return placement
