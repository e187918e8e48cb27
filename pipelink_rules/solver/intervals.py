"""Bounds of bit-vector terms, and bit-vector goals as linear integers.

Most obligations of a proof are ranges of addresses.  Unsigned intervals decide the easy ones
without a solver; where they show that nothing wraps, the rest are linear over the integers, which
Z3 decides in a tenth of the time of bit-vectors.
"""

from collections.abc import Callable, Sequence
from typing import Any

import z3  # type: ignore[import-untyped]

from pipelink_rules.solver.terms import Term, simplified

Interval = tuple[int, int]  # least and largest unsigned value
_EFFORT = 400_000  # Z3's resource units for one linear goal


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


class _NotLinear(Exception):
    """A condition that has no exact linear form."""


class Linear:
    """Bit-vector goals over the integers: proved, or nothing is known.

    A term is translated exactly where its interval shows that it cannot wrap, and else becomes an
    unknown within its interval.  So every model of the bit-vectors is one of the integers, and what
    is unsatisfiable over the integers is so over the bit-vectors.
    """

    def __init__(self, intervals: Intervals) -> None:
        self._intervals = intervals
        self._terms: dict[int, tuple[Term, Any]] = {}
        self._solver = z3.SolverFor("QF_LIA")
        self._solver.set("rlimit", _EFFORT)
        self._count = 0

    def assume(self, fact: Term) -> None:
        """Add a fact for good, where it has a linear form."""
        try:
            self._solver.add(self._condition(simplified(fact)))
        except _NotLinear:
            return

    def multiple(self, term: Term, of: int) -> None:
        """Assume that a term is a multiple of a constant."""
        self._count += 1
        self._solver.add(self._term(term) == of * z3.Int(f"multiple!{self._count}"))

    def proves(self, path: Sequence[Term], goal: Term) -> bool:
        """Return whether the goal follows from the path; False: nothing is known."""
        try:
            wanted = [z3.Not(self._condition(goal))]
        except _NotLinear:
            return False
        for condition in path:
            try:
                wanted.append(self._condition(condition))
            except _NotLinear:
                continue
        self._solver.push()
        self._solver.add(*wanted)
        verdict = self._solver.check()
        self._solver.pop()
        return bool(verdict == z3.unsat)

    def _term(self, term: Term) -> Any:
        if isinstance(term, int):
            return z3.IntVal(term)
        known = self._terms.get(term.get_id())
        if known is None:
            known = self._terms[term.get_id()] = (term, self._translate(term))
        return known[1]

    def _translate(self, term: Term) -> Any:
        if z3.is_bv_value(term):
            return z3.IntVal(term.as_long())
        exact = self._exact(term)
        if exact is not None:
            return exact
        self._count += 1
        unknown = z3.Int(f"unknown!{self._count}")
        least, largest = self._intervals.of(term)
        self._solver.add(unknown >= least, unknown <= largest)
        return unknown

    def _exact(self, term: Term) -> Any:
        kind, kids = term.decl().kind(), term.children()
        fits = 1 << term.size()
        if kind == z3.Z3_OP_BADD:
            return self._sum(kids, fits)
        if kind == z3.Z3_OP_BMUL and len(kids) == 2:
            return self._scaled(term, kids, fits)
        if kind == z3.Z3_OP_ZERO_EXT:
            return self._term(kids[0])
        if kind == z3.Z3_OP_SIGN_EXT:
            return self._term(kids[0]) if self._positive(kids[0]) else None
        if kind == z3.Z3_OP_EXTRACT and term.params()[1] == 0:
            whole = self._intervals.of(kids[0])[1] < fits
            return self._term(kids[0]) if whole else None
        if kind == z3.Z3_OP_CONCAT:
            return self._concatenation(kids)
        if kind == z3.Z3_OP_ITE:
            try:
                condition = self._condition(kids[0])
            except _NotLinear:
                return None
            return z3.If(condition, self._term(kids[1]), self._term(kids[2]))
        return None

    def _scaled(self, term: Term, kids: Sequence[Term], fits: int) -> Any:
        one, other = kids
        if not (z3.is_bv_value(one) or z3.is_bv_value(other)):
            return None
        if self._intervals.of(one)[1] * self._intervals.of(other)[1] >= fits:
            return None
        return self._term(one) * self._term(other)

    def _concatenation(self, kids: Sequence[Term]) -> Any:
        total = self._term(kids[0])
        for kid in kids[1:]:
            total = total * (1 << kid.size()) + self._term(kid)
        return total

    def _sum(self, kids: Sequence[Term], fits: int) -> Any:
        """Return a sum; where its range does not show that it fits, modulo the width."""
        total, least, largest = [], 0, 0
        for kid in kids:
            part, low, high = self._part(kid, fits)
            total.append(part)
            least, largest = least + low, largest + high
        if least >= 0 and largest < fits:
            return z3.Sum(total)
        self._count += 1
        whole = z3.Sum(total) + z3.Int(f"turns!{self._count}") * fits
        self._solver.add(whole >= 0, whole < fits)
        return whole

    def _part(self, kid: Term, fits: int) -> tuple[Any, int, int]:
        """Return a summand and its range; a large constant or factor is a negative one."""
        if z3.is_bv_value(kid):
            value = kid.as_long() - (fits if kid.as_long() >= fits // 2 else 0)
            return z3.IntVal(value), value, value
        if kid.decl().kind() == z3.Z3_OP_BMUL and kid.num_args() == 2:
            factor = kid.arg(0).as_long() if z3.is_bv_value(kid.arg(0)) else 0
            if factor >= fits // 2:
                low, high = self._intervals.of(kid.arg(1))
                value = factor - fits
                return value * self._term(kid.arg(1)), value * high, value * low
        return self._term(kid), *self._intervals.of(kid)

    def _positive(self, term: Term) -> bool:
        return bool(self._intervals.of(term)[1] < 1 << (term.size() - 1))

    def _condition(self, term: Term) -> Any:
        if isinstance(term, int):
            return z3.BoolVal(bool(term))
        kind, kids = term.decl().kind(), term.children()
        if kind in (z3.Z3_OP_AND, z3.Z3_OP_OR, z3.Z3_OP_NOT, z3.Z3_OP_IMPLIES, z3.Z3_OP_XOR):
            return term.decl()(*[self._condition(kid) for kid in kids])
        if kind in (z3.Z3_OP_EQ, z3.Z3_OP_DISTINCT):
            pairs = [self._condition, self._term]
            left, right = (pairs[not z3.is_bool(kid)](kid) for kid in kids)
            return left == right if kind == z3.Z3_OP_EQ else left != right
        if kind in _ORDERS:
            unsigned, order = _ORDERS[kind]
            if not unsigned and not all(self._positive(kid) for kid in kids):
                return order(*(self._signed(kid) for kid in kids))
            return order(self._term(kids[0]), self._term(kids[1]))
        if z3.is_const(term) and z3.is_bool(term):
            return term
        raise _NotLinear

    def _signed(self, term: Term) -> Any:
        """Return a term as two's complement."""
        value, width = self._term(term), term.size()
        if self._positive(term):
            return value
        return z3.If(value >= 1 << (width - 1), value - (1 << width), value)


_ORDERS: dict[int, tuple[bool, Callable[[Any, Any], Any]]] = {
    z3.Z3_OP_ULEQ: (True, lambda a, b: a <= b),
    z3.Z3_OP_ULT: (True, lambda a, b: a < b),
    z3.Z3_OP_UGEQ: (True, lambda a, b: a >= b),
    z3.Z3_OP_UGT: (True, lambda a, b: a > b),
    z3.Z3_OP_SLEQ: (False, lambda a, b: a <= b),
    z3.Z3_OP_SLT: (False, lambda a, b: a < b),
    z3.Z3_OP_SGEQ: (False, lambda a, b: a >= b),
    z3.Z3_OP_SGT: (False, lambda a, b: a > b),
}
