"""Instructions of PTX as effects on a symbolic state.

An effect returns None (the next instruction follows), a position, a branch, or the states that an
operation leaves.  Instructions without a rule end the proof where they could do more than change a
register.
"""

import re
from collections.abc import Callable

from pipelink_rules.audit.control_flow import FunctionCode
from pipelink_rules.audit.decode_ptx import is_float, operand, registers_of, width_of
from pipelink_rules.audit.proof import memory, wgmma
from pipelink_rules.audit.proof.arithmetic import function_of
from pipelink_rules.audit.proof.machine import Machine
from pipelink_rules.audit.proof.runtime import call_runtime
from pipelink_rules.audit.proof.state import Branch, State, chosen
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.model.contract import Operation
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import DATA, Pointer, Term
from pipelink_rules.toolkit.ptx import Statement

Outcome = int | Branch | list[State] | None
Effect = Callable[[State], Outcome]
Reader = Callable[[State], Term]

_ADDRESS = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+))?\s*\]")
_SIZE = re.compile(r"\.(?:[usbf]|bf)(8|16|32|64|128)\b")
_STRONG = ("volatile", "relaxed", "acquire", "release", "mmio")
_ALL_LANES = 0xFFFFFFFF
_QUIET = ("prefetch", "prefetchu", "applypriority", "nanosleep", "membar")
# Registers only, whatever they compute (PTX ISA, sections 9.7.1 to 9.7.8).
_REGISTERS = frozenset(
    "abs add addc and bfe bfi bfind bmsk brev clz cnot copysign cos cvt cvta div dp2a dp4a ex2 fma "
    "fns isspacep lg2 lop3 mad mad24 madc max min mov mul mul24 neg not or popc prmt rcp rem rsqrt "
    "sad selp set setp shf shl shr sin slct sqrt sub subc szext tanh testp xor".split()
)
_FORBIDDEN = {  # base -> (code, what the contract would have to say)
    "atom": ("PL0936", "the linker orders CTAs, through counters"),
    "red": ("PL0936", "the linker orders CTAs, through counters"),
    "multimem": ("PL0936", "the linker orders CTAs, through counters"),
    "tensormap": ("PL0907", "tensor maps belong to the launcher"),
    "discard": ("PL0930", "memory of a port that the contract shows as written"),
}
_RAW = (
    "mbarrier",
    "cp",
    "mapa",
    "tcgen05",
    "barrier",
    "bar",
    "griddepcontrol",
    "clusterlaunchcontrol",
)


def effect_of(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    """Return the effect of an instruction under its guard."""
    try:
        plain = _plain(machine, code, statement)
    except (IndexError, ValueError):
        return _unproved(f"`{statement.text[:80]}`, which is malformed")
    if not statement.guard or statement.base == "bra":
        return plain
    test = _reader(machine, statement.guard.lstrip("@"))

    def guarded(state: State) -> Outcome:
        condition = _condition(machine, test(state))
        if isinstance(condition, int):
            return plain(state) if condition else None
        if not machine.queries.possible(state.path, terms.negated(condition)):
            return plain(state)
        if not machine.queries.possible(state.path, condition):
            return None
        other = state.copy().on(terms.negated(condition))
        outcome = plain(state.on(condition))
        if isinstance(outcome, (int, Branch)):
            raise UnprovedError(f"`{statement.opcode}` under a guard")
        return [*(outcome if outcome is not None else [state]), other]

    return guarded


def _condition(machine: Machine, value: Term) -> Term:
    """Return a truth value; one that depends on data is free."""
    if value is DATA or isinstance(value, Pointer):
        return machine.fresh("data", 1)
    return value if isinstance(value, int) else terms.truth(value)


def _unproved(reason: str) -> Effect:
    def effect(state: State) -> Outcome:
        raise UnprovedError(reason)

    return effect


def _nothing(state: State) -> Outcome:
    return None


def _reader(machine: Machine, text: str) -> Reader:
    number = operand(text)({})
    if number is not None:
        return lambda state: number
    if text.startswith("!"):
        name = text[1:].strip()

        def opposite(state: State) -> Term:
            value = state.registers.get(name, DATA)
            return DATA if value is DATA else terms.negated(value)

        return opposite
    if text == "%laneid":
        return lambda state: terms.bits(machine.inputs.lane, 32)
    return lambda state: state.registers.get(text, DATA)


def _plain(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    base, opcode, arguments = statement.base, statement.opcode, statement.arguments()
    special = _SPECIAL.get(base)
    if special is not None:
        return special(machine, code, statement)
    if opcode.endswith(".many"):
        return _many(machine, statement)
    if base in ("ld", "ldu", "st", "stmatrix", "ldmatrix"):
        return _memory(machine, statement)
    if base in _FORBIDDEN or base in _RAW:
        return _forbidden(machine, statement)
    if base in _QUIET:
        return _nothing
    if base == "setp":
        return _compare(machine, statement)
    if base == "selp" and len(arguments) == 4 and not is_float(opcode):
        return _select(machine, statement)
    if base == "mov" and len(arguments) > 1 and "{" in arguments[0] + arguments[1]:
        return _vector_move(machine, arguments)
    if base in _REGISTERS:
        return _compute(machine, statement)
    return _unproved(f"`{opcode}`, which the proof does not model")


# -- control --------------------------------------------------------------------------------------
def _branch(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    if statement.opcode.split(".")[0] != "bra":
        return _unproved("an indirect branch")
    target = code.labels.get(statement.operands.strip(), len(code.instructions))
    if not statement.guard:
        return lambda state: target
    test = _reader(machine, statement.guard.lstrip("@"))
    return lambda state: Branch(_condition(machine, test(state)), target)


def _return(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    end = len(code.instructions)
    return lambda state: end


def _trap(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    def effect(state: State) -> Outcome:
        machine.refute(
            state,
            RefutedError(
                "PL0934",
                "stops the kernel",
                expected="the operations of its body",
                found=f"`{statement.opcode}`",
            ),
        )
        return None

    return effect


def _call(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    parts = statement.arguments()
    result = parts.pop(0).strip("() ") if parts[0].startswith("(") else ""
    name = parts[0]
    listed = parts[1].strip("() ") if len(parts) > 1 and parts[1].startswith("(") else ""
    names = [part.strip() for part in listed.split(",") if part.strip()]
    if machine.module.function(name) is not None:
        return _unproved(f"a call of `{name}`, which is not inlined")

    def effect(state: State) -> Outcome:
        outcome = call_runtime(
            machine, state, name, [state.registers.get(one, DATA) for one in names]
        )
        if result:
            state.registers[result] = DATA
        return outcome

    return effect


def _fence(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    if not re.match(r"fence\.proxy\.async(\.shared::(cta|cluster))?$", statement.opcode):
        return _nothing
    return lambda state: machine.event(state, "fence", "async", _unchecked)


def _unchecked(state: State, op: Operation) -> None:
    return


def _forbidden(machine: Machine, statement: Statement) -> Effect:
    base, opcode = statement.base, statement.opcode
    if base in ("atom", "red") and _shared_atomic(statement):
        return _atomic(machine, statement)
    if base == "bar" and opcode.startswith("bar.warp.sync"):
        return _warp_sync(machine, statement)
    if base in ("atom", "red"):
        return _atomic(machine, statement)
    code, expected = _FORBIDDEN.get(base, ("PL0935", "operations of the runtime"))
    if base == "cp" and ".reduce" in opcode:
        code, expected = _FORBIDDEN["red"]

    def effect(state: State) -> Outcome:
        machine.refute(
            state,
            RefutedError(code, f"issues `{opcode}` itself", expected=expected, found=opcode),
        )
        return None

    return effect


def _shared_atomic(statement: Statement) -> bool:
    return ".shared" in statement.opcode


# -- the warp -------------------------------------------------------------------------------------
def _warp_sync(machine: Machine, statement: Statement) -> Effect:
    mask = _reader(machine, statement.arguments()[0])

    def effect(state: State) -> Outcome:
        if mask(state) not in (_ALL_LANES, (1 << 64) - 1):
            raise UnprovedError("a __syncwarp of some lanes")
        machine.converged(state, "__syncwarp", "PL0707")
        return None

    return effect


def _shuffle(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    arguments = statement.arguments()
    targets = registers_of(arguments[0])
    value, source, mask = (_reader(machine, arguments[number]) for number in (1, 2, 4))
    by_index = ".idx" in statement.opcode

    def effect(state: State) -> Outcome:
        if mask(state) not in (_ALL_LANES, (1 << 64) - 1):
            raise UnprovedError("a shuffle of some lanes")
        machine.converged(state, "shfl.sync", "PL0707")
        given, lane = value(state), source(state)
        result: Term = DATA
        if by_index and isinstance(lane, int) and given is not DATA:
            result = _of_lane(machine, given, lane & 31)
        state.registers[targets[0]] = result
        for target in targets[1:]:
            state.registers[target] = 1
        return None

    return effect


def _of_lane(machine: Machine, value: Term, lane: int) -> Term:
    if isinstance(value, (int, Pointer)):
        return value if isinstance(value, int) else DATA
    if any(name.startswith("data!") for name in terms.variables(value)):
        return DATA
    number = terms.bits(lane, 5)
    return terms.simplified(terms.substituted(value, (machine.inputs.lane, number)))


def _elect(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    targets = registers_of(statement.arguments()[0])

    def effect(state: State) -> Outcome:
        machine.converged(state, "elect.sync", "PL0707")
        for target in targets:
            state.registers[target] = DATA
        return None

    return effect


def _vote(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    targets, opcode = registers_of(statement.arguments()[0]), statement.opcode

    def effect(state: State) -> Outcome:
        if statement.base != "activemask":
            machine.converged(state, opcode, "PL0707")
        for target in targets:
            state.registers[target] = DATA
        return None

    return effect


def _wgmma(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    opcode, arguments = statement.opcode, statement.arguments()
    if opcode.startswith("wgmma.fence"):

        def fence(state: State) -> Outcome:
            machine.converged(state, opcode)
            state.fenced = True
            return None

        return fence
    if opcode.startswith("wgmma.mma_async"):
        if any(argument.startswith("{") for argument in arguments[1:]):
            return _unproved("wgmma with an operand in registers")
        reads = [_reader(machine, argument) for argument in arguments[1:]]

        def mma(state: State) -> Outcome:
            wgmma.multiply(machine, state, opcode, [read(state) for read in reads])
            return None

        return mma
    if opcode.startswith("wgmma.commit_group"):
        return lambda state: wgmma.commit(machine, state)
    if not opcode.startswith("wgmma.wait_group"):
        return _unproved(f"`{opcode}`, which the proof does not model")
    count = _reader(machine, arguments[0])

    def wait(state: State) -> Outcome:
        state.fenced = False  # accumulators may be accessed now: the next wgmma needs a fence
        found = count(state)

        def check(one: State, op: Operation) -> None:
            if found != op.count:
                machine.refute(one, _other_wait(op, found))

        return machine.event(state, "await", "mma", check)

    return wait


def _other_wait(op: Operation, found: Term) -> RefutedError:
    return RefutedError(
        "PL0918",
        f"performs `await mma {op.count}` with a different count",
        op=op,
        target="mma",
        expected=str(op.count),
        found=str(found),
    )


# -- memory ---------------------------------------------------------------------------------------
def _memory(machine: Machine, statement: Statement) -> Effect:
    opcode, arguments = statement.opcode, statement.arguments()
    loads = statement.base in ("ld", "ldu", "ldmatrix")
    place, data = (arguments[1], arguments[0]) if loads else (arguments[0], arguments[1])
    found = _ADDRESS.match(place)
    if found is None:
        return _unproved(f"the address `{place}`, which the proof cannot read")
    names, shift = registers_of(data), int(found[2] or "0", 0)
    if ".param" in opcode:
        return _parameter(machine, found[1] + (f"+{shift}" if shift else ""), names[0], loads)
    sizes = _SIZE.findall(opcode)
    size = int(sizes[-1]) // 8 if sizes else 4
    base = _reader(machine, found[1])
    matrix = "matrix" in statement.base
    if ".shared" in opcode or matrix:
        total = 16 if matrix else size * len(names)
        return _shared(machine, statement, base, shift, total, names if loads else [])
    if ".const" in opcode:
        return _unproved(f"`{opcode}`, which the proof does not model")
    strong = any(f".{word}" in opcode for word in _STRONG)
    reads = [_reader(machine, name) for name in names]
    data_only = re.search(r"\.(f16|f32|f64|bf16)\b", opcode) is not None
    kind = "read" if loads else "write"

    def effect(state: State) -> Outcome:
        pointer = base(state)
        if isinstance(pointer, Pointer):
            pointer = pointer.moved(shift)
        if strong and memory.port_of(pointer) is not None:
            machine.refute(state, _orders_ctas(opcode, pointer))
        if isinstance(pointer, Pointer) and pointer.region.startswith(("port ", "shared")):
            memory.access(machine, state, kind, pointer, size * len(names))
            for name in names if loads else ():
                state.registers[name] = DATA
            return None
        if not isinstance(pointer, Pointer):
            memory.access(machine, state, kind, pointer, size)
        assert isinstance(pointer, Pointer)
        for number, name in enumerate(names):
            at = pointer.moved(size * number)
            if loads:
                value = memory.load(machine, state, at, size)
                state.registers[name] = DATA if data_only else value
            else:
                given = DATA if data_only else reads[number](state)
                memory.store(machine, state, at, size, given)
        return None

    return effect


def _parameter(machine: Machine, key: str, name: str, loads: bool) -> Effect:
    value = _reader(machine, name)

    def effect(state: State) -> Outcome:
        if loads:
            state.registers[name] = state.registers.get(key, DATA)
        else:
            state.registers[key] = value(state)
        return None

    return effect


def _shared(
    machine: Machine,
    statement: Statement,
    base: Reader,
    shift: int,
    size: int,
    loaded: list[str],
) -> Effect:
    reads = statement.base in ("ld", "ldu", "ldmatrix")
    matrix = "matrix" in statement.base

    def effect(state: State) -> Outcome:
        address = _shared_address(base(state), shift)
        if matrix:
            machine.converged(state, statement.opcode, "PL0707")
        memory.reach_shared(machine, state, "read" if reads else "write", address, size)
        for name in loaded:
            state.registers[name] = DATA
        return None

    return effect


def _shared_address(value: Term, shift: int) -> Term:
    if isinstance(value, Pointer) and value.region == "shared":
        value = value.offset
    if value is DATA:
        raise UnprovedError("an access to shared memory at an address that depends on data")
    if isinstance(value, Pointer):
        raise UnprovedError("an access to shared memory by another pointer")
    if not isinstance(value, int):
        value = terms.simplified(terms.bits(value, 32))
    return terms.add(value, shift, 32)


def _atomic(machine: Machine, statement: Statement) -> Effect:
    """Atomics on shared memory read and write; on global memory they order CTAs, which is ours."""
    arguments = statement.arguments()
    place = next(argument for argument in arguments if argument.startswith("["))
    found = _ADDRESS.match(place)
    if found is None:
        return _unproved(f"the address `{place}`, which the proof cannot read")
    base, shift = _reader(machine, found[1]), int(found[2] or "0", 0)
    results = registers_of(arguments[0]) if statement.base == "atom" else []
    size = width_of(statement.opcode)[0] // 8

    def effect(state: State) -> Outcome:
        pointer = base(state)
        if ".shared" in statement.opcode and not isinstance(pointer, Pointer):
            pointer = Pointer("shared", terms.bits(_shared_address(pointer, 0), 64))
        if not isinstance(pointer, Pointer) or pointer.region != "shared":
            machine.refute(state, _orders_ctas(statement.opcode, pointer))
        assert isinstance(pointer, Pointer)
        address = _shared_address(pointer, shift)
        memory.reach_shared(machine, state, "read", address, size)
        memory.reach_shared(machine, state, "write", address, size, atomic=True)
        for name in results:
            state.registers[name] = DATA
        return None

    return effect


def _orders_ctas(opcode: str, pointer: Term) -> RefutedError:
    return RefutedError(
        "PL0936",
        f"issues `{opcode}` itself",
        target=memory.port_of(pointer) or "",
        expected=_FORBIDDEN["atom"][1],
        found=opcode,
    )


def _many(machine: Machine, statement: Statement) -> Effect:
    """Adjacent accesses to data, as `function_code` merges them: `[base + 0, 4, 8]`."""
    base, *shifts = statement.operands.split()
    offsets = sorted(int(shift) for shift in shifts)
    kind = "read" if statement.base == "ld" else "write"
    least, end = offsets[0], offsets[-1] + 4
    dense = offsets == list(range(least, end, 4))

    def effect(state: State) -> Outcome:
        pointer = state.registers.get(base, DATA)
        if not isinstance(pointer, Pointer):
            memory.access(machine, state, kind, pointer, 4)
        assert isinstance(pointer, Pointer)
        if pointer.region.startswith(("port ", "shared")):
            pieces = [(least, end - least)] if dense else [(offset, 4) for offset in offsets]
            for offset, size in pieces:
                memory.access(machine, state, kind, pointer.moved(offset), size)
        elif kind == "write":
            for offset in offsets:
                memory.store(machine, state, pointer.moved(offset), 4, DATA)
        return None

    return effect


# -- registers ------------------------------------------------------------------------------------
def _compute(machine: Machine, statement: Statement) -> Effect:
    arguments = statement.arguments()
    targets = registers_of(arguments[0]) if arguments else []
    function = None
    if not is_float(statement.opcode):
        function = function_of(statement.opcode, statement.base, len(arguments) - 1)
    reads = [_reader(machine, argument) for argument in arguments[1:]]

    def effect(state: State) -> Outcome:
        values = [read(state) for read in reads] if function else []
        known = function is not None and not any(value is DATA for value in values)
        for target in targets:
            state.registers[target] = DATA
        if known and function is not None:
            state.registers[targets[0]] = function(*values)
        return None

    return effect


_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _compare(machine: Machine, statement: Statement) -> Effect:
    opcode, arguments = statement.opcode, statement.arguments()
    targets = [text.strip() for text in arguments[0].split("|")]
    parts = opcode.split(".")
    relation = _UNSIGNED.get(parts[1], parts[1])
    known = relation in terms.COMPARE and len(parts) == 3 and len(arguments) == 3
    modeled = known and not is_float(opcode)
    width, sign = width_of(opcode)
    left, right = (_reader(machine, text) for text in (arguments[1], arguments[2]))

    def effect(state: State) -> Outcome:
        a, b = left(state), right(state)
        if isinstance(a, Pointer) and isinstance(b, Pointer) and a.region == b.region:
            a, b = a.offset, b.offset
        value: Term = DATA
        if modeled and not any(v is DATA or isinstance(v, Pointer) for v in (a, b)):
            value = terms.compare(relation, a, b, width, sign)
            if not isinstance(value, int):
                machine.queries.keep(value)
                machine.comparisons[value.get_id()] = a, b
        else:
            value = machine.fresh("data", 1)
        state.registers[targets[0]] = value
        if len(targets) > 1:
            state.registers[targets[1]] = terms.negated(value)
        return None

    return effect


def _select(machine: Machine, statement: Statement) -> Effect:
    arguments = statement.arguments()
    target, width = arguments[0], width_of(statement.opcode)[0]
    yes, no, test = (_reader(machine, argument) for argument in arguments[1:])

    def effect(state: State) -> Outcome:
        condition, one, other = test(state), yes(state), no(state)
        if terms.same(one, other):
            state.registers[target] = one
        elif condition is DATA or isinstance(condition, Pointer):
            state.registers[target] = DATA
        elif isinstance(condition, int):
            state.registers[target] = one if condition else other
        else:
            state.registers[target] = chosen(terms.truth(condition), one, other, width)
        return None

    return effect


def _vector_move(machine: Machine, arguments: list[str]) -> Effect:
    """`mov.b64 %rd, {%r1, %r2}` and its reverse; other vectors are data."""
    targets, sources = registers_of(arguments[0]), registers_of(arguments[1])
    if "{" in arguments[1] and len(sources) == 2 and targets[0].startswith("%rd"):
        low, high = (_reader(machine, source) for source in sources)

        def join(state: State) -> Outcome:
            a, b = low(state), high(state)
            plain = not any(v is DATA or isinstance(v, Pointer) for v in (a, b))
            state.registers[targets[0]] = terms.joined(a, b) if plain else DATA
            return None

        return join
    halves = "{" in arguments[0] and len(targets) == 2
    if halves and all(re.match(r"%r\d", target) for target in targets):
        whole = _reader(machine, arguments[1])

        def split(state: State) -> Outcome:
            value = whole(state)
            plain = value is not DATA and not isinstance(value, Pointer)
            state.registers[targets[0]] = terms.low_half(value) if plain else DATA
            state.registers[targets[1]] = terms.high_half(value) if plain else DATA
            return None

        return split

    def unknown(state: State) -> Outcome:
        for target in targets:
            state.registers[target] = DATA
        return None

    return unknown


_SPECIAL: dict[str, Callable[[Machine, FunctionCode, Statement], Effect]] = {
    "bra": _branch,
    "ret": _return,
    "exit": _return,
    "trap": _trap,
    "call": _call,
    "fence": _fence,
    "wgmma": _wgmma,
    "shfl": _shuffle,
    "elect": _elect,
    "vote": _vote,
    "match": _vote,
    "activemask": _vote,
    "redux": _vote,
}
