"""Actions of one warp set in a period of given work tiles: WarpSet -> Process.

The operations of a role are interpreted with a cursor per end of a ring and the stage of every
buffer.  Cursors and stages continue from work tile to work tile, as in the kernel.  An entry keeps
only the cursors of its rings between calls, though: a role without a ring does not know the last
stage of a buffer, so it starts every call with the first one.

The runtime elects one lane of every warp.  Behind a raw port one lane may act for all: the contract
declares what all threads of the role do together.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
from pipelink_rules.contract.item_layout import box_bytes
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Buffer, Operation, Port, Repeat, Role
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


@dataclass
class Cursor:
    """One end of a ring: the next item, and the items of the current call of the entry."""

    next: int = 0
    start: int = 0  # first item of this call

    @property
    def current(self) -> int | None:
        """Return the item last acquired or waited for in this call."""
        return self.next - 1 if self.next > self.start else None


class ProcessBuilder:
    """Interprets the operations of one warp set and records its actions."""

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
        self.is_first = (warp_set.group, warp_set.twin) == (0, 0)
        self.actions: list[Action] = []
        self.cursors: dict[RingEnd, Cursor] = {}
        self.written: dict[str, int] = defaultdict(int)  # memory of a buffer -> items
        self.turn: dict[str, int] = defaultdict(int)
        self.turns: dict[str, int] = {}  # named barrier -> generations per period
        self.threads: dict[str, int] = {}
        self.moves: dict[RingEnd, int] = {}  # items per period
        self.first: dict[RingEnd | str, Origin] = {}  # first use of a ring end or named barrier
        self.problems: list[ItemNotAcquired] = []
        self.pieces: dict[str, int] = {}  # the same -> stages
        self.at: dict[str, int] = {}  # piece of a buffer -> writes in this call
        self.call = 0
        self.work: Work = {}

    def process(self, work: Sequence[Work]) -> Process:
        """Return the process of this warp set for a period of these work tiles."""
        prologue = self._once("prologue")
        started = {end: cursor.next for end, cursor in self.cursors.items()}
        turned = dict(self.turn)
        self.actions = []
        for item in work:
            self.work = item
            for call in range(self.warp_set.role.calls):
                self.call = call
                for instance, name in self.warp_set.role.members:
                    self._member(instance, self.protocol.contracts[instance].role(name))
        period = tuple(self.actions)
        self.moves = {end: c.next - started.get(end, 0) for end, c in self.cursors.items()}
        self.turns = {name: turn - turned.get(name, 0) for name, turn in self.turn.items()}
        name = in_cta(self.warp_set.name, self.cta)
        return Process(name, period, prologue, self._once("epilogue"))

    def _once(self, clause: str) -> tuple[Action, ...]:
        self.actions = []
        for instance, name in self.warp_set.role.members:
            role = self.protocol.contracts[instance].role(name)
            self._begin(instance, role)
            self._body(instance, role, role.prologue if clause == "prologue" else role.epilogue)
        return tuple(self.actions)

    def _ports(self, instance: str, role: str) -> list[Port]:
        return [port for port in self.protocol.contracts[instance].ports if port.role == role]

    def _port(self, instance: str, name: str) -> Port:
        return self.protocol.contracts[instance].port(name)

    def _begin(self, instance: str, role: Role) -> None:
        self.at = {}
        for port in self._ports(instance, role.name):
            if (instance, port.name) in self.protocol.channels:
                cursor = self._cursor(instance, port.name)
                if cursor is not None:
                    cursor.start = cursor.next

    def _member(self, instance: str, role: Role) -> None:
        self._begin(instance, role)
        ports = self._ports(instance, role.name)
        for port in ports:
            if port.direction == "in":
                self._move(instance, port)
        self._body(instance, role, role.body)
        for port in ports:
            if port.direction == "out":
                self._move(instance, port)

    def _body(self, instance: str, role: Role, body: Sequence[Operation | Repeat]) -> None:
        for item in body:
            if isinstance(item, Repeat):
                literal = item.count.literal
                count = literal if literal is not None else evaluate(item.count, self.work)
                for _ in range(count):
                    self._body(instance, role, item.body)
            else:
                origin = self.protocol.origin(instance, role.name, item)
                if len(self.actions) > MOST_ACTIONS:
                    raise TooManyOperations(self.warp_set, origin)
                self._operation(role, item, origin)

    def _operation(self, role: Role, op: Operation, origin: Origin) -> None:
        channel = self.protocol.channels.get(origin.end)
        if op.verb == "await":
            self._add(Kind.AWAIT, op.target, amount=op.count, origin=origin)
        elif op.verb == "fence":
            if op.target in FENCES:  # the other one is about global memory
                self._add(FENCES[op.target], origin=origin)
        elif op.verb in ("sync", "arrive"):
            self._named(op, origin)
        elif channel is not None and channel.kind != HANDOVER:
            self._ring_op(op, channel, origin)
        else:
            contract = self.protocol.contracts[origin.instance]
            buffers = {buffer.name: buffer for buffer in contract.buffers}
            if channel is None and op.target in buffers:
                self._buffer_op(role, buffers[op.target], op.verb, origin)
            else:
                self._registers(op, origin)

    def _add(
        self, kind: str, target: str = "", item: int = 0, amount: int = 1, *, origin: Origin
    ) -> None:
        self.actions.append(Action(kind, target, item, amount, origin=origin))

    # Rings

    def _ring(self, instance: str, port: str) -> tuple[str, str, str]:
        channel = self.protocol.channels[instance, port]
        share = 0
        if channel.kind == HANDOVER and channel.shares > 1:
            share = self.call * (self.warp_set.role.warps // WARPGROUP) + self.warp_set.group
        return ring_names(channel, share, self.cta)

    def _cursor(self, instance: str, port: str) -> Cursor | None:
        return self.cursors.get((self._ring(instance, port)[0], (instance, port)))

    def _step(self, memory: str, origin: Origin) -> int:
        """Advance a cursor and return its item."""
        end = (memory, origin.end)
        if end not in self.cursors:
            self.cursors[end] = Cursor()
            self.first[end] = origin
        self.cursors[end].next += 1
        return self.cursors[end].next - 1

    def _arrivals(self, port: Port) -> int:
        """Return the arrivals of the warp set by one operation on a ring.

        If they cannot be divided, the first warp set performs all of them.  Accesses of the others
        then need another order, or they race.
        """
        if not port.raw:
            return self.warp_set.warps
        total = evaluate(port.arrivals, {})
        mine, rest = divmod(total * self.warp_set.warps, self.warp_set.role.warps)
        if rest == 0:
            return mine
        return total if self.is_first else 0

    def _times(self, port: Port) -> int:
        """Return how often the warp set expects or copies an item: raw, one acts for all."""
        return int(self.is_first) if port.raw else self.warp_set.warps

    def _expected_bytes(self, port: Port) -> int:
        """Return the bytes that the warps expect per item of a ring port."""
        if port.tx_bytes is None:
            return 0
        literal = port.tx_bytes.literal
        size = literal if literal is not None else evaluate(port.tx_bytes, self.work)
        return size * self._times(port)

    def _ring_op(self, op: Operation, channel: Channel, origin: Origin) -> None:
        memory, full, empty = self._ring(*origin.end)
        port = self._port(*origin.end)
        if op.verb == "acquire":
            item = self._step(memory, origin) - self.stages[channel.name]
            self._add(Kind.WAIT, empty, item, origin=origin)
            return
        if op.verb == "wait":
            self._add(Kind.WAIT, full, self._step(memory, origin), origin=origin)
            return
        cursor = self.cursors.get((memory, origin.end))
        current = cursor.current if cursor else None
        if op.verb == "release":
            if cursor is not None and current is not None and current - op.lag >= cursor.start:
                self._release(port, channel, current - op.lag, origin)
        elif current is None:
            self.problems.append(ItemNotAcquired(memory, Action(op.verb, memory, origin=origin)))
        elif op.verb == "commit" and op.source:
            for cta in self._reached(channel):
                _, full, empty = ring_names(channel, 0, cta)
                barrier = full if channel.producer == origin.end else empty
                self._add(Kind.TENSOR_COMMIT, barrier, current, self.warp_set.warps, origin=origin)
        elif op.verb in ("commit", "expect"):
            count = self._arrivals(port)
            size = self._expected_bytes(port) if op.verb == "expect" else 0
            if count:
                self.actions.append(Action(Kind.ARRIVE, full, current, count, size, "", origin))
        elif op.verb == "copy":
            self._copy(op, channel, current, origin)
        elif op.verb == "mma" and op.source:
            self._add(Kind.TENSOR_MMA, memory, current, origin=origin)
            self._accumulate(op, origin.instance)
        else:
            self._add(KINDS[channel.kind][op.verb], memory, current, origin=origin)

    def _release(self, port: Port, channel: Channel, item: int, origin: Origin) -> None:
        count = self._arrivals(port)
        for cta in self._reached(channel) if count else ():
            empty = self._ring(*origin.end)[2]
            barrier = empty if cta == self.cta else ring_names(channel, 0, cta)[2]
            self._add(Kind.ARRIVE, barrier, item, count, origin=origin)

    def _accumulate(self, op: Operation, instance: str) -> None:
        """The other half of a tcgen05.mma: what it does to tensor memory."""
        memory, _, _ = self._ring(instance, op.source)
        cursor = self._cursor(instance, op.source)
        origin = self.protocol.accumulates(instance, op)
        if cursor is None or cursor.current is None:
            self.problems.append(ItemNotAcquired(memory, Action("mma", memory, origin=origin)))
        else:
            self._add(Kind.ACCUMULATE, memory, cursor.current, origin=origin)

    def _copy(self, op: Operation, channel: Channel, item: int, origin: Origin) -> None:
        """Add a copy, or the slice of it that this CTA copies to its multicast group."""
        source, port = self._port(origin.instance, op.source), self._port(*origin.end)
        if port.raw and not self.is_first:
            return
        size = 0
        if port.tx_bytes is not None:  # a bulk copy transfers what is expected
            size = box_bytes(source) * self._times(port) if source.tile else UNKNOWN
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

    def _move(self, instance: str, port: Port) -> None:
        """Add a handover as the glue performs it: read before the entry, write after it."""
        channel = self.protocol.channels.get((instance, port.name))
        if channel is None or channel.kind != HANDOVER:
            return
        memory, full, empty = self._ring(instance, port.name)
        writes = port.direction == "out"
        origin = self.protocol.moved(instance, port, "hand over" if writes else "take")
        item = self._step(memory, origin)
        count = self.warp_set.warps
        if writes:
            self._add(Kind.TOUCH, port.name, amount=0, origin=origin)
            self._add(Kind.WAIT, empty, item - self.stages[channel.name], origin=origin)
            self._add(Kind.WRITE, memory, item, origin=origin)
            self._add(Kind.ARRIVE, full, item, count, origin=origin)
        else:
            self._add(Kind.WAIT, full, item, origin=origin)
            self._add(Kind.READ, memory, item, origin=origin)
            self._add(Kind.ARRIVE, empty, item, count, origin=origin)

    # Buffers, registers and named barriers

    def _buffer_op(self, role: Role, buffer: Buffer, verb: str, origin: Origin) -> None:
        name = in_cta(f"{origin.instance}.{buffer.name}", self.cta)
        if role.split != "role":  # every part of the work has a separate slice
            name += f" call {self.call}" if self.warp_set.role.calls > 1 else ""
            name += f" warpgroup {self.warp_set.group}" if self.warp_set.group else ""
        stages = buffer.stages
        spaces = {port.space for port in self._ports(origin.instance, role.name)}
        if not spaces & {"ring", "tensor_memory"}:  # nothing counts from call to call
            if verb == "write":
                self.at[name] = self.at.get(name, 0) + 1
            name = f"{name}[{max(self.at.get(name, 0) - 1, 0) % stages}]"
            stages = 1
        self.written[name] += verb == "write"
        self.pieces[name] = stages
        self._add(KINDS[RING][verb], name, self.written[name] - 1, origin=origin)

    def _registers(self, op: Operation, origin: Origin) -> None:
        port = self._port(*origin.end)
        if port.space == "registers":
            allowed = port.pending if op.verb == "write" else 0
            self._add(Kind.TOUCH, port.name, amount=allowed, origin=origin)
        elif port.space == "counter":  # its place in the order and its warps, for check/counters
            self._add(Kind.TOUCH, port.name, self.warp_set.warps, SOME, origin=origin)
        elif port.space == "global" and op.verb == "write":
            # A role that loads from tensor memory may write what is still pending.
            ports = self._ports(origin.instance, origin.role)
            if any(other.space == TENSOR_MEMORY for other in ports):
                self._add(Kind.TOUCH, port.name, amount=SOME, origin=origin)

    def _named(self, op: Operation, origin: Origin) -> None:
        name = in_cta(f"{origin.instance}.{op.target}", self.cta)
        if name not in self.turn:
            barriers = self.protocol.contracts[origin.instance].named_barriers
            count = next(barrier.count for barrier in barriers if barrier.name == op.target)
            self.threads[name] = evaluate(count, {})
            self.first[name] = origin
        turn = self.turn[name]
        self.turn[name] += 1
        self._add(Kind.SIGNAL, name, turn, WARP * self.warp_set.warps, origin=origin)
        if op.verb == "sync":
            self._add(Kind.MEET, name, turn, origin=origin)
