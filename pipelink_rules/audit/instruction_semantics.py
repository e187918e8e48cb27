"""Effects of PTX instructions on a lane: memory accesses, control, calls and events."""

import re

from pipelink_rules.audit.control_flow import FunctionCode
from pipelink_rules.audit.decode_ptx import Registers, arithmetic, operand, registers_of, width_of
from pipelink_rules.audit.execution_log import Event
from pipelink_rules.audit.machine_state import DATA, Effect, InconclusiveError, Machine
from pipelink_rules.audit.raw_instructions import check_strong, is_strong, raw_effect
from pipelink_rules.toolkit.ptx import Statement

_ADDRESS = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+))?\s*\]")
_VISIBLE = (  # observable by other threads, whether the interpreter models it or not
    "mbarrier",
    "cp",
    "mapa",
    "tcgen05",
    "barrier",
    "bar",
    "red",
    "atom",
    "multimem",
    "griddepcontrol",
)
_NO_EFFECT = ("prefetch", "prefetchu", "applypriority", "discard", "nanosleep", "membar")


def effect_of(code: FunctionCode, statement: Statement) -> Effect:
    """Return the effect of an instruction under its guard; InconclusiveError if malformed."""
    try:
        return _guarded(code, statement)
    except (IndexError, ValueError) as problem:
        shown = " ".join(statement.text.split())[:80]
        raise InconclusiveError(f"malformed instruction `{shown}`") from problem


def _guarded(code: FunctionCode, statement: Statement) -> Effect:
    plain = _plain(code, statement)
    if not statement.guard or statement.base == "bra":
        return plain
    test = operand(statement.guard.lstrip("@"))
    arguments = statement.arguments()
    targets = registers_of(arguments[0]) if arguments else []
    quiet = statement.base not in ("st", "call", "ret", "wgmma", "fence", *_VISIBLE)

    def guarded(machine: Machine, regs: Registers) -> int | None:
        value = test(regs)
        if value:
            return plain(machine, regs)
        if value is None:
            if not quiet:
                raise InconclusiveError(f"`{statement.opcode}` under a condition on data")
            for target in targets:
                regs[target] = None
        return None

    return guarded


def _plain(code: FunctionCode, statement: Statement) -> Effect:
    base, opcode = statement.base, statement.opcode
    control = _control(code, statement)
    if control is not None:
        return control
    if base == "fence":
        return _fence(opcode)
    if base == "shfl" and ".idx" in opcode:
        return _shuffle(statement)
    if opcode.endswith(".many"):
        return _merged_accesses(statement)
    if base in ("ld", "st", "ldu", "stmatrix", "ldmatrix"):
        return _strong(statement) if is_strong(opcode) else _memory(statement)
    if base in _NO_EFFECT:
        return lambda machine, regs: None
    raw = raw_effect(statement)
    if raw is not None:
        return raw
    return _unknown(opcode) if base in _VISIBLE else _compute(statement)


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
    test = operand(statement.guard.lstrip("@"))

    def effect(machine: Machine, regs: Registers) -> int | None:
        value = test(regs)
        if value is None:
            return -1
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
    value, source = operand(arguments[1]), operand(arguments[2])

    def effect(machine: Machine, regs: Registers) -> int | None:
        regs[targets[0]] = machine.shuffle(value(regs), source(regs))
        for target in targets[1:]:
            regs[target] = 1
        return None

    return effect


def _strong(statement: Statement) -> Effect:
    """Return the effect of an atomic access, which is a plain one in shared memory only."""
    check, access = check_strong(statement), _memory(statement)

    def effect(machine: Machine, regs: Registers) -> int | None:
        check(machine, regs)
        return access(machine, regs)

    return effect


def _memory(statement: Statement) -> Effect:
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
    base, shift = operand(found[1]), int(found[2] or "0", 0)
    shared = ".shared" in opcode or "matrix" in statement.base
    size = width_of(opcode)[0] // 8 if not re.search(r"\.[bf]?f(16|64)", opcode) else 8
    data_only = re.search(r"\.(f16|f32|f64|b16|b8)", opcode) is not None or shared
    kind = "read" if load else "write"
    reads, loaded = [operand(name) for name in names], names if load else []

    def effect(machine: Machine, regs: Registers) -> int | None:
        address = base(regs)
        if address is not None:
            address = address + shift & 0xFFFFFFFFFFFFFFFF
            if address >= DATA and not shared:  # a tensor or fragment: its data are unknown
                machine.state.touch_data(kind, address)
                for name in loaded:
                    regs[name] = None
                return None
        if shared:
            machine.state.touch_shared(kind, address if address is None else address & 0xFFFFFFFF)
        if load:
            for position, name in enumerate(names):
                at = None if address is None else address + position * size
                regs[name] = None if shared else machine.state.load(at, size)
        elif not shared:
            for position, read in enumerate(reads):
                at = None if address is None else address + position * size
                machine.state.store(at, size, None if data_only else read(regs))
        return None

    return effect


def _merged_accesses(statement: Statement) -> Effect:
    """Return the effect of adjacent data accesses, as `function_code` merges them."""
    base, *shifts = statement.operands.split()
    offsets = [int(shift) for shift in shifts]
    kind = "read" if statement.base == "ld" else "write"

    def effect(machine: Machine, regs: Registers) -> int | None:
        address, state = regs.get(base), machine.state
        if address is not None and address + min(offsets) >= DATA:
            state.touch_data(kind, address)
            return None
        for offset in offsets:
            at = None if address is None else address + offset
            if kind == "read":
                state.load(at, 4)
            else:
                state.store(at, 4, None)
        return None

    return effect


def _parameter(key: str, name: str, load: bool) -> Effect:
    value = operand(name)

    def effect(machine: Machine, regs: Registers) -> int | None:
        if load:
            regs[name] = regs.get(key)
        else:
            regs[key] = value(regs)
        return None

    return effect
