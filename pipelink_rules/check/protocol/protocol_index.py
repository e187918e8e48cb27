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
from pipelink_rules.model.contract import Contract, Operation, Port, Repeat
from pipelink_rules.model.operation import repeats
from pipelink_rules.model.program import HANDOVER, Channel, Program, ProgramRole

WARPGROUP = 4  # warps


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
        shared = any(
            _shares_buffer(contracts[instance], name, role.warps) for instance, name in role.members
        )
        twins = 2 if shared else 1
        for group in range(groups):
            warps = role.warps // groups
            for twin in range(twins):
                label = f"{role.name} warpgroup {group}" if groups > 1 else role.name
                mine = warps if twins == 1 else (warps // 2 if twin else warps - warps // 2)
                found.append(WarpSet(label, role, mine, group, twin))
    return tuple(found)


def _shares_buffer(contract: Contract, name: str, warps: int) -> bool:
    """Return whether several warps of a role use the same bytes of one of its buffers."""
    role, buffers = contract.role(name), [item for item in contract.buffers if item.role == name]
    return bool(buffers) and role.split != "warp" and min(warps, evaluate(role.warps, {})) > 1


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
        # work fields that decide how often something is done
        self.loops = {
            name
            for contract in self.contracts.values()
            for role in contract.roles
            for name in count_names(role.body)
        }
        self._origins: dict[tuple[str, str, str, int], Origin] = {}

    def origin(self, instance: str, role: str, op: Operation) -> Origin:
        """Return the origin of an operation; one object per operation and instance."""
        return self._origin(instance, role, op, op.target)

    def accumulates(self, instance: str, op: Operation) -> Origin:
        """Return the origin of what a tcgen05.mma does to tensor memory."""
        role = self.contracts[instance].port(op.source).role
        return self._origin(instance, role, op, op.source)

    def _origin(self, instance: str, role: str, op: Operation, name: str) -> Origin:
        key = (instance, role, name, id(op))
        if key not in self._origins:
            self._origins[key] = Origin(instance, role, format_operation(op), op.span, name, op)
        return self._origins[key]

    def moved(self, instance: str, port: Port, verb: str) -> Origin:
        """Return the origin of one end of a handover, which the glue performs."""
        key = (instance, port.role, port.name, id(port))
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
