"""Known inputs of an interpreted role: relocations, ports and a series of work tiles."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelink_rules.audit.decode_ptx import Value
from pipelink_rules.audit.execution_log import ExecutionLog
from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.machine_state import (
    FIRST_PORT,
    MIDDLE,
    PORTS,
    REGION,
    RELOCATIONS,
    WORK,
    Names,
    SharedRange,
    State,
    Table,
)
from pipelink_rules.contract.item_layout import item_layout, tensor_columns
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import RINGS, Contract, Operation, Port, Repeat, Role, WorkField
from pipelink_rules.model.operation import operations, repeats
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import Module

_STAGES = 4  # of every ring that allows them
_RING_WORDS, _BARRIER_WORDS = 12, 4  # pipelink::Ring, pipelink::NamedBarrier
_COUNTER_WORDS = 8  # pipelink::Counters
_BARRIERS = 0x40000000  # shared addresses of mbarriers: no generic access may touch them
_TENSOR = 0x20000000  # addresses of tensor memory: no generic access may touch them
_SIDE = 512  # bytes for the full or the empty mbarriers: more than any ring has stages
_FIRST_ID, _ID_STEP = 33, 16  # of named barriers: an id plus a small number is no other id
_EVERY = 64  # a counted field with at most this many values takes all of them
_SYMBOL = 512  # approximate value of launch-time integers
_COORDINATES = (0, 256, 1 << 14)  # inside and outside of the tensors


@dataclass(frozen=True)
class InputCase:
    """A role with all of its inputs."""

    role: Role
    names: Names
    ranges: tuple[SharedRange, ...]
    symbols: dict[str, int]
    tiles: tuple[dict[str, int], ...]  # fields of one work tile after the other
    starts: dict[str, int]  # ring -> item of its cursor

    def state(self) -> State:
        """Return memory before the first work tile."""
        regions = dict(_regions(self.names.contract, self.role.name))
        ports = self.names.contract.ports
        scratch = frozenset(port.name for port in ports if port.scratch)
        state = State({}, self.ranges, regions, scratch=scratch)
        _write_relocations(state, self)
        _write_ports(state, self)
        return state

    def write_tile(self, state: State, fields: dict[str, int]) -> None:
        """Write the fields of a work tile."""
        work = self.names.contract.work
        for number, field in enumerate(work.fields if work else ()):
            state.memory[(WORK >> 2) + number] = fields[field.name] & 0xFFFFFFFF


@dataclass(frozen=True)
class RoleRun:
    """A role's code with its inputs."""

    module: Module
    variant: Variant
    role: Role
    case: InputCase

    def lane(
        self,
        thread: int = 0,
        like: Interpreter | None = None,
        *,
        shuffles: Sequence[Value] = (),
        first_try: bool = False,
    ) -> Interpreter:
        """Return one lane before its first tile.

        like: a lane whose decoded functions are reused.  shuffles: values from lane 0 of the warp.
        """
        return Interpreter(
            self.module,
            self.case.names,
            self.case.state(),
            thread % 32,
            list(shuffles),
            like.codes if like else {},
            thread,
            first_try=first_try,
        )

    def tile(self, machine: Interpreter, fields: dict[str, int]) -> ExecutionLog:
        """Interpret one tile in a lane."""
        state = machine.state
        self.case.write_tile(state, fields)
        state.log, state.touched = ExecutionLog(), set()
        machine.run(self.variant.symbol(self.role.name), [RELOCATIONS, PORTS, WORK, machine.thread])
        machine.finish()
        return state.log


def input_case(contract: Contract, role: Role, wanted: int = _STAGES) -> InputCase:
    """Return the inputs for a role of an instantiated contract, with `wanted` stages if allowed."""
    rings = [port for port in contract.ports if port.role == role.name and port.space in RINGS]
    done = list(operations(role.body))
    multiplied = {op.target for op in done if op.verb == "mma"}
    rings.sort(key=lambda port: port.name not in multiplied)  # descriptors hold 18 bits
    ranges, top = [], 1024
    columns = _TENSOR
    for port in rings:
        count = max(port.stages.minimum, min(wanted, port.stages.maximum))
        if port.space == "tensor_memory":
            ranges.append(SharedRange(port.name, True, columns, tensor_columns(port), count))
            columns = ranges[-1].end
            continue
        layout = item_layout(port)
        top = -(-top // 1024) * 1024
        ranges.append(SharedRange(port.name, True, top, layout.stage_bytes, count))
        top = ranges[-1].end
    for buffer in contract.buffers:
        if buffer.role == role.name:
            top = -(-top // 1024) * 1024
            ranges.append(SharedRange(buffer.name, False, top, evaluate(buffer.bytes, {}), 1))
            top = ranges[-1].end
    barriers = [item for item in contract.named_barriers if role.name in item.roles]
    known = Names(
        contract,
        {item.start: item for item in ranges if item.ring},
        {_FIRST_ID + number * _ID_STEP: item.name for number, item in enumerate(barriers)},
        dict(_regions(contract, role.name)),
        tuple(_tables(contract, role, {item.name: item for item in ranges})),
        frozenset(port.name for port in contract.ports if port.role == role.name and port.raw),
        tuple(name for op in done if op.verb == "store" for name in (op.target, op.source)),
    )
    symbols = {item.name: _symbol(item.minimum, item.multiple_of) for item in contract.symbols}
    stages = max((item.stages for item in ranges if item.ring), default=1)
    starts = {item.name: number for number, item in enumerate(ranges) if item.ring}
    tiles = tuple(_tiles(contract, role, stages))
    return InputCase(role, known, tuple(ranges), symbols, tiles, starts)


def _tables(contract: Contract, role: Role, ranges: dict[str, SharedRange]) -> Iterator[Table]:
    """Yield the mbarriers of every ring of the role, in the order of its relocations."""
    mine = [p for p in contract.ports if p.role == role.name and p.space in RINGS]
    for number, port in enumerate(mine):
        start = _BARRIERS + 2 * _SIDE * number
        yield Table(ranges[port.name], "full", start)
        yield Table(ranges[port.name], "empty", start + _SIDE)


def _symbol(minimum: int, multiple: int) -> int:
    return max(-(-_SYMBOL // multiple) * multiple, minimum)


def _tiles(contract: Contract, role: Role, stages: int) -> Iterator[dict[str, int]]:
    fields = contract.work.fields if contract.work else ()
    looped = loop_fields(role.body) & {field.name for field in fields}
    near_stages = [0, 1, 2, stages - 1, stages, stages + 1, 2 * stages + 1]
    counts = sorted(set(near_stages)) if looped else range(2 * stages + 1)
    largest = {
        field.name: evaluate(field.maximum, {})
        for field in fields
        if field.name in looped and field.maximum is not None and not names(field.maximum)
    }
    for most in largest.values():
        counts = sorted({*counts, *(range(most) if most <= _EVERY else ()), most})
    between = [port for port in contract.ports if port.role == role.name and crosses_ctas(port)]
    # Operations for one value of a looped field may not depend on other fields: each occurs twice.
    for number, count in enumerate([*counts, *counts] if between else counts):
        tile = {
            field.name: min(count, largest.get(field.name, count))
            if field.name in looped
            else _field(field, number)
            for field in fields
        }
        limits = {field.name: evaluate(field.minimum, {}) for field in fields}
        if all(tile[name] >= limits[name] for name in looped):
            yield tile


def crosses_ctas(port: Port) -> bool:
    """Return whether a port is a counter or scratch memory."""
    return port.space == "counter" or port.scratch


def other_values(field: WorkField, value: int) -> list[int]:
    """Return other values of a field that the contract allows."""
    values = {_field(field, number) for number in range(len(_COORDINATES))}
    return sorted(values - {value})


def _field(field: WorkField, number: int) -> int:
    """Return a value that varies from tile to tile within the contract's range."""
    low = evaluate(field.minimum, {})
    if field.maximum is not None:
        return (evaluate(field.maximum, {}), low)[number % 2]
    return max(low, _COORDINATES[number % len(_COORDINATES)])


def loop_fields(body: tuple[Operation | Repeat, ...]) -> frozenset[str]:
    """Return the names in loop counts."""
    return frozenset(name for repeat in repeats(body) for name in names(repeat.count))


def _regions(contract: Contract, role: str) -> Iterator[tuple[int, str]]:
    for number, port in enumerate(contract.ports):
        if port.role == role and port.space in ("global", "registers", "counter"):
            yield FIRST_PORT + number, port.name


def _write_relocations(state: State, case: InputCase) -> None:
    contract, role, at = case.names.contract, case.role, RELOCATIONS >> 2
    ranges = {item.name: item for item in case.ranges}
    tables = case.names.tables
    for full, empty in zip(tables[::2], tables[1::2], strict=True):
        ring = full.ring
        words = [1, ring.start, full.start, empty.start, ring.stage_bytes, ring.stages]
        _put(state, at, [*words, *[0] * (_RING_WORDS - len(words))])
        at += _RING_WORDS
    for buffer in contract.buffers:
        if buffer.role == role.name:
            _put(state, at, [ranges[buffer.name].start, ranges[buffer.name].stage_bytes])
            at += 2
    for number, name in case.names.barriers.items():
        count = next(item.count for item in contract.named_barriers if item.name == name)
        _put(state, at, [number, evaluate(count, {}), 0, 0])
        at += _BARRIER_WORDS


def _write_ports(state: State, case: InputCase) -> None:
    """The fields of `<Role>Ports` in the order of the generated header, with its padding."""
    contract, at = case.names.contract, PORTS
    for number, port in enumerate(contract.ports):
        if port.role != case.role.name or (port.space == "registers" and port.in_place):
            continue
        if port.space in RINGS:
            ring = next(item for item in case.ranges if item.name == port.name)
            start = case.starts[port.name] % (2 * ring.stages)
            _put(state, at >> 2, [start % ring.stages, start // ring.stages])
            at += 8
        elif port.space == "scalar":
            at += 4
        else:
            at = -(-at // 8) * 8
            address = (FIRST_PORT + number << REGION) + MIDDLE
            words = [address & 0xFFFFFFFF, address >> 32]
            if port.space == "counter":
                words += [0] * (_COUNTER_WORDS - 2)
            _put(state, at >> 2, words)
            at += 4 * len(words)
    for value in case.symbols.values():
        _put(state, at >> 2, [value])
        at += 4


def _put(state: State, word: int, values: list[int]) -> None:
    for number, value in enumerate(values):
        state.memory[word + number] = value
