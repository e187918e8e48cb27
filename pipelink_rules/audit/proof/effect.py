"""What an instruction does to a symbolic state, and how it reads its operands."""

import re
from collections.abc import Callable

from pipelink_rules.audit.decode_ptx import operand
from pipelink_rules.audit.proof.prover import Prover
from pipelink_rules.audit.proof.state import Branch, WarpState
from pipelink_rules.audit.proof.verdict import UnprovedError
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import DATA, Pointer, Term

Outcome = int | Branch | list[WarpState] | None
Effect = Callable[[WarpState], Outcome]
Reader = Callable[[WarpState], Term]

ADDRESS = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+))?\s*\]")
ALL_LANES = 0xFFFFFFFF  # the mask of a full warp


def condition_of_value(prover: Prover, value: Term) -> Term:
    """Return a truth value; one that depends on data is free."""
    if value is DATA or isinstance(value, Pointer):
        return prover.fresh("data", 1)
    return value if isinstance(value, int) else terms.truth(value)


def unproved(reason: str) -> Effect:
    def effect(state: WarpState) -> Outcome:
        raise UnprovedError(reason)

    return effect


def nothing(state: WarpState) -> Outcome:
    return None


def reader(prover: Prover, text: str) -> Reader:
    number = operand(text)({})
    if number is not None:
        return lambda state: number
    if text.startswith("!"):
        name = text[1:].strip()

        def opposite(state: WarpState) -> Term:
            value = state.registers.get(name, DATA)
            return DATA if value is DATA else terms.negated(value)

        return opposite
    if text == "%laneid":
        return lambda state: terms.bits(prover.inputs.lane, 32)
    return lambda state: state.registers.get(text, DATA)
