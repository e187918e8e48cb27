"""Bounds of bit-vector terms: most obligations of a proof are ranges, and need no solver then."""

from collections.abc import Callable

import z3  # type: ignore[import-untyped]

from pipelink_rules.solver.terms import Term

Interval = tuple[int, int]  # least and largest unsigned value


class Intervals:
    """Unsigned intervals of terms; `bounds`: those of free variables."""

    def __init__(self) -> None:
        self.bounds: dict[str, Interval] = {}
        self._known: dict[int, tuple[Term, Interval]] = {}  # terms stay alive: ids are reused

    def of(self, term: Term) -> Interval:
        """Return the least and the largest value that the term can have."""
        if isinstance(term, int):
            return term, term
        known = self._known.get(term.get_id())
        if known is None:
            known = self._known[term.get_id()] = (term, self._compute(term))
        return known[1]

    def _compute(self, term: Term) -> Interval:
        most = (1 << term.size()) - 1
        if z3.is_bv_value(term):
            return term.as_long(), term.as_long()
        if not term.num_args():
            return self.bounds.get(term.decl().name(), (0, most))
        rule = _RULES.get(term.decl().kind())
        found = rule(term, self.of) if rule else None
        return found if found is not None and found[1] <= most else (0, most)


Of = Callable[[Term], Interval]


def _concatenation(term: Term, of: Of) -> Interval:
    least = largest = 0
    for part in term.children():
        low, high = of(part)
        least, largest = least << part.size() | low, largest << part.size() | high
    return least, largest


def _sign_extension(term: Term, of: Of) -> Interval | None:
    inner = of(term.arg(0))
    return inner if inner[1] < 1 << (term.arg(0).size() - 1) else None


def _extraction(term: Term, of: Of) -> Interval | None:
    high, low = term.params()
    inner = of(term.arg(0))
    return (inner[0] >> low, inner[1] >> low) if inner[1] >> low < 1 << (high - low + 1) else None


def _sum(term: Term, of: Of) -> Interval:
    parts = [of(part) for part in term.children()]
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


def _product(term: Term, of: Of) -> Interval:
    least = largest = 1
    for part in term.children():
        low, high = of(part)
        least, largest = least * low, largest * high
    return least, largest


def _choice(term: Term, of: Of) -> Interval:
    yes, no = of(term.arg(1)), of(term.arg(2))
    return min(yes[0], no[0]), max(yes[1], no[1])


def _union(term: Term, of: Of) -> Interval:
    return 0, (1 << max(of(part)[1] for part in term.children()).bit_length()) - 1


def _right_shift(term: Term, of: Of) -> Interval | None:
    if not z3.is_bv_value(term.arg(1)):
        return None
    inner, by = of(term.arg(0)), term.arg(1).as_long()
    return inner[0] >> by, inner[1] >> by


def _quotient(term: Term, of: Of) -> Interval | None:
    divisor = of(term.arg(1))
    inner = of(term.arg(0))
    return (inner[0] // divisor[1], inner[1] // divisor[0]) if divisor[0] else None


def _remainder(term: Term, of: Of) -> Interval | None:
    divisor, inner = of(term.arg(1)), of(term.arg(0))
    return (0, min(inner[1], divisor[1] - 1)) if divisor[0] else None


_RULES: dict[int, Callable[[Term, Of], Interval | None]] = {
    z3.Z3_OP_CONCAT: _concatenation,
    z3.Z3_OP_ZERO_EXT: lambda term, of: of(term.arg(0)),
    z3.Z3_OP_SIGN_EXT: _sign_extension,
    z3.Z3_OP_EXTRACT: _extraction,
    z3.Z3_OP_BADD: _sum,
    z3.Z3_OP_BMUL: _product,
    z3.Z3_OP_ITE: _choice,
    z3.Z3_OP_BAND: lambda term, of: (0, min(of(part)[1] for part in term.children())),
    z3.Z3_OP_BOR: _union,
    z3.Z3_OP_BXOR: _union,
    z3.Z3_OP_BLSHR: _right_shift,
    z3.Z3_OP_BUDIV: _quotient,
    z3.Z3_OP_BUDIV_I: _quotient,
    z3.Z3_OP_BUREM: _remainder,
    z3.Z3_OP_BUREM_I: _remainder,
}
