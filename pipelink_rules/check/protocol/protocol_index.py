"""Look-ups of a program's protocol: warp sets, rings, and the clause behind every action.

All warps of a role run the same operations, so one process stands for them, with two exceptions. At
a handover, every warpgroup is a separate process, because each has a separate ring.  Where warps
that are not independent share a buffer, two processes stand for any two of them: a race between
warps of one role is a race between these two.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from pipelink_rules.check.protocol.model import ELSEWHERE, Origin
from pipelink_rules.contract.parse_operations import format_operation
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import Contract, Operation, Port, Repeat, Role
from pipelink_rules.model.operation import repeats
from pipelink_rules.model.program import HANDOVER, Channel, Program, ProgramRole

WARPGROUP = 4  # warps


def loop_fields(program: Program) -> frozenset[str]:
    """Return the fields that counts of repeats depend on."""
    return frozenset(
        name
        for instance in program.instances
        for role in instance.variant.contract.roles
        for name in count_names(role.body)
    )


def count_names(body: tuple[Operation | Repeat, ...]) -> Iterator[str]:
    """Yield the names in the counts of repeats, nested ones too."""
    for repeat in repeats(body):
        yield from names(repeat.count)


class WarpSet(NamedTuple):
    """Some warps of a program role that act as one process."""

    name: str
    role: ProgramRole
    warps: int  # that it stands for
    group: int  # warpgroup of the role, 0 where warpgroups do not differ
    twin: int  # 0, or 1 for the second of two representatives


def warp_sets(program: Program) -> tuple[WarpSet, ...]:
    """Return the warp sets of all roles, in program order."""
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
    """Return whether warps of the role use the same bytes of its buffers."""
    return role.split != "warp" and min(warps, evaluate(role.warps, {})) > 1


class TooManyOperations(Exception):
    """A role has too many operations per work tile to be analyzed."""

    def __init__(self, warp_set: WarpSet, origin: Origin):
        super().__init__(warp_set.name)
        self.warp_set, self.origin = warp_set, origin


class ProtocolIndex:
    """Look-ups of a program that do not depend on stages and work tiles."""

    def __init__(self, program: Program):
        self.program = program
        self.contracts: dict[str, Contract] = {
            item.name: item.variant.contract for item in program.instances
        }
        self.warp_sets = warp_sets(program)
        self.channels = program.channel_ends()
        # CTAs that differ: those of a cluster, where they reach into each other
        shared = any(channel.multicast for channel in program.channels)
        self.ctas = math.prod(program.cluster) if shared else 1
        self.names_in: dict[int, dict[str, str]] = {}  # CTA -> names of its objects (ctas.py)
        self.channel_of: dict[str, Channel] = {}  # barrier or memory -> channel
        for channel in program.channels:
            for share in range(channel.shares):
                for cta in range(self.ctas):
                    names = ring_names(channel, share, cta)
                    self.channel_of.update(dict.fromkeys(names, channel))
        self.loops = loop_fields(program)  # work fields that decide how often something is done
        self._origins: dict[tuple[str, str, int], Origin] = {}

    def origin(self, instance: str, role: str, op: Operation) -> Origin:
        """Return the origin of an operation; one object per operation and instance."""
        key = (instance, role, id(op))
        if key not in self._origins:
            self._origins[key] = Origin(
                instance, role, format_operation(op), op.span, op.target, op
            )
        return self._origins[key]

    def accumulates(self, instance: str, op: Operation) -> Origin:
        """Return the origin of what a tcgen05.mma does to tensor memory."""
        port = self.contracts[instance].port(op.source)
        key = (instance, f"{port.role} -> {op.source}", id(op))
        if key not in self._origins:
            text = format_operation(op)
            self._origins[key] = Origin(instance, port.role, text, op.span, op.source, op)
        return self._origins[key]

    def moved(self, instance: str, port: Port, verb: str) -> Origin:
        """Return the origin of one end of a handover, which the glue performs."""
        key = (instance, port.role, id(port))
        if key not in self._origins:
            text = f"{verb} {port.name}"
            self._origins[key] = Origin(instance, port.role, text, port.span, port.name)
        return self._origins[key]


def ring_names(channel: Channel, share: int, cta: int = 0) -> tuple[str, str, str]:
    """Return the memory, full and empty barriers of a ring, or of a warpgroup's at a handover."""
    name = f"{channel.name}#{share}" if channel.shares > 1 else channel.name
    name = in_cta(name, cta)
    return name, f"{name}.full", f"{name}.empty"


def in_cta(name: str, cta: int) -> str:
    """Return the name of an object in a CTA of the cluster; in the first one it is unchanged."""
    return f"{name}{ELSEWHERE}{cta}" if cta else name
