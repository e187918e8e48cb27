"""What does one part of a program do in a period of given work items?  -> Process.

The operations of a role are run symbolically: a cursor per end of a ring, the stage of every
buffer.  Cursors run on from work item to work item, as in the kernel, and so do the stages of a
buffer.  An entry keeps nothing between its calls but the cursors of its rings, though: a role
without a ring cannot know which stage came last, so it begins every call with the first one.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipelink_rules.check.protocol.model import (
    AFTER,
    ARRIVE,
    AWAIT,
    BEFORE,
    FENCE,
    MEET,
    READ,
    SIGNAL,
    SOME,
    STORE,
    TOUCH,
    WAIT,
    WRITE,
    Action,
    Origin,
    Process,
)
from pipelink_rules.check.protocol.protocol_index import TooManyOperations, in_cta
from pipelink_rules.check.protocol.ring_cursors import RingEnds, Work
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Operation, Port, Repeat, Role
from pipelink_rules.model.program import HANDOVER, TENSOR_MEMORY

MOST_ACTIONS = 20_000  # of one process and period
WARP = 32  # threads
FENCES = {"async": FENCE, "tensor before": BEFORE, "tensor after": AFTER}


class ProcessBuilder(RingEnds):
    """Runs the operations of one part and writes down what they do."""

    def process(self, work: Sequence[Work]) -> Process:
        """The process of this part for a period of these work items."""
        prologue = self._once("prologue")
        begun = {name: cursor.next for name, cursor in self.cursors.items()}
        turned = dict(self.turn)
        self.actions = []
        for item in work:
            self.work = item
            for call in range(self.part.role.calls):
                self.call = call
                for instance, name in self.part.role.members:
                    self._member(instance, self.blueprint.contracts[instance].role(name))
        period = tuple(self.actions)
        self.moves = {n: c.next - begun.get(n, 0) for n, c in self.cursors.items()}
        self.turns = {name: turn - turned.get(name, 0) for name, turn in self.turn.items()}
        self.actions = []
        name = in_cta(self.part.name, self.cta)
        return Process(name, period, prologue, self._once("epilogue"))

    def _once(self, clause: str) -> tuple[Action, ...]:
        self.actions = []
        for instance, name in self.part.role.members:
            role = self.blueprint.contracts[instance].role(name)
            self._begin(instance, role)
            self._body(instance, role, role.prologue if clause == "prologue" else role.epilogue)
        return tuple(self.actions)

    def _begin(self, instance: str, role: Role) -> None:
        self.at = {}
        for port in self.blueprint.contracts[instance].ports:
            if port.role == role.name and (instance, port.name) in self.blueprint.channels:
                end = (self._ring(instance, port.name)[0], (instance, port.name))
                if end in self.cursors:
                    self.cursors[end].start = self.cursors[end].next

    def _member(self, instance: str, role: Role) -> None:
        self._begin(instance, role)
        ports = self.blueprint.contracts[instance].ports
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
                origin = self.blueprint.origin(instance, role.name, item)
                if len(self.actions) > MOST_ACTIONS:
                    raise TooManyOperations(self.part, origin)
                self._op(instance, role, item, origin)

    def _count(self, repeat: Repeat) -> int:
        literal = repeat.count.literal
        return literal if literal is not None else evaluate(repeat.count, self.work)

    def _move(self, instance: str, port: Port) -> None:
        """A hand-over, as the glue does it: take before the entry, give after it."""
        channel = self.blueprint.channels.get((instance, port.name))
        if channel is None or channel.kind != HANDOVER:
            return
        memory, full, empty = self._ring(instance, port.name)
        gives = port.direction == "out"
        origin = self.blueprint.moved(instance, port, "hand over" if gives else "take")
        item = self._step(memory, instance, origin)
        count = self.part.warps
        if gives:
            stages = self.stages[channel.name]
            self._add(TOUCH, port.name, amount=0, origin=origin)
            self._add(WAIT, empty, item - stages, origin=origin)
            self._add(WRITE, memory, item, origin=origin)
            self._add(ARRIVE, full, item, count, origin=origin)
        else:
            self._add(WAIT, full, item, origin=origin)
            self._add(READ, memory, item, origin=origin)
            self._add(ARRIVE, empty, item, count, origin=origin)

    def _op(self, instance: str, role: Role, op: Operation, origin: Origin) -> None:
        verb = op.verb
        if verb == "await":
            self._add(AWAIT, op.target, amount=op.count, origin=origin)
        elif verb == "fence":
            if op.target in FENCES:  # the other one is about global memory
                self._add(FENCES[op.target], origin=origin)
        elif verb in ("sync", "arrive"):
            self._named(instance, op, origin)
        elif (instance, op.target) in self.blueprint.channels:
            if self.blueprint.channels[instance, op.target].kind == HANDOVER:
                self._registers(instance, op, origin)
            else:
                self._ring_op(instance, op, origin)
        elif any(buffer.name == op.target for buffer in self.blueprint.contracts[instance].buffers):
            self._buffer_op(instance, role, op, origin)
        else:
            self._registers(instance, op, origin)

    def _buffer_op(self, instance: str, role: Role, op: Operation, origin: Origin) -> None:
        contract = self.blueprint.contracts[instance]
        buffer = next(buffer for buffer in contract.buffers if buffer.name == op.target)
        name = in_cta(f"{instance}.{buffer.name}", self.cta)
        if role.split != "role":  # every share of the work has its own piece
            name += f" call {self.call}" if self.part.role.calls > 1 else ""
            name += f" warpgroup {self.part.group}" if self.part.group else ""
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
        kind = {"write": WRITE, "read": READ, "store": STORE}[op.verb]
        self._add(kind, name, self.written[name] - 1, origin=origin)

    def _counts_on(self, instance: str, role: Role) -> bool:
        """Whether the role can know from call to call which stage of a buffer comes next."""
        ports = self.blueprint.contracts[instance].ports
        rings = ("ring", "tensor_memory")
        return any(port.role == role.name and port.space in rings for port in ports)

    def _registers(self, instance: str, op: Operation, origin: Origin) -> None:
        port = self.blueprint.contracts[instance].port(op.target)
        if port.space == "registers":
            allowed = port.pending if op.verb == "write" else 0
            self._add(TOUCH, port.name, amount=allowed, origin=origin)
        elif port.space == "global" and op.verb == "write" and self._loads(instance, origin.role):
            self._add(TOUCH, port.name, amount=SOME, origin=origin)

    def _loads(self, instance: str, role: str) -> bool:
        """Whether a role loads from tensor memory: what it writes may not be there yet."""
        ports = self.blueprint.contracts[instance].ports
        return any(port.role == role and port.space == TENSOR_MEMORY for port in ports)

    def _named(self, instance: str, op: Operation, origin: Origin) -> None:
        name = in_cta(f"{instance}.{op.target}", self.cta)
        if name not in self.turn:
            barriers = self.blueprint.contracts[instance].named_barriers
            count = next(barrier.count for barrier in barriers if barrier.name == op.target)
            self.threads[name] = evaluate(count, {})
            self.first[name] = origin
        turn = self.turn.get(name, 0)
        self.turn[name] = turn + 1
        self._add(SIGNAL, name, turn, WARP * self.part.warps, origin=origin)
        if op.verb == "sync":
            self._add(MEET, name, turn, origin=origin)
