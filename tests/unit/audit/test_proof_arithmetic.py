"""Symbolic arithmetic gives what numbers give, and intervals hold every value of a term."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelink_rules.audit.decode_ptx import arithmetic
from pipelink_rules.audit.lanes import Registers
from pipelink_rules.audit.proof.arithmetic import function_of
from pipelink_rules.solver import terms
from pipelink_rules.solver.intervals import Intervals
from pipelink_rules.toolkit.ptx import Statement

WORDS = st.one_of(
    st.integers(0, 40), st.integers(2**31 - 3, 2**31 + 3), st.integers(2**32 - 3, 2**32 - 1)
)
BINARY = (
    *("add.s32", "sub.s32", "mul.lo.s32", "mul.lo.u32", "mul.hi.s32", "mul.hi.u32"),
    *("mul.wide.s32", "mul.wide.u32", "and.b32", "or.b32", "xor.b32", "min.s32", "min.u32"),
    *("max.s32", "max.u32", "shl.b32", "shr.u32", "shr.s32", "div.u32", "rem.u32"),
    *("div.s32", "rem.s32"),
)
UNARY = (
    *("not.b32", "neg.s32", "abs.s32", "cvt.u64.u32", "cvt.s64.s32", "cvt.u32.u64"),
    *("cvt.u16.u32", "cvt.s32.s8"),
)


def symbolic(opcode: str, *values: int) -> object:
    """The result for variables, with the numbers put in afterwards."""
    function = function_of(opcode, opcode.split(".")[0], len(values))
    assert function is not None
    width = 64 if opcode == "cvt.u32.u64" else 32
    names = [terms.variable(f"x{number}", width) for number in range(len(values))]
    found = function(*names)
    if found is terms.DATA:
        return found
    pairs = [(name, terms.bits(value, width)) for name, value in zip(names, values, strict=True)]
    return terms.simplified(terms.substituted(found, *pairs))


@pytest.mark.parametrize("opcode", BINARY)
@given(WORDS, WORDS)
@settings(max_examples=60, deadline=None)
def test_two_operands(opcode: str, a: int, b: int) -> None:
    if opcode.startswith(("div", "rem")) and b == 0:
        return
    function = function_of(opcode, opcode.split(".")[0], 2)
    assert function is not None
    found = symbolic(opcode, a, b)
    assert found is terms.DATA or found == function(a, b)


@pytest.mark.parametrize("opcode", UNARY)
@given(WORDS)
@settings(max_examples=40, deadline=None)
def test_one_operand(opcode: str, a: int) -> None:
    function = function_of(opcode, opcode.split(".")[0], 1)
    assert function is not None
    assert symbolic(opcode, a) == function(a)


@given(WORDS, WORDS, st.integers(0, 40), st.integers(0, 40))
@settings(max_examples=100, deadline=None)
def test_bit_fields(a: int, b: int, start: int, length: int) -> None:
    """PTX ISA, bfi: bits [start, start + length) of b replaced by the low bits of a, bit by bit."""
    field = range(start, start + length)
    expected = sum((a >> bit - start if bit in field else b >> bit) % 2 << bit for bit in range(32))
    inserted = function_of("bfi.b32", "bfi", 4)
    assert inserted is not None
    assert inserted(a, b, start, length) == expected
    x, y = (terms.variable(name, 32) for name in "xy")
    found = inserted(x, y, start, length)
    assert function_of("bfi.b32", "bfi", 4)(x, y, x, length) is terms.DATA
    put_in = ((x, terms.bits(a, 32)), (y, terms.bits(b, 32)))
    assert terms.simplified(terms.substituted(found, *put_in)) == expected
    registers: Registers = {"%r1": a, "%r2": b}
    operands = f"%r3, %r1, %r2, {start}, {length}"
    arithmetic(Statement(f"bfi.b32 {operands}", "", "bfi.b32", operands))(registers)
    assert registers["%r3"] == expected


@given(WORDS, WORDS, WORDS)
@settings(max_examples=100, deadline=None)
def test_a_value_is_in_the_interval_of_its_term(a: int, b: int, c: int) -> None:
    x, y, z = (terms.variable(name, 32) for name in "xyz")
    intervals = Intervals()
    intervals.bounds |= {"x": (a, a + 3), "y": (b, b), "z": (0, c)}
    wide = terms.bits(x, 64) * 12 + terms.sign_extended(y, 32, 64)
    candidates = [x + y, x * 5, terms.shifted_right(z, terms.bits(3, 32)), x & 60, wide, z ^ y]
    candidates += [terms.chosen(x == y, y, z), terms.field(wide, 40, 3)]
    candidates += [terms.quotient(x, terms.bits(7, 32)), terms.remainder(z, terms.bits(9, 32))]
    point = [(x, terms.bits(a + 1, 32)), (y, terms.bits(b, 32)), (z, terms.bits(c // 2, 32))]
    for term in candidates:
        low, high = intervals.of(term)
        value = terms.simplified(terms.substituted(term, *point))
        assert (isinstance(value, int) and low <= value <= high) or a + 3 >= 2**32
