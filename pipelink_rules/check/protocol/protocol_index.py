"""Who is who in the protocol of a program: parts, rings, and the clause behind every action."""

from __future__ import annotations

import math

from pipelink_rules.check.protocol.loop_fields import loop_fields
from pipelink_rules.check.protocol.model import ELSEWHERE, Origin
from pipelink_rules.check.protocol.warp_sets import WarpSet, parts_of
from pipelink_rules.contract.format_operation import format_operation
from pipelink_rules.model.contract import Contract, Operation, Port
from pipelink_rules.model.program import Channel, Program


class TooManyOperations(Exception):
    """A role has too many operations per work item to be checked."""

    def __init__(self, part: WarpSet, origin: Origin):
        super().__init__(part.name)
        self.part, self.origin = part, origin


class ProtocolIndex:
    """A program made ready to be composed; made once, whatever the stages and work items."""

    def __init__(self, program: Program):
        self.program = program
        self.contracts: dict[str, Contract] = {
            item.name: item.variant.contract for item in program.instances
        }
        self.parts = parts_of(program)
        self.channels = program.channel_ends()
        # CTAs that are told apart: those of a cluster, where they reach into each other
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
        """The origin of an operation; one object per operation and instance."""
        key = (instance, role, id(op))
        if key not in self._origins:
            self._origins[key] = Origin(instance, role, format_operation(op), op.span, op.target)
        return self._origins[key]

    def accumulates(self, instance: str, op: Operation) -> Origin:
        """The origin of what a tcgen05.mma does to tensor memory."""
        port = self.contracts[instance].port(op.source)
        key = (instance, f"{port.role} -> {op.source}", id(op))
        if key not in self._origins:
            self._origins[key] = Origin(
                instance, port.role, format_operation(op), op.span, op.source
            )
        return self._origins[key]

    def moved(self, instance: str, port: Port, verb: str) -> Origin:
        """The origin of one end of a hand-over, which the glue does."""
        key = (instance, port.role, id(port))
        if key not in self._origins:
            text = f"{verb} {port.name}"
            self._origins[key] = Origin(instance, port.role, text, port.span, port.name)
        return self._origins[key]


def ring_names(channel: Channel, share: int, cta: int = 0) -> tuple[str, str, str]:
    """The memory, full and empty barriers of a ring, or of one share of a hand-over, in a CTA."""
    name = f"{channel.name}#{share}" if channel.shares > 1 else channel.name
    name = in_cta(name, cta)
    return name, f"{name}.full", f"{name}.empty"


def in_cta(name: str, cta: int) -> str:
    """What an object is called in a CTA of the cluster; the first one's names stay short."""
    return f"{name}{ELSEWHERE}{cta}" if cta else name
