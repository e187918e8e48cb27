"""Instructions of PTX as effects on a symbolic state.

An effect returns None (the next instruction follows), a position, a branch, or the states that an
operation leaves.  Instructions without a rule end the proof where they could do more than change a
register.
"""

import re
from collections.abc import Callable

from pipelink_rules.audit.control_flow import FunctionCode, is_merged
from pipelink_rules.audit.decode_ptx import is_float, registers_of
from pipelink_rules.audit.opcode_table import (
    EXPECTED,
    OpcodeClass,
    is_register_only,
    opcode_row,
)
from pipelink_rules.audit.proof import wgmma
from pipelink_rules.audit.proof.accesses import (
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
from pipelink_rules.audit.proof.prover import Prover
from pipelink_rules.audit.proof.registers import compare, compute, select, vector_move
from pipelink_rules.audit.proof.runtime import call_runtime, same_number
from pipelink_rules.audit.proof.state import Branch, WarpState
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Operation
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import DATA, Pointer, Term
from pipelink_rules.toolkit.ptx import Statement

_ALL_LANES_CLAMP = 31  # of shfl.idx over the whole warp (PTX ISA, shfl.sync)
_QUIET = ("prefetch", "prefetchu", "applypriority", "nanosleep", "membar")
_RAW = ("mbarrier", "cp", "mapa", "tcgen05", "barrier", "bar", "atom", "red")


def effect_of(prover: Prover, code: FunctionCode, statement: Statement) -> Effect:
    """Return the effect of an instruction under its guard."""
    try:
        plain = _plain(prover, code, statement)
    except (IndexError, ValueError):
        return unproved(f"`{statement.text[:80]}`, which is malformed")
    if not statement.guard or statement.base == "bra":
        return plain
    test = reader(prover, statement.guard.lstrip("@"))

    def guarded(state: WarpState) -> Outcome:
        condition = condition_of_value(prover, test(state))
        if isinstance(condition, int):
            return plain(state) if condition else None
        if not prover.queries.possible(state.path, terms.negated(condition)):
            return plain(state)
        if not prover.queries.possible(state.path, condition):
            return None
        other = state.copy().on(terms.negated(condition))
        outcome = plain(state.on(condition))
        if isinstance(outcome, (int, Branch)):
            raise UnprovedError(f"`{statement.opcode}` under a guard")
        return [*(outcome if outcome is not None else [state]), other]

    return guarded


def _plain(prover: Prover, code: FunctionCode, statement: Statement) -> Effect:
    base, opcode, arguments = statement.base, statement.opcode, statement.arguments()
    special = _SPECIAL.get(base)
    if special is not None:
        return special(prover, code, statement)
    if is_merged(statement):
        return merged_accesses(prover, statement)
    row = opcode_row(opcode)
    if row is None:
        return unproved(f"the unknown instruction `{opcode}`")
    if row.kind is OpcodeClass.FORBIDDEN and row.code != "PL0932":
        return _refuted(prover, opcode, row.code, row.message, EXPECTED[row.code])
    if base in ("ld", "ldu", "st", "stmatrix", "ldmatrix"):
        return memory_access(prover, statement)
    if base in _RAW:
        return _raw(prover, statement)
    if base in _QUIET:
        return nothing
    if base == "setp":
        return compare(prover, statement)
    if base == "selp" and len(arguments) == 4 and not is_float(opcode):
        return select(prover, statement)
    if base == "mov" and len(arguments) > 1 and "{" in arguments[0] + arguments[1]:
        return vector_move(prover, arguments)
    if is_register_only(opcode):
        return compute(prover, statement)
    return unproved(f"`{opcode}`, which the proof does not model")


# -- control --------------------------------------------------------------------------------------
def _branch(prover: Prover, code: FunctionCode, statement: Statement) -> Effect:
    if statement.opcode.split(".")[0] != "bra":
        return unproved("an indirect branch")
    target = code.labels.get(statement.operands.strip(), len(code.instructions))
    if not statement.guard:
        return lambda state: target
    test = reader(prover, statement.guard.lstrip("@"))
    return lambda state: Branch(condition_of_value(prover, test(state)), target)


def _return(prover: Prover, code: FunctionCode, statement: Statement) -> Effect:
    end = len(code.instructions)
    return lambda state: end


def _trap(prover: Prover, code: FunctionCode, statement: Statement) -> Effect:
    def effect(state: WarpState) -> Outcome:
        prover.refute(
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


def _call(prover: Prover, code: FunctionCode, statement: Statement) -> Effect:
    parts = statement.arguments()
    result = parts.pop(0).strip("() ") if parts[0].startswith("(") else ""
    name = parts[0]
    listed = parts[1].strip("() ") if len(parts) > 1 and parts[1].startswith("(") else ""
    names = [part.strip() for part in listed.split(",") if part.strip()]
    if prover.module.function(name) is not None:
        return unproved(f"a call of `{name}`, which is not inlined")

    def effect(state: WarpState) -> Outcome:
        outcome = call_runtime(
            prover, state, name, [state.registers.get(one, DATA) for one in names]
        )
        if result:
            state.registers[result] = DATA
        return outcome

    return effect


def _fence(prover: Prover, code: FunctionCode, statement: Statement) -> Effect:
    if not re.match(r"fence\.proxy\.async(\.shared::(cta|cluster))?$", statement.opcode):
        return nothing
    return lambda state: prover.event(state, "fence", "async", _unchecked)


def _unchecked(state: WarpState, op: Operation) -> None:
    return


def _raw(prover: Prover, statement: Statement) -> Effect:
    if statement.opcode.startswith("bar.warp.sync"):
        return _warp_sync(prover, statement)
    if statement.base in ("atom", "red"):
        return atomic(prover, statement)
    if statement.base in ("bar", "barrier"):
        return _named_barrier(prover, statement)
    return _itself(prover, statement.opcode)


def _named_barrier(prover: Prover, statement: Statement) -> Effect:
    """`bar.sync id, threads` of a named barrier, whose id placement gives (PTX ISA, barrier)."""
    opcode, arguments = statement.opcode, statement.arguments()
    verb = next((word for word in ("sync", "arrive") if f".{word}" in opcode), "")
    itself = _itself(prover, opcode)
    if not verb or len(arguments) != 2:
        return itself
    number, threads = (reader(prover, argument) for argument in arguments)
    names = {f"id of {one.name}": one for one in prover.inputs.contract.named_barriers}

    def effect(state: WarpState) -> Outcome:
        found = terms.simplified(number(state))
        used = [names[name] for name in terms.variables(found) if name in names]
        if len(used) != 1:
            return itself(state)
        barrier, count = used[0], threads(state)

        if not terms.same(found, terms.variable(f"id of {barrier.name}", 32)):
            raise UnprovedError(f"`{opcode}` on a barrier that is not declared")

        def check(one: WarpState, op: Operation) -> None:
            same_number(prover, one, op, count, evaluate(barrier.count, {}), "threads")

        return prover.event(state, verb, barrier.name, check)

    return effect


def _itself(prover: Prover, opcode: str) -> Effect:
    what = "issues raw barrier or copy instructions without a raw port"
    return _refuted(prover, opcode, "PL0935", what, "operations of the runtime")


def _refuted(prover: Prover, opcode: str, code: str, what: str, expected: str) -> Effect:
    def effect(state: WarpState) -> Outcome:
        found = f"raw instruction `{opcode}`" if code == "PL0935" else f"`{opcode}`"
        prover.refute(state, RefutedError(code, what, expected=expected, found=found))
        return None

    return effect


# -- the warp -------------------------------------------------------------------------------------
def _warp_sync(prover: Prover, statement: Statement) -> Effect:
    mask = reader(prover, statement.arguments()[0])

    def effect(state: WarpState) -> Outcome:
        if mask(state) not in (ALL_LANES, (1 << 64) - 1):
            raise UnprovedError("a __syncwarp of some lanes")
        prover.converged(state, "__syncwarp", "PL0707")
        return None

    return effect


def _shuffle(prover: Prover, code: FunctionCode, statement: Statement) -> Effect:
    arguments = statement.arguments()
    targets = registers_of(arguments[0])
    value, source, clamp, mask = (reader(prover, arguments[n]) for n in (1, 2, 3, 4))
    by_index = ".idx" in statement.opcode

    def effect(state: WarpState) -> Outcome:
        if mask(state) not in (ALL_LANES, (1 << 64) - 1):
            raise UnprovedError("a shuffle of some lanes")
        prover.converged(state, "shfl.sync", "PL0707")
        given, lane = value(state), source(state)
        result: Term = DATA
        if by_index and clamp(state) == _ALL_LANES_CLAMP and isinstance(lane, int):
            result = _of_lane(prover, given, lane & 31)
        state.registers[targets[0]] = result
        for target in targets[1:]:
            state.registers[target] = 1
        return None

    return effect


def _of_lane(prover: Prover, value: Term, lane: int) -> Term:
    if isinstance(value, int):
        return value
    if isinstance(value, Pointer) or value is DATA:
        return DATA
    if any(name.startswith("data!") for name in terms.variables(value)):
        return DATA
    number = terms.bits(lane, 5)
    return terms.simplified(terms.substituted(value, (prover.inputs.lane, number)))


def _elect(prover: Prover, code: FunctionCode, statement: Statement) -> Effect:
    targets = registers_of(statement.arguments()[0])

    def effect(state: WarpState) -> Outcome:
        prover.converged(state, "elect.sync", "PL0707")
        for target in targets:
            state.registers[target] = DATA
        return None

    return effect


def _vote(prover: Prover, code: FunctionCode, statement: Statement) -> Effect:
    targets, opcode = registers_of(statement.arguments()[0]), statement.opcode

    def effect(state: WarpState) -> Outcome:
        if statement.base != "activemask":
            prover.converged(state, opcode, "PL0707")
        for target in targets:
            state.registers[target] = DATA
        return None

    return effect


def _wgmma(prover: Prover, code: FunctionCode, statement: Statement) -> Effect:
    opcode, arguments = statement.opcode, statement.arguments()
    if opcode.startswith("wgmma.fence"):

        def fence(state: WarpState) -> Outcome:
            prover.converged(state, opcode)
            state.fenced = True
            return None

        return fence
    if opcode.startswith("wgmma.mma_async"):
        if any(argument.startswith("{") for argument in arguments[1:]):
            return unproved("wgmma with an operand in registers")
        reads = [reader(prover, argument) for argument in arguments[1:]]

        def mma(state: WarpState) -> Outcome:
            wgmma.multiply(prover, state, opcode, [read(state) for read in reads])
            return None

        return mma
    if opcode.startswith("wgmma.commit_group"):
        return lambda state: wgmma.commit(prover, state)
    if not opcode.startswith("wgmma.wait_group"):
        return unproved(f"`{opcode}`, which the proof does not model")
    count = reader(prover, arguments[0])

    def wait(state: WarpState) -> Outcome:
        state.fenced = False  # accumulators may be accessed now: the next wgmma needs a fence
        found = count(state)

        def check(one: WarpState, op: Operation) -> None:
            if found != op.count:
                prover.refute(one, _other_wait(op, found))

        return prover.event(state, "await", "mma", check)

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


_SPECIAL: dict[str, Callable[[Prover, FunctionCode, Statement], Effect]] = {
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
