"""Operations that a contract declares for a role: body and work fields -> events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pipelink_rules.audit.execution_log import Access, Event
from pipelink_rules.audit.input_cases import InputCase
from pipelink_rules.contract.item_layout import item_layout, member_bytes
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Operation, Port, Repeat
from pipelink_rules.model.source_span import Expr

_ORDERING = ("sync", "arrive", "fence", "signal", "wait_until")


@dataclass(frozen=True)
class AllowedAccess:
    """An access that the contract allows, and between which events."""

    op: Operation
    stage: int  # of a ring; -1 otherwise
    first: int  # number of events that must have happened
    last: int  # number of events that may have happened


@dataclass
class ExpectedTile:
    """The declared operations of one work tile."""

    events: list[Event] = field(default_factory=list)
    ops: list[Operation] = field(default_factory=list)  # the operation of each event
    clauses: list[AllowedAccess] = field(default_factory=list)
    stages: dict[str, int] = field(default_factory=dict)  # of each ring

    def clauses_of(self, access: Access, homes: Mapping[str, str]) -> list[AllowedAccess]:
        """Return the clauses of an accessed port; homes: port changed in place -> port."""
        return [
            clause
            for clause in self.clauses
            if clause.op.verb == ("write" if access.kind == "update" else access.kind)
            and homes.get(clause.op.target, clause.op.target) == access.target
        ]


def expected_tiles(case: InputCase) -> list[ExpectedTile]:
    """Return the declared operations of each tile of a case, in order."""
    expansion = _Expansion(case)
    return [expansion.tile(fields) for fields in case.tiles]


@dataclass
class _Expansion:
    """Counts ring items from work tile to work tile."""

    case: InputCase
    current: dict[str, int] = field(default_factory=dict)  # ring -> current item
    released: dict[str, set[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.current = {name: start - 1 for name, start in self.case.starts.items()}
        self.released = {name: set(range(-16, start)) for name, start in self.case.starts.items()}

    def tile(self, fields: dict[str, int]) -> ExpectedTile:
        """Return the operations for one work tile."""
        expected, accesses = ExpectedTile(), []
        expected.stages = {ring.name: ring.stages for ring in self.case.ranges if ring.ring}
        environment = {**self.case.symbols, **fields}
        for op in _unrolled(self.case.role.body, environment):
            event = self._event(op, environment)
            if event is not None:
                expected.events.append(event)
                expected.ops.append(op)
            elif op.verb in ("read", "write"):
                accesses.append((op, self._stage(op.target), len(expected.events)))
        ports = self.case.names.contract.ports
        tensor = {port.name for port in ports if port.space == "tensor_memory"}
        for op, stage, position in accesses:
            first, last = _window(op, expected.events, position)
            if op.target in tensor:  # asynchronous: bounded by the awaits around it
                first, last = _between_awaits(expected.events, position, first, last)
            expected.clauses.append(AllowedAccess(op, stage, first, last))
        return expected

    def _event(self, op: Operation, environment: dict[str, int]) -> Event | None:
        name, contract = op.target, self.case.names.contract
        if op.verb in ("acquire", "wait"):
            self.current[name] += 1
            return Event(op.verb, name, self._item(name))
        if op.verb == "expect":
            port = contract.port(name)
            whole = Expr(str(item_layout(port).data_bytes))  # tx_bytes is optional on a raw port
            announced = evaluate(port.tx_bytes or whole, environment)
            return Event("expect", name, self._item(name), announced)
        if op.verb == "copy":
            size = _copied(contract.port(name), contract.port(op.source), op.member, environment)
            return Event("copy", name, self._item(name), size, op.source, op.member)
        if op.verb == "commit":
            side = "full" if contract.port(name).direction == "out" else "empty"
            origin, side = ("mma", side) if op.source else ("", "")
            return Event("commit", name, self._item(name), source=origin, member=side)
        if op.verb == "mma":
            into = f"item {self._item(op.source)}" if op.source else ""
            return Event("mma", name, self._stage(name), source=op.source, member=into)
        if op.verb == "await":
            return Event("await", name, count=op.count, member="full" if op.full else "")
        if op.verb == "signal":
            return Event("signal", name, evaluate(op.index[0], environment))
        if op.verb == "wait_until":
            wanted = evaluate(op.threshold or Expr("0"), environment)
            return Event("wait_until", name, evaluate(op.index[0], environment), wanted)
        if op.verb == "release":
            return self._release(name, op.lag)
        if op.verb == "store":
            stage = self._stage(name)
            return Event("store", name, stage if stage >= 0 else None, None, op.source)
        if op.verb in ("fence", "sync", "arrive"):
            return Event(op.verb, name)
        return None

    def _release(self, name: str, lag: int) -> Event | None:
        """Return None for an item that was released before or belongs to an earlier work tile."""
        item = self.current[name] - lag
        if item in self.released[name]:
            return None
        self.released[name].add(item)
        return Event("release", name, item % (2 * self._stages(name)))

    def _stages(self, name: str) -> int:
        return next(item.stages for item in self.case.ranges if item.name == name)

    def _item(self, name: str) -> int:
        return self.current[name] % (2 * self._stages(name))

    def _stage(self, name: str) -> int:
        return self.current[name] % self._stages(name) if name in self.current else -1


def _unrolled(
    body: tuple[Operation | Repeat, ...], environment: dict[str, int]
) -> Iterator[Operation]:
    for item in body:
        if isinstance(item, Repeat):
            for _ in range(evaluate(item.count, environment)):
                yield from _unrolled(item.body, environment)
        else:
            yield item


def _copied(ring: Port, tensor: Port, member: str, environment: dict[str, int]) -> int:
    """Return the bytes of one `copy`: the tile, or the expected bytes of a possibly short one."""
    if tensor.tile is None and len(ring.members) == 1 and ring.tx_bytes is not None:
        return evaluate(ring.tx_bytes, environment)
    return member_bytes(next(item for item in ring.members if item.name == member))


def _between_awaits(events: list[Event], position: int, first: int, last: int) -> tuple[int, int]:
    awaits = [
        number
        for number, event in enumerate(events)
        if event.verb == "await" and event.target.startswith("tensor")
    ]
    before = [number + 1 for number in awaits if number < position]
    after = [number for number in awaits if number >= position]
    return max([first, *before[-1:]]), min([last, *after[:1]])


def _window(op: Operation, events: list[Event], position: int) -> tuple[int, int]:
    """Return the events between which an access may happen: while its item is held.

    A fence, barrier, signal or wait for a counter orders the accesses around it, so no access
    moves across one.
    """
    first, last = 0, len(events)
    for number in range(position - 1, -1, -1):
        event = events[number]
        if event.target == op.target and event.verb in ("wait", "acquire"):
            first = number + 1
            break
        if event.verb in _ORDERING or (event.verb == "await" and op.verb == "write"):
            first = number + 1
            break
    for number in range(position, len(events)):
        event = events[number]
        if event.verb in _ORDERING or (
            event.target == op.target and event.verb in ("release", "commit", "store")
        ):
            last = number
            break
    return first, last
