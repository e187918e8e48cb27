"""Which processes stand for the warps of a program?  Program -> parts.

All warps of a role run the same operations, so one process stands for them, with two exceptions.
Where a hand-over begins or ends, every warpgroup is a process of its own, because each has its own
share.  Where warps that are not independent share a buffer, two processes stand for any two of
them: a race between warps of one role is a race between these two.
"""

from __future__ import annotations

from typing import NamedTuple

from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Role
from pipelink_rules.model.program import HANDOVER, Program, ProgramRole

WARPGROUP = 4  # warps


class WarpSet(NamedTuple):
    """Some warps of a program role that act as one process."""

    name: str
    role: ProgramRole
    warps: int  # that it stands for
    group: int  # warpgroup of the role, 0 where warpgroups are not told apart
    twin: int  # 0, or 1 for the second of two representatives


def parts_of(program: Program) -> tuple[WarpSet, ...]:
    """The parts of all roles, in program order."""
    ends = {end for end, channel in program.channel_ends().items() if channel.kind == HANDOVER}
    contracts = {item.name: item.variant.contract for item in program.instances}
    found: list[WarpSet] = []
    for role in program.roles:
        handed = any(
            (instance, port.name) in ends
            for instance, name in role.members
            for port in contracts[instance].ports
            if port.role == name
        )
        groups = max(role.warps // WARPGROUP, 1) if handed else 1
        twins = (
            2
            if any(
                shares_buffer(contracts[instance].role(name), role.warps)
                for instance, name in role.members
                if any(buffer.role == name for buffer in contracts[instance].buffers)
            )
            else 1
        )
        for group in range(groups):
            warps = role.warps // groups
            for twin in range(twins):
                label = f"{role.name}" + (f" warpgroup {group}" if groups > 1 else "")
                mine = warps if twins == 1 else (warps // 2 if twin else warps - warps // 2)
                found.append(WarpSet(label, role, mine, group, twin))
    return tuple(found)


def shares_buffer(role: Role, warps: int) -> bool:
    """Whether warps of the role use the same bytes of its buffers."""
    return role.split != "warp" and min(warps, evaluate(role.warps, {})) > 1
