"""Known inputs of an interpreted role: relocations, ports and a series of work tiles."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipelink_rules.audit.execution_log import ExecutionLog
from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.lanes import Value
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
from pipelink_rules.model.contract import (
    RINGS,
    Contract,
    Operation,
    Port,
    Repeat,
    Role,
    Symbol,
    WorkField,
)
from pipelink_rules.model.operation import operations, repeats
from pipelink_rules.model.target import TARGETS
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import Module

_STAGES = 4  # of every ring that allows them
_RING_WORDS, _BARRIER_WORDS = 12, 4  # pipelink::Ring, pipelink::NamedBarrier
_COUNTER_WORDS = 8  # pipelink::Counters
_BARRIERS = 0x40000000  # shared addresses of mbarriers: no generic access may touch them
_TENSOR = 0x20000000  # addresses of tensor memory: no generic access may touch them
_SIDE = 512  # bytes for the full or the empty mbarriers: more than any ring has stages
_FIRST_ID, _ID_STEP = 33, 16  # of named barriers: an id plus a small number is no other id
_SHARED_BYTES = max(target.shared_bytes_cta for target in TARGETS.values())
_EVERY = 64  # a counted field with at most this many values takes all of them
_SYMBOL = 512  # approximate value of launch-time integers
_LARGE = 1 << 20  # or of large ones
_SHORT = 16  # loop counts that are combined with all values of other fields
_MOST_TRIPS = 512  # of a loop; larger constants are not those of loop counts
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
            edges=like.edges if like else set(),
        )

    def group(self, warps: Sequence[int], like: Interpreter | None = None) -> Interpreter:
        """Return the threads of some warps before their first tile."""
        threads = tuple(32 * warp + lane for warp in warps for lane in range(32))
        return Interpreter(
            self.module,
            self.case.names,
            self.case.state(),
            codes=like.codes if like else {},
            threads=threads,
            edges=like.edges if like else set(),
        )

    def tile(self, machine: Interpreter, fields: dict[str, int]) -> ExecutionLog:
        """Interpret one tile in a lane."""
        state = machine.state
        self.case.write_tile(state, fields)
        state.log, state.touched = ExecutionLog(), set()
        arguments = [RELOCATIONS, PORTS, WORK, machine.argument]
        machine.run(self.variant.symbol(self.role.name), arguments)
        machine.finish()
        return state.log


def input_cases(contract: Contract, role: Role, compared: Sequence[int]) -> Iterator[InputCase]:
    """Yield the inputs for a role: all work tiles with some stages, fewer with other numbers.

    compared: constants of its code.  The other numbers of stages are the least and the most that
    its rings may have, and one that has no common factor with these; launch-time integers are at
    their ends there.
    """
    yield input_case(contract, role, compared=compared)
    rings = [port for port in contract.ports if port.role == role.name and port.space in RINGS]
    least = min((port.stages.minimum for port in rings), default=_STAGES)
    most = max((_most_stages(port) for port in rings), default=_STAGES)
    between = range(max(least, 2), most + 1)
    coprime = next((n for n in between if math.gcd(n, least) == 1 == math.gcd(n, most)), least)
    for number in sorted({least, most, coprime} - {_STAGES}):
        yield input_case(contract, role, number, few=True)
    if not rings and contract.symbols:
        for end in (1, 2):
            yield input_case(contract, role, end, few=True)


def _most_stages(port: Port) -> int:
    """Return the most stages that placement can give a ring: they have to fit the CTA."""
    if port.space == "tensor_memory":
        return port.stages.maximum
    fitting = _SHARED_BYTES // max(1, item_layout(port).stage_bytes)
    return max(port.stages.minimum, min(port.stages.maximum, fitting, _SIDE // 8))


def input_case(
    contract: Contract,
    role: Role,
    wanted: int = _STAGES,
    compared: Sequence[int] = (),
    *,
    few: bool = False,
) -> InputCase:
    """Return the inputs for a role of an instantiated contract, with `wanted` stages if allowed.

    few: only the work tiles that reach every stage, with launch-time integers at an end.
    """
    rings = [port for port in contract.ports if port.role == role.name and port.space in RINGS]
    done = list(operations(role.body))
    multiplied = {op.target for op in done if op.verb == "mma"}
    rings.sort(key=lambda port: port.name not in multiplied)  # descriptors hold 18 bits
    ranges, top = [], 1024
    columns = _TENSOR
    for port in rings:
        count = max(port.stages.minimum, min(wanted, _most_stages(port)))
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
        tuple(dict.fromkeys(op.target for op in done if op.verb == "mma")),
    )
    looped = loop_fields(role.body)
    symbols = {
        item.name: _symbol(item, wanted if few and item.name not in looped else 0)
        for item in contract.symbols
    }
    stages = max((item.stages for item in ranges if item.ring), default=1)
    starts = {item.name: number for number, item in enumerate(ranges) if item.ring}
    tiles = tuple(
        _few_tiles(contract, role, stages) if few else _tiles(contract, role, stages, compared)
    )
    return InputCase(role, known, tuple(ranges), symbols, tiles, starts)


def _tables(contract: Contract, role: Role, ranges: dict[str, SharedRange]) -> Iterator[Table]:
    """Yield the mbarriers of every ring of the role, in the order of its relocations."""
    mine = [p for p in contract.ports if p.role == role.name and p.space in RINGS]
    for number, port in enumerate(mine):
        start = _BARRIERS + 2 * _SIDE * number
        yield Table(ranges[port.name], "full", start)
        yield Table(ranges[port.name], "empty", start + _SIDE)


def _symbol(symbol: Symbol, end: int) -> int:
    """Return a launch-time integer: about 512, or by `end`, an odd or even number, one of its ends.

    The upper end is that of tensors whose addresses fit a region of the interpreter.
    """
    least = -(-max(symbol.minimum, 1) // symbol.multiple_of) * symbol.multiple_of
    if end % 2:
        return least
    wanted = min(symbol.maximum, _LARGE if end else _SYMBOL)
    return max(wanted // symbol.multiple_of * symbol.multiple_of, least)


def _tiles(
    contract: Contract, role: Role, stages: int, compared: Sequence[int]
) -> Iterator[dict[str, int]]:
    fields = contract.work.fields if contract.work else ()
    looped = [field for field in fields if field.name in loop_fields(role.body)]
    counts = list(range(2 * stages + 1))
    if looped:
        counts = sorted(
            {0, 1, 2, stages - 1, stages, stages + 1, 2 * stages + 1} | _trips(compared)
        )
        for field in looped:
            counts = _counts(field, counts)
    others = {field.name: field_values(field, compared) for field in fields if field not in looped}
    between = [port for port in contract.ports if port.role == role.name and crosses_ctas(port)]
    # Operations for one value of a looped field may not depend on other fields: each occurs twice.
    number = max([len(counts) * (2 if between else 1), *map(len, others.values())])
    short = [count for count in counts if count <= _SHORT] or counts[:1]
    extra = [short[n % len(short)] for n in range(number - len(counts))]
    for position, count in enumerate([*extra, *counts]):
        tile = {
            name: values[(position + position // len(values) * shift + shift) % len(values)]
            for shift, (name, values) in enumerate(others.items())
        }
        tile |= {field.name: _clamped(field, count) for field in looped}
        yield {field.name: tile[field.name] for field in fields}


def _few_tiles(contract: Contract, role: Role, stages: int) -> Iterator[dict[str, int]]:
    """Yield work tiles that go through all stages once and begin again."""
    fields = contract.work.fields if contract.work else ()
    looped = loop_fields(role.body) & {field.name for field in fields}
    for number in range(2 if looped else stages + 1):
        count = 0 if number else stages + 1
        yield {
            field.name: _clamped(field, count)
            if field.name in looped
            else field_values(field, ())[0]
            for field in fields
        }


def _trips(compared: Sequence[int]) -> set[int]:
    """Return loop counts that pass every constant with which the code compares its counter."""
    return {value + more for value in compared for more in (0, 1, 2) if value < _MOST_TRIPS}


def _counts(field: WorkField, counts: Sequence[int]) -> list[int]:
    """Return the counts within a field's range, with its ends."""
    least, most = evaluate(field.minimum, {}), _limit(field)
    found = {_clamped(field, count) for count in (*counts, least, least + 1, least + 2)}
    if most is not None:
        found |= {*(range(least, most) if most <= _EVERY else ()), most}
    return sorted(found)


def _limit(field: WorkField) -> int | None:
    """Return the largest value of a field; None if it has none or one that depends on symbols."""
    if field.maximum is None or names(field.maximum):
        return None
    return evaluate(field.maximum, {})


def _clamped(field: WorkField, value: int) -> int:
    most = _limit(field)
    value = max(value, evaluate(field.minimum, {}))
    return value if most is None else min(value, most)


def crosses_ctas(port: Port) -> bool:
    """Return whether a port is a counter or scratch memory."""
    return port.space == "counter" or port.scratch


def field_values(field: WorkField, compared: Sequence[int]) -> list[int]:
    """Return test values of a field: its ends, or all of a short range, and around constants."""
    least, most = evaluate(field.minimum, {}), _limit(field)
    inside = [max(least, value) for value in _COORDINATES]
    if most is not None:
        short = most - least < _EVERY
        inside = [most, least, *(range(least, most) if short else (least + 1, most - 1))]
    values = (*inside, *compared)
    return list(dict.fromkeys(v for v in values if v >= least and (most is None or v <= most)))


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
