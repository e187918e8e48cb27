"""Instructions that change registers only, as effects on a symbolic state."""

import re

from pipelink_rules.audit.decode_ptx import is_float, registers_of, width_of
from pipelink_rules.audit.proof.arithmetic import function_of
from pipelink_rules.audit.proof.effect import Effect, Outcome, reader
from pipelink_rules.audit.proof.prover import Prover
from pipelink_rules.audit.proof.state import WarpState, chosen
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import DATA, Pointer, Term
from pipelink_rules.toolkit.ptx import Statement


def compute(prover: Prover, statement: Statement) -> Effect:
    arguments = statement.arguments()
    targets = registers_of(arguments[0]) if arguments else []
    function = None
    if not is_float(statement.opcode):
        function = function_of(statement.opcode, statement.base, len(arguments) - 1)
    reads = [reader(prover, argument) for argument in arguments[1:]]

    def effect(state: WarpState) -> Outcome:
        values = [read(state) for read in reads] if function else []
        known = function is not None and not any(value is DATA for value in values)
        for target in targets:
            state.registers[target] = DATA
        if known and function is not None:
            state.registers[targets[0]] = function(*values)
        return None

    return effect


_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def compare(prover: Prover, statement: Statement) -> Effect:
    opcode, arguments = statement.opcode, statement.arguments()
    targets = [text.strip() for text in arguments[0].split("|")]
    parts = opcode.split(".")
    relation = _UNSIGNED.get(parts[1], parts[1])
    known = relation in terms.COMPARE and len(parts) == 3 and len(arguments) == 3
    modeled = known and not is_float(opcode)
    width, sign = width_of(opcode)
    left, right = (reader(prover, text) for text in (arguments[1], arguments[2]))

    def effect(state: WarpState) -> Outcome:
        a, b = left(state), right(state)
        if isinstance(a, Pointer) and isinstance(b, Pointer) and a.region == b.region:
            a, b = a.offset, b.offset
        value: Term = DATA
        if modeled and not any(v is DATA or isinstance(v, Pointer) for v in (a, b)):
            value = terms.compare(relation, a, b, width, sign)
            if not isinstance(value, int):
                prover.queries.keep(value)
                prover.comparisons[value.get_id()] = a, b
        else:
            value = prover.fresh("data", 1)
        state.registers[targets[0]] = value
        if len(targets) > 1:
            state.registers[targets[1]] = terms.negated(value)
        return None

    return effect


def select(prover: Prover, statement: Statement) -> Effect:
    arguments = statement.arguments()
    target, width = arguments[0], width_of(statement.opcode)[0]
    yes, no, test = (reader(prover, argument) for argument in arguments[1:])

    def effect(state: WarpState) -> Outcome:
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


def vector_move(prover: Prover, arguments: list[str]) -> Effect:
    """`mov.b64 %rd, {%r1, %r2}` and its reverse; other vectors are data."""
    targets, sources = registers_of(arguments[0]), registers_of(arguments[1])
    if "{" in arguments[1] and len(sources) == 2 and targets[0].startswith("%rd"):
        low, high = (reader(prover, source) for source in sources)

        def join(state: WarpState) -> Outcome:
            a, b = low(state), high(state)
            plain = not any(v is DATA or isinstance(v, Pointer) for v in (a, b))
            state.registers[targets[0]] = terms.joined(a, b) if plain else DATA
            return None

        return join
    halves = "{" in arguments[0] and len(targets) == 2
    if halves and all(re.match(r"%r\d", target) for target in targets):
        whole = reader(prover, arguments[1])

        def split(state: WarpState) -> Outcome:
            value = whole(state)
            plain = value is not DATA and not isinstance(value, Pointer)
            state.registers[targets[0]] = terms.low_half(value) if plain else DATA
            state.registers[targets[1]] = terms.high_half(value) if plain else DATA
            return None

        return split

    def unknown(state: WarpState) -> Outcome:
        for target in targets:
            state.registers[target] = DATA
        return None

    return unknown
