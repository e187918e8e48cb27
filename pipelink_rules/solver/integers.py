"""Bit-vector terms as integers: a term -> SMT-LIB text over Int, for a session to decide.

Division by a variable and products of variables are hopeless as bit-vectors of 32 bits and easy as
integers.  The translation is exact where it can be: a sum or product that may leave its width is
the integer minus a multiple of 2^width, which intervals and the solver bound; quotient and rest of
a division are two variables of one equation.  What has no integer form is an unknown within its
interval, and so is a quotient by zero, of which PTX says nothing.  Hence a goal that follows from
the text holds; values that break it have to be tried.
"""

from collections.abc import Callable

import z3  # type: ignore[import-untyped]

from pipelink_rules.solver.intervals import Intervals
from pipelink_rules.solver.smt_expression import SmtWriter, number
from pipelink_rules.solver.terms import Term

_MOST_BITS = 8  # of an operand, of and, or, exclusive or of two variables


class IntegerTerms:
    """Writes terms as definitions; the free variables are names of the writer."""

    def __init__(self, writer: SmtWriter, intervals: Intervals) -> None:
        self.writer, self.intervals = writer, intervals
        self._known: dict[int, tuple[Term, str]] = {}  # terms stay alive: ids are reused
        self._divisions: dict[tuple[str, str], tuple[str, str]] = {}
        self._count = 0

    def value(self, term: Term) -> str:
        """Return the unsigned value of a bit-vector."""
        if isinstance(term, int):
            return number(term)
        found = self._known.get(term.get_id())
        if found is None:
            found = self._known[term.get_id()] = (term, self._define("Int", self._value(term)))
        return found[1]

    def signed(self, term: Term) -> str:
        """Return the value of a bit-vector as two's complement."""
        value, half = self.value(term), 1 << (term.size() - 1)
        if self.intervals.of(term)[1] < half:
            return value
        return f"(ite (>= {value} {half}) (- {value} {2 * half}) {value})"

    def condition(self, term: Term) -> str:
        """Return a truth value."""
        if isinstance(term, int):
            return "true" if term else "false"
        found = self._known.get(term.get_id())
        if found is None:
            found = self._known[term.get_id()] = (term, self._define("Bool", self._condition(term)))
        return found[1]

    # -- pieces -----------------------------------------------------------------------------------
    def _define(self, sort: str, text: str) -> str:
        if not text.startswith("("):
            return text
        self._count += 1
        name = f"|{self._count}.t|"
        self.writer.lines.append(f"(define-fun {name} () {sort} {text})")
        return name

    def _variable(self, sort: str = "Int") -> str:
        self._count += 1
        name = f"|{self._count}.free|"
        self.writer.lines.append(f"(declare-const {name} {sort})")
        return name

    def _unknown(self, term: Term) -> str:
        low, high = self.intervals.of(term)
        name = self._variable()
        self.writer.claim(f"(<= {low} {name} {high})")
        return name

    def _wrapped(self, exact: str, low: int, high: int, width: int) -> str:
        """Return the low `width` bits of an integer within bounds."""
        if low >= 0 and high < 1 << width:
            return exact
        exact, times = self._define("Int", exact), self._variable()
        result = self._define("Int", f"(- {exact} (* {1 << width} {times}))")
        self.writer.claim(f"(<= 0 {result} {(1 << width) - 1})")
        self.writer.claim(f"(<= {number(low >> width)} {times} {high >> width})")
        return result

    def _value(self, term: Term) -> str:
        if z3.is_bv_value(term):
            return number(term.as_long())
        if not term.num_args():
            return f"|{term.decl().name()}|"
        rule = _RULES.get(term.decl().kind())
        return (rule(self, term) if rule else None) or self._unknown(term)

    def _condition(self, term: Term) -> str:
        if z3.is_true(term) or z3.is_false(term):
            return "true" if z3.is_true(term) else "false"
        kind, parts = term.decl().kind(), term.children()
        if kind in _CONNECTIVES:
            return f"({_CONNECTIVES[kind]} {' '.join(map(self.condition, parts))})"
        if kind == z3.Z3_OP_EQ or kind == z3.Z3_OP_DISTINCT:
            read = self.condition if z3.is_bool(parts[0]) else self.value
            sign = "=" if kind == z3.Z3_OP_EQ else "distinct"
            return f"({sign} {' '.join(map(read, parts))})"
        for table, read in ((_UNSIGNED, self.value), (_SIGNED, self.signed)):
            if kind in table:
                return f"({table[kind]} {read(parts[0])} {read(parts[1])})"
        return self._variable("Bool")

    # -- rules ------------------------------------------------------------------------------------
    def _signed_interval(self, term: Term) -> tuple[int, int]:
        """Return bounds of a constant as two's complement, of any other term unsigned."""
        low, high = self.intervals.of(term)
        if low == high and low >> (term.size() - 1):
            return low - (1 << term.size()), low - (1 << term.size())
        return low, high

    def _factors(self, term: Term) -> tuple[str, int, int]:
        """Return a product, constants as two's complement, with its bounds."""
        parts = term.children() if term.decl().kind() == z3.Z3_OP_BMUL else [term]
        constant, texts, low, high = 1, [], 1, 1
        for part in parts:
            least, most = self._signed_interval(part)
            if least == most:
                constant *= least
            else:
                texts.append(self.value(part))
                low, high = low * least, high * most
        ends = sorted((constant * low, constant * high))
        product = f"(* {' '.join(sorted(texts))})" if len(texts) > 1 else (texts or ["1"])[0]
        if constant != 1 or not texts:
            product = f"(* {number(constant)} {product})"
        return product, ends[0], ends[1]

    def sum_of(self, term: Term) -> str:
        total, low, high = [], 0, 0
        for position, part in enumerate(term.children()):
            text, least, most = self._factors(part)
            if position and term.decl().kind() == z3.Z3_OP_BSUB:
                text, least, most = f"(- {text})", -most, -least
            total.append(text)
            low, high = low + least, high + most
        return self._wrapped(f"(+ {' '.join(total)})", low, high, term.size())

    def product_of(self, term: Term) -> str:
        text, low, high = self._factors(term)
        return self._wrapped(text, low, high, term.size())

    def negative(self, term: Term) -> str:
        low, high = self.intervals.of(term.arg(0))
        return self._wrapped(f"(- {self.value(term.arg(0))})", -high, -low, term.size())

    def division(self, term: Term) -> tuple[str, str]:
        """Return quotient and rest; any numbers where the divisor is zero."""
        sides = self.value(term.arg(0)), self.value(term.arg(1))
        if z3.is_bv_value(term.arg(1)) and term.arg(1).as_long():
            return f"(div {sides[0]} {sides[1]})", f"(mod {sides[0]} {sides[1]})"
        if sides not in self._divisions:
            quotient, rest = self._variable(), self._variable()
            most = (1 << term.size()) - 1
            self.writer.claim(f"(and (<= 0 {quotient} {most}) (<= 0 {rest} {most}))")
            whole = f"(+ (* {' '.join(sorted((quotient, sides[1])))}) {rest})"
            self.writer.claim(
                f"(=> (> {sides[1]} 0) (and (= {sides[0]} {whole}) (< {rest} {sides[1]})))"
            )
            self._divisions[sides] = quotient, rest
        return self._divisions[sides]

    def concatenation(self, term: Term) -> str:
        texts, shift = [], 0
        for part in reversed(term.children()):
            texts.append(f"(* {1 << shift} {self.value(part)})")
            shift += part.size()
        return f"(+ {' '.join(texts)})"

    def extraction(self, term: Term) -> str:
        high, low = term.params()
        return self._run(self.value(term.arg(0)), self.intervals.of(term.arg(0))[1], low, high)

    def _run(self, value: str, most: int, low: int, high: int) -> str:
        """Return bits low to high of a value, shifted down."""
        if low:
            value, most = f"(div {value} {1 << low})", most >> low
        return value if most < 1 << (high - low + 1) else f"(mod {value} {1 << (high - low + 1)})"

    def right_shift(self, term: Term) -> str | None:
        if not z3.is_bv_value(term.arg(1)):
            return None
        return f"(div {self.value(term.arg(0))} {1 << term.arg(1).as_long()})"

    def signed_right_shift(self, term: Term) -> str | None:
        if not z3.is_bv_value(term.arg(1)):
            return None
        by = min(term.arg(1).as_long(), term.size())
        shifted = self._define("Int", f"(div {self.signed(term.arg(0))} {1 << by})")
        if self.intervals.of(term.arg(0))[1] < 1 << (term.size() - 1):
            return shifted
        return f"(ite (< {shifted} 0) (+ {shifted} {1 << term.size()}) {shifted})"

    def sign_extension(self, term: Term) -> str:
        value, width = self.signed(term.arg(0)), term.size()
        if not value.startswith("("):
            return value
        value = self._define("Int", value)
        return f"(ite (< {value} 0) (+ {value} {1 << width}) {value})"

    def bitwise(self, term: Term) -> str | None:
        """Return and, or, exclusive or: x | y = x + y - (x & y), x ^ y = x + y - 2 (x & y)."""
        if term.num_args() != 2:
            return None
        one, other = term.children()
        if z3.is_bv_value(one):
            one, other = other, one
        shared = self._masked(one, other.as_long()) if z3.is_bv_value(other) else None
        shared = shared or self._shared(one, other)
        if shared is None:
            return None
        kind = term.decl().kind()
        if kind == z3.Z3_OP_BAND:
            return shared
        times = 1 if kind == z3.Z3_OP_BOR else 2
        return f"(- (+ {self.value(one)} {self.value(other)}) (* {times} {shared}))"

    def _masked(self, term: Term, mask: int) -> str:
        """Return term & mask, run of ones by run of ones."""
        value, most, runs, at = self.value(term), self.intervals.of(term)[1], ["0"], 0
        while mask >> at:
            at += ((mask >> at) & -(mask >> at)).bit_length() - 1
            length = (~(mask >> at) & ((mask >> at) + 1)).bit_length() - 1
            if most >> at:
                runs.append(f"(* {1 << at} {self._run(value, most, at, at + length - 1)})")
            at += length
        return f"(+ {' '.join(runs)})"

    def _shared(self, one: Term, other: Term) -> str | None:
        """Return one & other bit by bit, where one of them is small."""
        tops = [self.intervals.of(part)[1] for part in (one, other)]
        bits = min(tops).bit_length()
        if bits > _MOST_BITS:
            return None
        texts = ["0"]
        for at in range(bits):
            sets = [
                f"(= 1 {self._run(self.value(part), top, at, at)})"
                for part, top in zip((one, other), tops, strict=True)
            ]
            texts.append(f"(ite (and {' '.join(sets)}) {1 << at} 0)")
        return f"(+ {' '.join(texts)})"

    def choice(self, term: Term) -> str:
        test, yes, no = term.children()
        return f"(ite {self.condition(test)} {self.value(yes)} {self.value(no)})"


Rule = Callable[[IntegerTerms, Term], str | None]

_RULES: dict[int, Rule] = {
    z3.Z3_OP_BADD: IntegerTerms.sum_of,
    z3.Z3_OP_BSUB: IntegerTerms.sum_of,
    z3.Z3_OP_BMUL: IntegerTerms.product_of,
    z3.Z3_OP_BNEG: IntegerTerms.negative,
    z3.Z3_OP_BUDIV: lambda integers, term: integers.division(term)[0],
    z3.Z3_OP_BUDIV_I: lambda integers, term: integers.division(term)[0],
    z3.Z3_OP_BUREM: lambda integers, term: integers.division(term)[1],
    z3.Z3_OP_BUREM_I: lambda integers, term: integers.division(term)[1],
    z3.Z3_OP_CONCAT: IntegerTerms.concatenation,
    z3.Z3_OP_EXTRACT: IntegerTerms.extraction,
    z3.Z3_OP_ZERO_EXT: lambda integers, term: integers.value(term.arg(0)),
    z3.Z3_OP_SIGN_EXT: IntegerTerms.sign_extension,
    z3.Z3_OP_BLSHR: IntegerTerms.right_shift,
    z3.Z3_OP_BASHR: IntegerTerms.signed_right_shift,
    z3.Z3_OP_BAND: IntegerTerms.bitwise,
    z3.Z3_OP_BOR: IntegerTerms.bitwise,
    z3.Z3_OP_BXOR: IntegerTerms.bitwise,
    z3.Z3_OP_BNOT: lambda integers, term: (
        f"(- {(1 << term.size()) - 1} {integers.value(term.arg(0))})"
    ),
    z3.Z3_OP_ITE: IntegerTerms.choice,
}
_CONNECTIVES = {
    z3.Z3_OP_NOT: "not",
    z3.Z3_OP_AND: "and",
    z3.Z3_OP_OR: "or",
    z3.Z3_OP_XOR: "xor",
    z3.Z3_OP_IMPLIES: "=>",
    z3.Z3_OP_ITE: "ite",
}
_UNSIGNED = {
    z3.Z3_OP_ULT: "<",
    z3.Z3_OP_ULEQ: "<=",
    z3.Z3_OP_UGT: ">",
    z3.Z3_OP_UGEQ: ">=",
}
_SIGNED = {z3.Z3_OP_SLT: "<", z3.Z3_OP_SLEQ: "<=", z3.Z3_OP_SGT: ">", z3.Z3_OP_SGEQ: ">="}
