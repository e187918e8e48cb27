"""Instructions of PTX as effects on a symbolic state.

An effect returns None (the next instruction follows), a position, a branch, or the states that an
operation leaves.  Instructions without a rule end the proof where they could do more than change a
register.
"""

import re
from collections.abc import Callable

from pipelink_rules.audit.control_flow import FunctionCode
from pipelink_rules.audit.decode_ptx import is_float, registers_of
from pipelink_rules.audit.proof import wgmma
from pipelink_rules.audit.proof.accesses import (
    ORDERS_CTAS,
    atomic,
    memory_access,
    merged_accesses,
)
from pipelink_rules.audit.proof.effect import (
    ALL_LANES,
    Effect,
    Outcome,
    condition_of_value,
    nothing,
    reader,
    unproved,
)
from pipelink_rules.audit.proof.machine import Machine
from pipelink_rules.audit.proof.registers import compare, compute, select, vector_move
from pipelink_rules.audit.proof.runtime import call_runtime
from pipelink_rules.audit.proof.state import Branch, State
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.model.contract import Operation
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import DATA, Pointer, Term
from pipelink_rules.toolkit.ptx import Statement

_ALL_LANES_CLAMP = 31  # of shfl.idx over the whole warp (PTX ISA, shfl.sync)
_QUIET = ("prefetch", "prefetchu", "applypriority", "nanosleep", "membar")
# Registers only, whatever they compute (PTX ISA, sections 9.7.1 to 9.7.8).
_REGISTERS = frozenset(
    [
        "abs",
        "add",
        "addc",
        "and",
        "bfe",
        "bfi",
        "bfind",
        "bmsk",
        "brev",
        "clz",
        "cnot",
        "copysign",
        "cos",
        "cvt",
        "cvta",
        "div",
        "dp2a",
        "dp4a",
        "ex2",
        "fma",
        "fns",
        "isspacep",
        "lg2",
        "lop3",
        "mad",
        "mad24",
        "madc",
        "max",
        "min",
        "mov",
        "mul",
        "mul24",
        "neg",
        "not",
        "or",
        "popc",
        "prmt",
        "rcp",
        "rem",
        "rsqrt",
        "sad",
        "selp",
        "set",
        "setp",
        "shf",
        "shl",
        "shr",
        "sin",
        "slct",
        "sqrt",
        "sub",
        "subc",
        "szext",
        "tanh",
        "testp",
        "xor",
    ]
)
_FORBIDDEN = {  # base -> (code, what the contract would have to say)
    "atom": ("PL0936", ORDERS_CTAS),
    "red": ("PL0936", ORDERS_CTAS),
    "multimem": ("PL0936", ORDERS_CTAS),
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
        return unproved(f"`{statement.text[:80]}`, which is malformed")
    if not statement.guard or statement.base == "bra":
        return plain
    test = reader(machine, statement.guard.lstrip("@"))

    def guarded(state: State) -> Outcome:
        condition = condition_of_value(machine, test(state))
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


def _plain(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    base, opcode, arguments = statement.base, statement.opcode, statement.arguments()
    special = _SPECIAL.get(base)
    if special is not None:
        return special(machine, code, statement)
    if opcode.endswith(".many"):
        return merged_accesses(machine, statement)
    if opcode.startswith(("st.async", "st.bulk", "red.async")):
        return _itself(machine, opcode, "PL0935", "operations of the runtime")
    if base in ("ld", "ldu", "st", "stmatrix", "ldmatrix"):
        return memory_access(machine, statement)
    if base in _FORBIDDEN or base in _RAW:
        return _forbidden(machine, statement)
    if base in _QUIET:
        return nothing
    if base == "setp":
        return compare(machine, statement)
    if base == "selp" and len(arguments) == 4 and not is_float(opcode):
        return select(machine, statement)
    if base == "mov" and len(arguments) > 1 and "{" in arguments[0] + arguments[1]:
        return vector_move(machine, arguments)
    if base in _REGISTERS:
        return compute(machine, statement)
    return unproved(f"`{opcode}`, which the proof does not model")


# -- control --------------------------------------------------------------------------------------
def _branch(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    if statement.opcode.split(".")[0] != "bra":
        return unproved("an indirect branch")
    target = code.labels.get(statement.operands.strip(), len(code.instructions))
    if not statement.guard:
        return lambda state: target
    test = reader(machine, statement.guard.lstrip("@"))
    return lambda state: Branch(condition_of_value(machine, test(state)), target)


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
        return unproved(f"a call of `{name}`, which is not inlined")

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
        return nothing
    return lambda state: machine.event(state, "fence", "async", _unchecked)


def _unchecked(state: State, op: Operation) -> None:
    return


def _forbidden(machine: Machine, statement: Statement) -> Effect:
    base, opcode = statement.base, statement.opcode
    if opcode.startswith("bar.warp.sync"):
        return _warp_sync(machine, statement)
    if base in ("atom", "red"):
        return atomic(machine, statement)
    code, expected = _FORBIDDEN.get(base, ("PL0935", "operations of the runtime"))
    if base == "cp" and ".reduce" in opcode:
        code, expected = _FORBIDDEN["red"]
    return _itself(machine, opcode, code, expected)


def _itself(machine: Machine, opcode: str, code: str, expected: str) -> Effect:
    def effect(state: State) -> Outcome:
        error = RefutedError(code, f"issues `{opcode}` itself", expected=expected, found=opcode)
        machine.refute(state, error)
        return None

    return effect


# -- the warp -------------------------------------------------------------------------------------
def _warp_sync(machine: Machine, statement: Statement) -> Effect:
    mask = reader(machine, statement.arguments()[0])

    def effect(state: State) -> Outcome:
        if mask(state) not in (ALL_LANES, (1 << 64) - 1):
            raise UnprovedError("a __syncwarp of some lanes")
        machine.converged(state, "__syncwarp", "PL0707")
        return None

    return effect


def _shuffle(machine: Machine, code: FunctionCode, statement: Statement) -> Effect:
    arguments = statement.arguments()
    targets = registers_of(arguments[0])
    value, source, clamp, mask = (reader(machine, arguments[n]) for n in (1, 2, 3, 4))
    by_index = ".idx" in statement.opcode

    def effect(state: State) -> Outcome:
        if mask(state) not in (ALL_LANES, (1 << 64) - 1):
            raise UnprovedError("a shuffle of some lanes")
        machine.converged(state, "shfl.sync", "PL0707")
        given, lane = value(state), source(state)
        result: Term = DATA
        if by_index and clamp(state) == _ALL_LANES_CLAMP and isinstance(lane, int):
            result = _of_lane(machine, given, lane & 31)
        state.registers[targets[0]] = result
        for target in targets[1:]:
            state.registers[target] = 1
        return None

    return effect


def _of_lane(machine: Machine, value: Term, lane: int) -> Term:
    if isinstance(value, int):
        return value
    if isinstance(value, Pointer) or value is DATA:
        return DATA
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
            return unproved("wgmma with an operand in registers")
        reads = [reader(machine, argument) for argument in arguments[1:]]

        def mma(state: State) -> Outcome:
            wgmma.multiply(machine, state, opcode, [read(state) for read in reads])
            return None

        return mma
    if opcode.startswith("wgmma.commit_group"):
        return lambda state: wgmma.commit(machine, state)
    if not opcode.startswith("wgmma.wait_group"):
        return unproved(f"`{opcode}`, which the proof does not model")
    count = reader(machine, arguments[0])

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
