"""Counter groups of a program: Program -> the operations of every work tile, by its ordinal.

A tile scheduler may declare that the tiles with one value of a field F are numbered by another
field (`index_within: {field: F, of: N}`).  What a tile of such a group does then follows from its
ordinal, unless another field decides how often it signals, waits or uses scratch memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pipelink_rules.check.counters.analyze_group import (
    ALL,
    COMPLETE,
    FENCE,
    READ,
    SIGNAL,
    SYNC,
    UNTIL,
    WRITE,
    Group,
    GroupOp,
    OpSequence,
)
from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.contract.validate_numbers import MOST_TIMES
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import Operation, Port, Repeat, Role, WorkField
from pipelink_rules.model.operation import operations
from pipelink_rules.model.program import COUNTER, SCRATCH
from pipelink_rules.model.source_span import Expr


class Undecidable(Exception):
    """The ordinal of a tile does not determine how often it performs an operation."""

    def __init__(self, instance: str, role: Role, op: Operation, reason: str, clause: Expr):
        super().__init__(reason)
        self.instance, self.role, self.op = instance, role, op
        self.reason, self.clause = reason, clause


class TileNumbering(NamedTuple):
    """A guarantee of the tile scheduler: `field` numbers the tiles of one value of `group`."""

    group: str
    field: WorkField
    times: int


def tile_numberings(index: ProgramIndex) -> dict[str, TileNumbering]:
    """Return per group field the first field that numbers its tiles."""
    work = index.contracts[index.program.scheduler[0]].work
    found: dict[str, TileNumbering] = {}
    for field in work.fields if work else ():
        if field.index_within and field.index_count is not None:
            number = TileNumbering(field.index_within, field, evaluate(field.index_count, {}))
            if 1 <= number.times <= MOST_TIMES:
                found.setdefault(field.index_within, number)
    return found


def defining_port(index: ProgramIndex, end: tuple[str, str]) -> str:
    """Return the producer's port of counters or scratch memory: `store.done`."""
    for connection in index.program.connections:
        ends = (connection.consumer, connection.producer)
        if connection.transfer in (COUNTER, SCRATCH) and end in ends:
            return ".".join(connection.producer)
    return ".".join(end)


def port_named(index: ProgramIndex, target: str) -> Port:
    """Return the port of what `defining_port` returns."""
    instance, _, name = target.partition(".")
    return index.port((instance, name))


def port_of(index: ProgramIndex, instance: str, op: Operation) -> Port | None:
    """Return the counter or scratch port that an operation uses."""
    name = op.source if op.verb in ("copy", "store") else op.target
    port = {item.name: item for item in index.contracts[instance].ports}.get(name)
    if port is None or not op.index:
        return None
    return port if port.space == "counter" or port.scratch else None


def users(index: ProgramIndex) -> Iterator[tuple[str, Role, Operation, Port]]:
    """Yield every operation on counters or scratch memory."""
    for instance, _, role in index.roles():
        for op in operations(role.body):
            port = port_of(index, instance, op)
            if port is not None:
                yield instance, role, op, port


def counter_group(index: ProgramIndex, numbered: TileNumbering) -> Group:
    """Return the operations of the tiles of one group; raise Undecidable if they are unknown."""
    lines = []
    for ordinal in range(numbered.times):
        for instance, _, role in index.roles():
            if any(port_of(index, instance, op) for op in operations(role.body)):
                reader = _Reader(index, instance, role, numbered, ordinal)
                lines.append(reader.line())
    return tuple(lines)


@dataclass
class _Reader:
    """Reads the operations of one role for one ordinal."""

    index: ProgramIndex
    instance: str
    role: Role
    numbered: TileNumbering
    ordinal: int

    def line(self) -> OpSequence:
        warps = evaluate(self.role.warps, {})
        together = self.role.split != "warp"
        return OpSequence(self.ordinal, warps, tuple(self._steps(self.role.body)), together)

    def _steps(self, body: tuple[Operation | Repeat, ...]) -> Iterator[GroupOp]:
        for item in body:
            if not isinstance(item, Repeat):
                yield from self._step(item)
                continue
            used = [op for op in operations(item.body) if port_of(self.index, self.instance, op)]
            if not used:
                continue  # the loop may run zero times: its awaits and fences guarantee nothing
            for _ in range(self._value(item.count, used[0])):
                yield from self._steps(item.body)

    def _step(self, op: Operation) -> Iterator[GroupOp]:
        origin = self.index.protocol.origin(self.instance, self.role.name, op)
        if op.verb == "fence" and op.target == "global":
            yield GroupOp(FENCE, origin=origin)
        elif op.verb == "await" and op.target == "store" and op.full:
            yield GroupOp(COMPLETE, amount=op.count, origin=origin)
        elif op.verb == "sync":
            yield GroupOp(SYNC, origin=origin)
        port = port_of(self.index, self.instance, op)
        if port is None:
            return
        target = defining_port(self.index, (self.instance, port.name))
        if op.index[0].text != self.numbered.group:
            return  # of another group, so it orders nothing here
        if op.verb == "signal":
            yield GroupOp(SIGNAL, target, origin=origin)
        elif op.verb == "wait_until":
            signals = self._value(op.threshold or Expr("0"), op)
            yield GroupOp(UNTIL, target, signals * self._arrivals(target), origin=origin)
        else:
            kind = READ if op.verb in ("read", "copy") else WRITE
            piece = self._value(op.index[1], op) if len(op.index) > 1 else ALL
            yield GroupOp(kind, target, 0, piece, op.verb in ("copy", "store"), origin)

    def _arrivals(self, target: str) -> int:
        return evaluate(port_named(self.index, target).arrivals, {})

    def _value(self, expr: Expr, op: Operation) -> int:
        known = {self.numbered.field.name: self.ordinal}
        unknown = sorted(names(expr) - set(known))
        if unknown:
            reason = f"the tile scheduler does not number `{unknown[0]}`"
            raise Undecidable(self.instance, self.role, op, reason, expr)
        return evaluate(expr, known)
