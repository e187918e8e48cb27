"""What do operations on rings do?  The part of a run that moves cursors.

Rings in shared and in tensor memory work alike; what an access is depends on where the ring lies.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipelink_rules.check.protocol.arrival_counts import acts, announced, arrivals, copied
from pipelink_rules.check.protocol.cursor import Cursor
from pipelink_rules.check.protocol.model import (
    ACCUMULATE,
    ARRIVE,
    COPY,
    MMA,
    READ,
    STORE,
    TENSOR_COMMIT,
    TENSOR_LOAD,
    TENSOR_MMA,
    TENSOR_STORE,
    WAIT,
    WRITE,
    Action,
    Origin,
)
from pipelink_rules.check.protocol.problem import Problem
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex, ring_names
from pipelink_rules.check.protocol.warp_sets import WARPGROUP, WarpSet
from pipelink_rules.model.contract import Operation
from pipelink_rules.model.program import HANDOVER, RING, TENSOR_MEMORY, Channel

Work = Mapping[str, int]  # the fields of one work item
RingEnd = tuple[str, tuple[str, str]]  # memory, (instance, port)
KINDS = {  # what an access of a channel is
    RING: {"write": WRITE, "read": READ, "mma": MMA, "store": STORE},
    TENSOR_MEMORY: {"write": TENSOR_STORE, "read": TENSOR_LOAD},
}


class RingEnds:
    """The state of a run, and its operations on rings."""

    def __init__(
        self,
        blueprint: ProtocolIndex,
        part: WarpSet,
        stages: Mapping[str, int],
        cta: int | None = None,
        own_last: bool = False,
    ):
        self.blueprint, self.part, self.stages = blueprint, part, stages
        self.rank = cta  # place in a cluster; None: the CTA shares nothing with others
        self.cta = cta or 0
        self.own_last = own_last  # of the CTAs that are released to
        self.actions: list[Action] = []
        self.cursors: dict[RingEnd, Cursor] = {}
        self.written: dict[str, int] = {}  # memory of a buffer -> items
        self.turn: dict[str, int] = {}
        self.turns: dict[str, int] = {}  # named barrier -> generations per period
        self.threads: dict[str, int] = {}
        self.moves: dict[RingEnd, int] = {}  # items per period
        self.first: dict[RingEnd | str, Origin] = {}  # first use of a ring end or named barrier
        self.problems: list[Problem] = []
        self.pieces: dict[str, int] = {}  # the same -> stages
        self.at: dict[str, int] = {}  # piece of a buffer -> writes in this call
        self.call = 0
        self.work: Work = {}

    def _ring(self, instance: str, port: str) -> tuple[str, str, str]:
        channel = self.blueprint.channels[instance, port]
        share = 0
        if channel.kind == HANDOVER and channel.shares > 1:
            share = self.call * (self.part.role.warps // WARPGROUP) + self.part.group
        return ring_names(channel, share, self.cta)

    def _step(self, memory: str, instance: str, origin: Origin) -> int:
        """Moves a cursor on; returns the item it now stands on."""
        end = (memory, (instance, origin.name))
        cursor = self.cursors.get(end)
        if cursor is None:
            cursor = self.cursors[end] = Cursor()
            self.first[end] = origin
        cursor.next += 1
        return cursor.next - 1

    def _add(
        self, kind: str, target: str = "", item: int = 0, amount: int = 1, *, origin: Origin
    ) -> None:
        self.actions.append(Action(kind, target, item, amount, origin=origin))

    def _ring_op(self, instance: str, op: Operation, origin: Origin) -> None:
        memory, full, empty = self._ring(instance, op.target)
        channel = self.blueprint.channels[instance, op.target]
        verb = op.verb
        if verb == "acquire":
            item = self._step(memory, instance, origin)
            self._add(WAIT, empty, item - self.stages[channel.name], origin=origin)
            return
        if verb == "wait":
            self._add(WAIT, full, self._step(memory, instance, origin), origin=origin)
            return
        cursor = self.cursors.get((memory, (instance, op.target)))
        item_now = cursor.current if cursor else None
        count = arrivals(self.blueprint, self.part, instance, op.target)
        if verb == "release":
            if cursor is not None and item_now is not None and item_now - op.lag >= cursor.start:
                for cta in self._reached(channel):
                    place = empty if cta == self.cta else ring_names(channel, 0, cta)[2]
                    if count:
                        self._add(ARRIVE, place, item_now - op.lag, count, origin=origin)
        elif item_now is None:
            action = Action(verb, memory, origin=origin)
            self.problems.append(Problem("not held", memory, action))
        elif verb == "commit" and op.source:
            for cta in self._reached(channel):
                _, filled, emptied = ring_names(channel, 0, cta)
                barrier = filled if channel.producer == (instance, op.target) else emptied
                self._add(TENSOR_COMMIT, barrier, item_now, self.part.warps, origin=origin)
        elif verb in ("commit", "expect"):
            size = 0
            if verb == "expect":
                size = announced(self.blueprint, self.part, instance, op.target, self.work)
            if count:
                self.actions.append(Action(ARRIVE, full, item_now, count, size, "", origin))
        elif verb == "copy":
            self._copy(instance, op, item_now, origin)
        else:
            kind = TENSOR_MMA if op.source and verb == "mma" else KINDS[channel.kind][verb]
            self._add(kind, memory, item_now, origin=origin)
            if kind == TENSOR_MMA:
                self._accumulate(instance, op)

    def _accumulate(self, instance: str, op: Operation) -> None:
        """The other half of a tcgen05.mma: what it does to tensor memory."""
        memory, _, _ = self._ring(instance, op.source)
        cursor = self.cursors.get((memory, (instance, op.source)))
        origin = self.blueprint.accumulates(instance, op)
        if cursor is None or cursor.current is None:
            self.problems.append(Problem("not held", memory, Action("mma", memory, origin=origin)))
        else:
            self._add(ACCUMULATE, memory, cursor.current, origin=origin)

    def _copy(self, instance: str, op: Operation, item: int, origin: Origin) -> None:
        """One copy, or the part of it that this CTA brings to every CTA of its group."""
        if not acts(self.blueprint, self.part, instance, op.target):
            return
        channel = self.blueprint.channels[instance, op.target]
        size = copied(self.blueprint, self.part, instance, op)
        group: tuple[int, ...] = (self.cta,)
        shared = {member.member: member for member in channel.multicast}.get(op.member)
        if shared is not None and self.rank is not None:
            group = shared.onwards(self.rank)
            size //= len(group)
        for cta in group:
            memory, full, _ = ring_names(channel, 0, cta)
            self.actions.append(Action(COPY, memory, item, 1, size, full, origin))

    def _reached(self, channel: Channel) -> tuple[int, ...]:
        """The CTAs that are released to, in an order that looks alike from all of them.

        The lanes of a warp arrive at the same time, in no order: it is judged with the own CTA
        first and with it last.
        """
        if self.rank is None:
            return (self.cta,)
        peers = [cta for shared in channel.multicast for cta in shared.onwards(self.rank)]
        found = tuple(dict.fromkeys((self.rank, *peers)))
        return found[::-1] if self.own_last else found
