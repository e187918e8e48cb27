"""Bit-vector terms as integers have the values of the bit-vectors, also where these wrap."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import z3

from pipelink_rules.solver.integers import IntegerTerms
from pipelink_rules.solver.intervals import Intervals
from pipelink_rules.solver.session import SAT, UNSAT, Session
from pipelink_rules.solver.smt_expression import SmtWriter

X, Y = z3.BitVec("x", 8), z3.BitVec("y", 8)
TERMS: dict[str, Callable[[], Any]] = {
    "sum": lambda: X + Y + 200,
    "difference": lambda: X - Y - 3,
    "product": lambda: X * Y,
    "product with a constant": lambda: X * 251 + Y * 3,
    "negative": lambda: -X,
    "complement": lambda: ~X,
    "quotient": lambda: z3.UDiv(X, Y | 1),
    "rest": lambda: z3.URem(X, Y | 1),
    "constant quotient": lambda: z3.UDiv(X + Y, z3.BitVecVal(7, 8)),
    "left shift": lambda: X * 16,
    "right shift": lambda: z3.LShR(X + Y, 3),
    "signed right shift": lambda: (X + Y) >> 3,
    "mask": lambda: (X + Y) & 0b01100110,
    "set bits": lambda: X | 0b00011000,
    "flipped bits": lambda: X ^ 0b10000001,
    "two variables": lambda: (X ^ Y) + (X & Y) + (X | Y),
    "extract": lambda: z3.ZeroExt(4, z3.Extract(6, 3, X + Y)),
    "concat": lambda: z3.Extract(9, 2, z3.Concat(X, Y)),
    "sign extension": lambda: z3.Extract(11, 4, z3.SignExt(8, X) * 3),
    "choice": lambda: z3.If(z3.ULT(X, Y), X - Y, z3.If(X < 5, Y, X)),
    "signed comparison": lambda: z3.If(X <= Y, z3.BitVecVal(1, 8), Y),
}


@pytest.mark.parametrize("name", TERMS)
def test_values_of_terms(name: str) -> None:
    term = TERMS[name]()
    for simplified in (term, z3.simplify(term)):
        writer = SmtWriter()
        for variable in ("x", "y"):
            writer.integer(variable, 0, 255, 1)
        integers = IntegerTerms(writer, Intervals())
        writer.lines.append(f"(define-fun value () Int {integers.value(simplified)})")
        writer.lines.append(f"(define-fun number () Int {integers.signed(simplified)})")
        numbers = random.Random(name)
        for _ in range(6):
            x, y = numbers.randrange(256), numbers.randrange(256)
            at = ((X, z3.BitVecVal(x, 8)), (Y, z3.BitVecVal(y, 8)))
            value = z3.simplify(z3.substitute(term, *at)).as_long()
            here = [f"(assert (and (= |x| {x}) (= |y| {y})))"]
            signed = value - 256 if value > 127 else value
            number = str(signed) if signed >= 0 else f"(- {-signed})"
            for text, wanted in (("value", str(value)), ("number", number)):
                for claim, verdict in (("=", SAT), ("distinct", UNSAT)):
                    lines = [*writer.lines, *here, f"(assert ({claim} {text} {wanted}))"]
                    assert Session("\n".join(lines), 10_000_000).check() == verdict, (x, y, value)


def test_a_quotient_by_zero_is_any_number() -> None:
    writer = SmtWriter()
    for variable in ("x", "y"):
        writer.integer(variable, 0, 255, 1)
    value = IntegerTerms(writer, Intervals()).value(z3.UDiv(X, Y))
    for wanted in (0, 17, 255):
        lines = [*writer.lines, f"(assert (and (= |y| 0) (= {value} {wanted})))"]
        assert Session("\n".join(lines), 1_000_000).check() == SAT


def test_intervals_of_variables_avoid_wraps() -> None:
    """A sum that stays in its width needs no multiple of it."""
    intervals, writer = Intervals(), SmtWriter()
    intervals.bounds = {"x": (0, 99), "y": (0, 99)}
    IntegerTerms(writer, intervals).value(X + Y)
    assert not any("free" in line for line in writer.lines)
