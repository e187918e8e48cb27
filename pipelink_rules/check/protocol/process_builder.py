"""Actions of one warp set in a period of given work tiles: WarpSet -> Process.

The operations of a role are interpreted with a cursor per end of a ring and the stage of every
buffer.  Cursors and stages continue from work tile to work tile, as in the kernel.  An entry keeps
only the cursors of its rings between calls, though: a role without a ring does not know the last
stage of a buffer, so it starts every call with the first one.

The runtime elects one lane of every warp.  Behind a raw port one lane may act for all: the contract
declares what all threads of the role do together.
"""

import math
from collections.abc import Mapping, Sequence

from pipelink_rules.check.protocol.model import SOME, UNKNOWN, Action, Kind, Origin, Process
from pipelink_rules.check.protocol.protocol_index import (
    WARPGROUP,
    ProtocolIndex,
    TooManyOperations,
    WarpSet,
    in_cta,
    ring_names,
)
from pipelink_rules.check.protocol.protocol_problems import ItemNotAcquired
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import DTYPES, Operation, Port, Repeat, Role
from pipelink_rules.model.program import HANDOVER, RING, TENSOR_MEMORY, Channel

Work = Mapping[str, int]  # the fields of one work tile
RingEnd = tuple[str, tuple[str, str]]  # memory, (instance, port)
KINDS = {  # what an access of a channel is
    RING: {"write": Kind.WRITE, "read": Kind.READ, "mma": Kind.MMA, "store": Kind.STORE},
    TENSOR_MEMORY: {"write": Kind.TENSOR_STORE, "read": Kind.TENSOR_LOAD},
}
MOST_ACTIONS = 20_000  # of one process and period
WARP = 32  # threads
FENCES = {"async": Kind.FENCE, "tensor before": Kind.BEFORE, "tensor after": Kind.AFTER}


class Cursor:
    """One end of a ring: the next item, and the items of the current call of the entry."""

    def __init__(self) -> None:
        self.next = 0
        self.start = 0  # first item of this call

    @property
    def current(self) -> int | None:
        """Return the item last acquired or waited for in this call."""
        return self.next - 1 if self.next > self.start else None


def arrivals(protocol: ProtocolIndex, warp_set: WarpSet, instance: str, name: str) -> int:
    """Return the arrivals of a warp set by one operation on a ring.

    If they cannot be divided, the first warp set performs all of them.  Accesses of the others then
    need another order, or they race.
    """
    port = protocol.contracts[instance].port(name)
    if not port.raw:
        return warp_set.warps
    total = evaluate(port.arrivals, {})
    mine, rest = divmod(total * warp_set.warps, warp_set.role.warps)
    if rest == 0:
        return mine
    return total if _is_first(warp_set) else 0


def announced(
    protocol: ProtocolIndex, warp_set: WarpSet, instance: str, name: str, work: Mapping[str, int]
) -> int:
    """Return the bytes that the warps of a warp set expect per item of a ring port."""
    port = protocol.contracts[instance].port(name)
    if port.tx_bytes is None:
        return 0
    literal = port.tx_bytes.literal
    size = literal if literal is not None else evaluate(port.tx_bytes, work)
    return size * _times(warp_set, port)


def copied(protocol: ProtocolIndex, warp_set: WarpSet, instance: str, op: Operation) -> int:
    """Return the bytes of one tensor copy; a bulk copy transfers what is expected."""
    contract = protocol.contracts[instance]
    source, ring = contract.port(op.source), contract.port(op.target)
    if ring.tx_bytes is None:
        return 0
    if source.tile is None:
        return UNKNOWN
    box = math.prod(evaluate(extent, {}) for extent in source.tile.box)
    return box * DTYPES[source.members[0].dtype][0] * _times(warp_set, ring)


def _times(warp_set: WarpSet, port: Port) -> int:
    """Return how often a warp set expects or copies an item."""
    return int(_is_first(warp_set)) if port.raw else warp_set.warps


def acts(protocol: ProtocolIndex, warp_set: WarpSet, instance: str, name: str) -> bool:
    """Return whether a warp set copies: behind a raw port one of several acts for all."""
    return not protocol.contracts[instance].port(name).raw or _is_first(warp_set)


def _is_first(warp_set: WarpSet) -> bool:
    return (warp_set.group, warp_set.twin) == (0, 0)


class RingCursors:
    """The state of an interpreted warp set, and its operations on rings."""

    def __init__(
        self,
        protocol: ProtocolIndex,
        warp_set: WarpSet,
        stages: Mapping[str, int],
        cta: int | None = None,
        self_last: bool = False,
    ):
        self.protocol, self.warp_set, self.stages = protocol, warp_set, stages
        self.rank = cta  # place in a cluster; None: the CTA shares nothing with others
        self.cta = cta or 0
        self.self_last = self_last  # of the CTAs that are released to
        self.actions: list[Action] = []
        self.cursors: dict[RingEnd, Cursor] = {}
        self.written: dict[str, int] = {}  # memory of a buffer -> items
        self.turn: dict[str, int] = {}
        self.turns: dict[str, int] = {}  # named barrier -> generations per period
        self.threads: dict[str, int] = {}
        self.moves: dict[RingEnd, int] = {}  # items per period
        self.first: dict[RingEnd | str, Origin] = {}  # first use of a ring end or named barrier
        self.problems: list[ItemNotAcquired] = []
        self.pieces: dict[str, int] = {}  # the same -> stages
        self.at: dict[str, int] = {}  # piece of a buffer -> writes in this call
        self.call = 0
        self.work: Work = {}

    def _ring(self, instance: str, port: str) -> tuple[str, str, str]:
        channel = self.protocol.channels[instance, port]
        share = 0
        if channel.kind == HANDOVER and channel.shares > 1:
            share = self.call * (self.warp_set.role.warps // WARPGROUP) + self.warp_set.group
        return ring_names(channel, share, self.cta)

    def _step(self, memory: str, instance: str, origin: Origin) -> int:
        """Advance a cursor and return its item."""
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
        channel = self.protocol.channels[instance, op.target]
        if op.verb == "acquire":
            item = self._step(memory, instance, origin)
            self._add(Kind.WAIT, empty, item - self.stages[channel.name], origin=origin)
            return
        if op.verb == "wait":
            self._add(Kind.WAIT, full, self._step(memory, instance, origin), origin=origin)
            return
        cursor = self.cursors.get((memory, (instance, op.target)))
        current = cursor.current if cursor else None
        if op.verb == "release":
            if cursor is not None and current is not None and current - op.lag >= cursor.start:
                self._release(instance, op, channel, current - op.lag, origin)
        elif current is None:
            self.problems.append(ItemNotAcquired(memory, Action(op.verb, memory, origin=origin)))
        elif op.verb == "commit" and op.source:
            self._tensor_commit(instance, op, channel, current, origin)
        elif op.verb in ("commit", "expect"):
            count = arrivals(self.protocol, self.warp_set, instance, op.target)
            size = 0
            if op.verb == "expect":
                size = announced(self.protocol, self.warp_set, instance, op.target, self.work)
            if count:
                self.actions.append(Action(Kind.ARRIVE, full, current, count, size, "", origin))
        elif op.verb == "copy":
            self._copy(instance, op, current, origin)
        elif op.verb == "mma" and op.source:
            self._add(Kind.TENSOR_MMA, memory, current, origin=origin)
            self._accumulate(instance, op)
        else:
            self._add(KINDS[channel.kind][op.verb], memory, current, origin=origin)

    def _release(
        self, instance: str, op: Operation, channel: Channel, item: int, origin: Origin
    ) -> None:
        count = arrivals(self.protocol, self.warp_set, instance, op.target)
        for cta in self._reached(channel) if count else ():
            empty = self._ring(instance, op.target)[2]
            barrier = empty if cta == self.cta else ring_names(channel, 0, cta)[2]
            self._add(Kind.ARRIVE, barrier, item, count, origin=origin)

    def _tensor_commit(
        self, instance: str, op: Operation, channel: Channel, item: int, origin: Origin
    ) -> None:
        for cta in self._reached(channel):
            _, full, empty = ring_names(channel, 0, cta)
            barrier = full if channel.producer == (instance, op.target) else empty
            self._add(Kind.TENSOR_COMMIT, barrier, item, self.warp_set.warps, origin=origin)

    def _accumulate(self, instance: str, op: Operation) -> None:
        """The other half of a tcgen05.mma: what it does to tensor memory."""
        memory, _, _ = self._ring(instance, op.source)
        cursor = self.cursors.get((memory, (instance, op.source)))
        origin = self.protocol.accumulates(instance, op)
        if cursor is None or cursor.current is None:
            self.problems.append(ItemNotAcquired(memory, Action("mma", memory, origin=origin)))
        else:
            self._add(Kind.ACCUMULATE, memory, cursor.current, origin=origin)

    def _copy(self, instance: str, op: Operation, item: int, origin: Origin) -> None:
        """Add a copy, or the slice of it that this CTA copies to its multicast group."""
        if not acts(self.protocol, self.warp_set, instance, op.target):
            return
        channel = self.protocol.channels[instance, op.target]
        size = copied(self.protocol, self.warp_set, instance, op)
        group: tuple[int, ...] = (self.cta,)
        shared = {member.member: member for member in channel.multicast}.get(op.member)
        if shared is not None and self.rank is not None:
            group = shared.onwards(self.rank)
            size //= len(group)
        for cta in group:
            memory, full, _ = ring_names(channel, 0, cta)
            self.actions.append(Action(Kind.COPY, memory, item, 1, size, full, origin))

    def _reached(self, channel: Channel) -> tuple[int, ...]:
        """Return the CTAs that are released to, in an order that is the same seen from all of them.

        The lanes of a warp arrive simultaneously, in no order: both the order with this CTA first
        and that with this CTA last are analyzed.
        """
        if self.rank is None:
            return (self.cta,)
        peers = [cta for shared in channel.multicast for cta in shared.onwards(self.rank)]
        found = tuple(dict.fromkeys((self.rank, *peers)))
        return found[::-1] if self.self_last else found


class ProcessBuilder(RingCursors):
    """Interprets the operations of one warp set and records its actions."""

    def process(self, work: Sequence[Work]) -> Process:
        """Return the process of this warp set for a period of these work tiles."""
        prologue = self._once("prologue")
        started = {name: cursor.next for name, cursor in self.cursors.items()}
        turned = dict(self.turn)
        self.actions = []
        for item in work:
            self.work = item
            for call in range(self.warp_set.role.calls):
                self.call = call
                for instance, name in self.warp_set.role.members:
                    self._member(instance, self.protocol.contracts[instance].role(name))
        period = tuple(self.actions)
        self.moves = {n: c.next - started.get(n, 0) for n, c in self.cursors.items()}
        self.turns = {name: turn - turned.get(name, 0) for name, turn in self.turn.items()}
        self.actions = []
        name = in_cta(self.warp_set.name, self.cta)
        return Process(name, period, prologue, self._once("epilogue"))

    def _once(self, clause: str) -> tuple[Action, ...]:
        self.actions = []
        for instance, name in self.warp_set.role.members:
            role = self.protocol.contracts[instance].role(name)
            self._begin(instance, role)
            self._body(instance, role, role.prologue if clause == "prologue" else role.epilogue)
        return tuple(self.actions)

    def _begin(self, instance: str, role: Role) -> None:
        self.at = {}
        for port in self.protocol.contracts[instance].ports:
            if port.role == role.name and (instance, port.name) in self.protocol.channels:
                end = (self._ring(instance, port.name)[0], (instance, port.name))
                if end in self.cursors:
                    self.cursors[end].start = self.cursors[end].next

    def _member(self, instance: str, role: Role) -> None:
        self._begin(instance, role)
        ports = self.protocol.contracts[instance].ports
        for port in ports:
            if port.role == role.name and port.direction == "in":
                self._move(instance, port)
        self._body(instance, role, role.body)
        for port in ports:
            if port.role == role.name and port.direction == "out":
                self._move(instance, port)

    def _body(self, instance: str, role: Role, body: Sequence[Operation | Repeat]) -> None:
        for item in body:
            if isinstance(item, Repeat):
                for _ in range(self._count(item)):
                    self._body(instance, role, item.body)
            else:
                origin = self.protocol.origin(instance, role.name, item)
                if len(self.actions) > MOST_ACTIONS:
                    raise TooManyOperations(self.warp_set, origin)
                self._op(instance, role, item, origin)

    def _count(self, repeat: Repeat) -> int:
        literal = repeat.count.literal
        return literal if literal is not None else evaluate(repeat.count, self.work)

    def _move(self, instance: str, port: Port) -> None:
        """Add a handover as the glue performs it: read before the entry, write after it."""
        channel = self.protocol.channels.get((instance, port.name))
        if channel is None or channel.kind != HANDOVER:
            return
        memory, full, empty = self._ring(instance, port.name)
        writes = port.direction == "out"
        origin = self.protocol.moved(instance, port, "hand over" if writes else "take")
        item = self._step(memory, instance, origin)
        count = self.warp_set.warps
        if writes:
            stages = self.stages[channel.name]
            self._add(Kind.TOUCH, port.name, amount=0, origin=origin)
            self._add(Kind.WAIT, empty, item - stages, origin=origin)
            self._add(Kind.WRITE, memory, item, origin=origin)
            self._add(Kind.ARRIVE, full, item, count, origin=origin)
        else:
            self._add(Kind.WAIT, full, item, origin=origin)
            self._add(Kind.READ, memory, item, origin=origin)
            self._add(Kind.ARRIVE, empty, item, count, origin=origin)

    def _op(self, instance: str, role: Role, op: Operation, origin: Origin) -> None:
        verb = op.verb
        if verb == "await":
            self._add(Kind.AWAIT, op.target, amount=op.count, origin=origin)
        elif verb == "fence":
            if op.target in FENCES:  # the other one is about global memory
                self._add(FENCES[op.target], origin=origin)
        elif verb in ("sync", "arrive"):
            self._named(instance, op, origin)
        elif (instance, op.target) in self.protocol.channels:
            if self.protocol.channels[instance, op.target].kind == HANDOVER:
                self._registers(instance, op, origin)
            else:
                self._ring_op(instance, op, origin)
        elif any(buffer.name == op.target for buffer in self.protocol.contracts[instance].buffers):
            self._buffer_op(instance, role, op, origin)
        else:
            self._registers(instance, op, origin)

    def _buffer_op(self, instance: str, role: Role, op: Operation, origin: Origin) -> None:
        contract = self.protocol.contracts[instance]
        buffer = next(buffer for buffer in contract.buffers if buffer.name == op.target)
        name = in_cta(f"{instance}.{buffer.name}", self.cta)
        if role.split != "role":  # every part of the work has a separate slice
            name += f" call {self.call}" if self.warp_set.role.calls > 1 else ""
            name += f" warpgroup {self.warp_set.group}" if self.warp_set.group else ""
        stages = buffer.stages
        if not self._counts_on(instance, role):
            if op.verb == "write":
                self.at[name] = self.at.get(name, 0) + 1
            name = f"{name}[{max(self.at.get(name, 0) - 1, 0) % stages}]"
            stages = 1
        self.written.setdefault(name, 0)
        self.pieces[name] = stages
        if op.verb == "write":
            self.written[name] += 1
        kind = {"write": Kind.WRITE, "read": Kind.READ, "store": Kind.STORE}[op.verb]
        self._add(kind, name, self.written[name] - 1, origin=origin)

    def _counts_on(self, instance: str, role: Role) -> bool:
        """Return whether the role knows from call to call which stage of a buffer is next."""
        ports = self.protocol.contracts[instance].ports
        rings = ("ring", "tensor_memory")
        return any(port.role == role.name and port.space in rings for port in ports)

    def _registers(self, instance: str, op: Operation, origin: Origin) -> None:
        port = self.protocol.contracts[instance].port(op.target)
        if port.space == "registers":
            allowed = port.pending if op.verb == "write" else 0
            self._add(Kind.TOUCH, port.name, amount=allowed, origin=origin)
        elif port.space == "global" and op.verb == "write" and self._loads(instance, origin.role):
            self._add(Kind.TOUCH, port.name, amount=SOME, origin=origin)

    def _loads(self, instance: str, role: str) -> bool:
        """Return whether a role loads from tensor memory, so that what it writes may be pending."""
        ports = self.protocol.contracts[instance].ports
        return any(port.role == role and port.space == TENSOR_MEMORY for port in ports)

    def _named(self, instance: str, op: Operation, origin: Origin) -> None:
        name = in_cta(f"{instance}.{op.target}", self.cta)
        if name not in self.turn:
            barriers = self.protocol.contracts[instance].named_barriers
            count = next(barrier.count for barrier in barriers if barrier.name == op.target)
            self.threads[name] = evaluate(count, {})
            self.first[name] = origin
        turn = self.turn.get(name, 0)
        self.turn[name] = turn + 1
        self._add(Kind.SIGNAL, name, turn, WARP * self.warp_set.warps, origin=origin)
        if op.verb == "sync":
            self._add(Kind.MEET, name, turn, origin=origin)
