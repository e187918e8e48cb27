"""Effects of PTX instructions on a lane: memory accesses, control, calls and events."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelink_rules.audit.control_flow import FunctionCode, is_merged
from pipelink_rules.audit.decode_ptx import (
    arithmetic,
    cell_operand,
    registers_of,
    width_of,
)
from pipelink_rules.audit.execution_log import Event
from pipelink_rules.audit.lanes import (
    Cell,
    Lanes,
    Registers,
    Value,
    VariesError,
    at,
    cell_of,
    combine,
)
from pipelink_rules.audit.machine_state import (
    DATA,
    DATA_DEPENDENT,
    REGION,
    Effect,
    InconclusiveError,
    Machine,
)
from pipelink_rules.audit.opcode_table import (
    COLLECTIVE,
    OpcodeClass,
    check_opcode,
    is_register_only,
    opcode_row,
)
from pipelink_rules.audit.raw_instructions import check_strong, is_strong, raw_effect, raw_only
from pipelink_rules.toolkit.ptx import Statement

_ADDRESS = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+))?\s*\]")
_MOST_SUMS = 8  # additions in an address that depends on data
_ACCESSES = ("ld", "ldu", "st", "ldmatrix", "stmatrix")


def effect_of(code: FunctionCode, statement: Statement) -> Effect:
    """Return the effect of an instruction under its guard; InconclusiveError if malformed."""
    try:
        return _guarded(code, statement)
    except (IndexError, ValueError) as problem:
        shown = " ".join(statement.text.split())[:80]
        raise InconclusiveError(f"malformed instruction `{shown}`") from problem


def _guarded(code: FunctionCode, statement: Statement) -> Effect:
    plain = _plain(code, statement)
    base = statement.base
    if base in COLLECTIVE or statement.opcode.startswith("bar.warp"):
        plain = _together(statement, plain)
    if not statement.guard or base == "bra":
        return plain
    test = cell_operand(statement.guard.lstrip("@"))
    arguments = statement.arguments()
    targets = registers_of(arguments[0]) if arguments else []
    access = _memory(code, statement, known=False) if base in _ACCESSES else None
    quiet = is_register_only(statement.opcode)

    def guarded(machine: Machine, regs: Registers) -> int | None:
        value = test(regs)
        if isinstance(value, Lanes):
            if base in ("ret", "exit", "trap"):
                return machine.decide(value, len(code.instructions))
            machine.guarded(plain, regs, value, targets)
        elif value:
            return plain(machine, regs)
        elif value is None:
            if access is not None:  # it may happen: its place has to be allowed
                access(machine, regs)
            elif not quiet:
                raise InconclusiveError(f"`{statement.opcode}` under a condition on data")
            for target in targets if base not in ("st", "stmatrix") else ():
                regs[target] = None
        return None

    return guarded


def _together(statement: Statement, effect: Effect) -> Effect:
    """Return the effect of an instruction that all lanes of its mask execute together."""
    masked = ".sync" in statement.opcode and ".aligned" not in statement.opcode
    masked = masked and statement.base in ("shfl", "vote", "match", "redux", "elect")
    masked = masked or statement.opcode.startswith("bar.warp")
    arguments = statement.arguments()
    mask = cell_operand(arguments[-1]) if masked and arguments else None

    def together(machine: Machine, regs: Registers) -> int | None:
        if len(machine.active) > 1 or machine.state.diverged:
            machine.together(statement.opcode, mask(regs) if mask else None)
        return effect(machine, regs)

    return together


def _plain(code: FunctionCode, statement: Statement) -> Effect:
    base, opcode = statement.base, statement.opcode
    control = _control(code, statement)
    if control is not None:
        return control
    if base == "fence":
        return _fence(opcode)
    if base == "shfl" and ".idx" in opcode:
        return _shuffle(statement)
    if is_merged(statement):
        return _merged_accesses(statement)
    raw = raw_effect(statement)
    if raw is not None:
        return _for_each(statement, raw)
    row = opcode_row(opcode)
    if row is None or row.kind is OpcodeClass.FORBIDDEN:
        return _refused(statement)
    if row.kind is OpcodeClass.MEMORY:
        return _strong(code, statement) if is_strong(opcode) else _memory(code, statement)
    if row.kind is OpcodeClass.OPERATION and base != "membar":
        return _unknown(opcode)
    return _compute(statement)


def _for_each(statement: Statement, raw: Effect) -> Effect:
    """Return the effect of a raw instruction whose operands may differ between lanes."""
    arguments = statement.arguments()
    names = registers_of(" ".join(arguments))
    targets = [] if not arguments or arguments[0].startswith("[") else registers_of(arguments[0])

    def effect(machine: Machine, regs: Registers) -> int | None:
        try:
            return raw(machine, regs)
        except VariesError:
            if not machine.state.lenient and statement.base not in ("atom", "red"):
                raise
        machine.for_each(raw, regs, names, targets)
        return None

    return effect


def _refused(statement: Statement) -> Effect:
    def effect(machine: Machine, regs: Registers) -> int | None:
        check_opcode(statement)
        return None

    return effect


def _control(code: FunctionCode, statement: Statement) -> Effect | None:
    if statement.base == "bra":
        return _branch(code, statement)
    if statement.base in ("ret", "exit", "trap"):
        end = len(code.instructions)
        return lambda machine, regs: end
    if statement.base == "call":
        return _call(statement)
    if statement.base == "wgmma":
        return lambda machine, regs: machine.wgmma(statement, regs)
    return None


def _fence(opcode: str) -> Effect:
    event = Event("fence", "async")
    if re.match(r"fence\.proxy\.async(\.shared::(cta|cluster))?$", opcode):
        return lambda machine, regs: machine.state.emit(event)
    return lambda machine, regs: None


def _unknown(opcode: str) -> Effect:
    def effect(machine: Machine, regs: Registers) -> int | None:
        if opcode.startswith("mbarrier"):
            raw_only(machine, "", opcode)
        raise InconclusiveError(f"raw instruction `{opcode}`")

    return effect


def _compute(statement: Statement) -> Effect:
    compute = arithmetic(statement)

    def effect(machine: Machine, regs: Registers) -> int | None:
        compute(regs)
        return None

    return effect


def _branch(code: FunctionCode, statement: Statement) -> Effect:
    target = code.labels.get(statement.operands.strip(), len(code.instructions))
    if not statement.guard:
        return lambda machine, regs: target
    test = cell_operand(statement.guard.lstrip("@"))
    position = next(n for n, item in enumerate(code.instructions) if item is statement)
    taken, passed = ((code.function.name, position, which) for which in (target, position + 1))

    def effect(machine: Machine, regs: Registers) -> int | None:
        value = test(regs)
        if isinstance(value, Lanes):
            machine.branched(taken)
            machine.branched(passed)
            return machine.decide(value, target)
        if value is None:
            machine.branched(taken)
            machine.branched(passed)
            return DATA_DEPENDENT
        machine.branched(taken if value else passed)
        return target if value else None

    return effect


def _call(statement: Statement) -> Effect:
    parts = statement.arguments()
    result = parts.pop(0).strip("() ") if parts[0].startswith("(") else ""
    name = parts[0]
    listed = parts[1].strip("() ") if len(parts) > 1 and parts[1].startswith("(") else ""
    names = [part.strip() for part in listed.split(",") if part.strip()]

    def effect(machine: Machine, regs: Registers) -> int | None:
        machine.call(name, [regs.get(item) for item in names])
        if result:
            regs[result] = None
        return None

    return effect


def _shuffle(statement: Statement) -> Effect:
    arguments = statement.arguments()
    targets = registers_of(arguments[0])
    value, source = cell_operand(arguments[1]), cell_operand(arguments[2])

    def effect(machine: Machine, regs: Registers) -> int | None:
        regs[targets[0]] = machine.shuffle(value(regs), source(regs))
        for target in targets[1:]:
            regs[target] = 1
        return None

    return effect


def _strong(code: FunctionCode, statement: Statement) -> Effect:
    """Return the effect of an atomic access, which is a plain one in shared memory only."""
    check, access = check_strong(statement), _memory(code, statement)

    def effect(machine: Machine, regs: Registers) -> int | None:
        check(machine, regs)
        return access(machine, regs)

    return effect


def _memory(code: FunctionCode, statement: Statement, *, known: bool = True) -> Effect:
    """Return the effect of a load or store; known: it certainly happens, and its data are known."""
    arguments, opcode = statement.arguments(), statement.opcode
    load = statement.base in ("ld", "ldu", "ldmatrix")
    address_text, data = (arguments[1], arguments[0]) if load else (arguments[0], arguments[1])
    found = _ADDRESS.match(address_text)
    if found is None:
        raise InconclusiveError(f"malformed address `{address_text}`")
    names = registers_of(data)
    if ".param" in opcode:
        offset = int(found[2] or "0", 0)
        return _parameter(found[1] + (f"+{offset}" if offset else ""), names[0], load)
    base, shift = cell_operand(found[1]), int(found[2] or "0", 0)
    shared = ".shared" in opcode or "matrix" in statement.base
    size = width_of(opcode)[0] // 8 if not re.search(r"\.[bf]?f(16|64)", opcode) else 8
    data_only = re.search(r"\.(f16|f32|f64|b16|b8)", opcode) is not None or shared or not known
    accesses = _Accesses("read" if load else "write", shared, size)
    values = [] if load else [_nothing if data_only else cell_operand(name) for name in names]
    loaded = names if load else []

    def effect(machine: Machine, regs: Registers) -> int | None:
        address = base(regs)
        if shared and load and _unknown_somewhere(address):
            address = _gathered(code, found[1], regs, machine, address)
        if address is not None and not isinstance(address, Lanes):
            address = address + shift & 0xFFFFFFFFFFFFFFFF
            if address >= DATA and not shared:  # a tensor or fragment: its data are unknown
                machine.state.touch_data(accesses.kind, address)
                for name in loaded:
                    regs[name] = None
                return None
        stored = [read(regs) for read in values]
        results = accesses.perform(machine, address, shift, len(names), stored)
        regs.update(zip(loaded, results, strict=False))
        return None

    return effect


def _unknown_somewhere(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, Lanes) and None in cell.values)


def _gathered(
    code: FunctionCode, name: str, regs: Registers, machine: Machine, address: Cell
) -> Cell:
    """Return the known part of an address whose rest depends on data: `stage + 4 * index[i]`.

    The data are taken to stay within the ring's stage or the buffer; nothing tests that.
    """
    for _ in range(_MOST_SUMS):
        writers = code.writers.get(name, [])
        if len(writers) != 1 or writers[0].base not in ("add", "mad", "or", "mov"):
            return address
        operands = writers[0].arguments()[1:]
        if writers[0].base == "mad":  # the product is the part that depends on data
            operands = operands[2:]
        for text in operands:
            cell = cell_operand(text)(regs)
            values = cell.values if isinstance(cell, Lanes) else (cell,)
            if None not in values and all(map(machine.state.locate, values)):
                return cell
        unknown = [text for text in operands if _unknown_somewhere(cell_operand(text)(regs))]
        if len(unknown) != 1:
            return address
        name = unknown[0]
    return address


def _nothing(regs: Registers) -> Cell:
    return None


@dataclass(frozen=True)
class _Accesses:
    """Accesses of adjacent elements, at one address or at one of each thread."""

    kind: str
    shared: bool
    size: int

    def perform(
        self, machine: Machine, address: Cell, shift: int, count: int, values: list[Cell]
    ) -> list[Cell]:
        """Record the accesses, store `values`, and return `count` loaded values.

        shift: added to the addresses of threads that differ; a single address includes it.
        """
        if isinstance(address, Lanes):
            return self._varied(machine, address, shift, count, values)
        if self.shared:
            machine.state.touch_shared(self.kind, address and address & 0xFFFFFFFF)
            return [None] * count
        places = [None if address is None else address + n * self.size for n in range(count)]
        if self.kind == "read":
            return [machine.state.load(place, self.size) for place in places]
        for place, value in zip(places, values, strict=True):
            machine.state.store(place, self.size, value)
        return []

    def _varied(
        self, machine: Machine, address: Lanes, shift: int, count: int, values: list[Cell]
    ) -> list[Cell]:
        mask = 0xFFFFFFFF if self.shared else 0xFFFFFFFFFFFFFFFF
        bases: Sequence[Value] = address.values
        if len(machine.active) < len(bases):
            bases = [bases[position] for position in machine.active]
        known = [place for place in bases if place is not None]
        if not self.shared and len(known) == len(bases):
            ends = min(known) + shift, max(known) + shift
            if ends[0] >= DATA and ends[0] >> REGION == ends[1] >> REGION:
                for end in ends:
                    machine.state.touch_data(self.kind, end)
                return [None] * count
        places = [None if place is None else place + shift & mask for place in bases]
        if self.shared:
            machine.state.touch_shared(self.kind, *places)
            return [None] * count
        return [
            self._separately(machine, places, number, values, len(address.values))
            for number in range(count)
        ]

    def _separately(
        self,
        machine: Machine,
        places: list[Value],
        number: int,
        values: list[Cell],
        threads: int,
    ) -> Cell:
        """Access each thread's own address: the registers of other threads stay as they are."""
        state = machine.state
        found: list[Value] = [None] * threads
        for position, place in zip(machine.active, places, strict=True):
            where = None if place is None else place + number * self.size
            if self.kind == "read":
                found[position] = at(state.load(where, self.size), position)
            else:
                before = state.peek(where, self.size)
                cell = combine(at(values[number], position), before, (position,), threads)
                state.store(where, self.size, cell)
        return cell_of(found)


def _merged_accesses(statement: Statement) -> Effect:
    """Return the effect of adjacent data accesses, as `function_code` merges them."""
    base, *shifts = statement.operands.split()
    offsets = [int(shift) for shift in shifts]
    kind = "read" if statement.base == "ld" else "write"

    together = _Accesses(kind, shared=False, size=4)
    nothing: list[Cell] = [None]

    def effect(machine: Machine, regs: Registers) -> int | None:
        address, state = regs.get(base), machine.state
        if isinstance(address, Lanes):
            for offset in offsets:
                together.perform(machine, address, offset, 1, nothing)
            return None
        if address is not None and address + min(offsets) >= DATA:
            state.touch_data(kind, address)
            return None
        for offset in offsets:
            place = None if address is None else address + offset
            if kind == "read":
                state.load(place, 4)
            else:
                state.store(place, 4, None)
        return None

    return effect


def _parameter(key: str, name: str, load: bool) -> Effect:
    value = cell_operand(name)

    def effect(machine: Machine, regs: Registers) -> int | None:
        if load:
            regs[name] = regs.get(key)
        else:
            regs[key] = value(regs)
        return None

    return effect
