"""Integer arithmetic of PTX on terms: opcode -> function on values (PTX ISA, "Integer Arithmetic
Instructions" to "Data Movement and Conversion Instructions").

A function returns DATA for what it does not model, which is always sound: whatever then depends on
the value is unknown.
"""

import re
from collections.abc import Callable

from pipelink_rules.audit.decode_ptx import width_of
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import DATA, Pointer, Term

Function = Callable[..., Term]
_TYPES = re.compile(r"\.([usb])(8|16|32|64)\b")


def function_of(opcode: str, base: str, operands: int) -> Function | None:
    """Return the function of an instruction with one result; None where it is not modeled."""
    if ".cc" in opcode or ".sat" in opcode or base in ("addc", "subc", "madc"):
        return None
    width, sign = width_of(opcode)
    if base in ("mov", "cvta", "cvt"):
        return _move(opcode, base, width)
    if base in ("add", "sub") and operands == 2:
        return _sum(base == "sub", width)
    if (base, operands) in (("mul", 2), ("mad", 3)):
        return _product(opcode, width, sign)
    if ".pred" in opcode:
        return _LOGIC.get(base)
    if base in ("shl", "shr") and operands == 2:
        return _shift(base, width, sign)
    if base == "bfe" and not sign:
        return _field(width)
    if base == "bfi":
        return _insertion(width)
    if base in _INTEGER and operands == len(_ARGUMENTS[base]):
        return _integers(base, width, sign)
    return None


def _move(opcode: str, base: str, width: int) -> Function | None:
    if base == "mov":
        mask = (1 << (1 if ".pred" in opcode else width)) - 1
        return lambda x: x & mask if isinstance(x, int) else x
    if base == "cvta":
        return _generic_address(opcode)
    types = _TYPES.findall(opcode)
    if len(types) != 2:
        return None
    (_, target), (kind, source) = types
    return _conversion(int(target), int(source), kind == "s")


def _generic_address(opcode: str) -> Function:
    if ".shared" not in opcode:
        return lambda x: x
    if ".to." in opcode:
        return lambda x: x.offset if isinstance(x, Pointer) and x.region == "shared" else DATA
    return lambda x: x if isinstance(x, Pointer) else Pointer("shared", terms.bits(x, 64))


def _conversion(target: int, source: int, sign: bool) -> Function:
    def convert(x: Term) -> Term:
        if isinstance(x, Pointer):
            if target == 64:
                return x
            return terms.bits(x.offset, 32) if x.region == "shared" and target == 32 else DATA
        if target <= source:
            return x & ((1 << target) - 1) if isinstance(x, int) else terms.bits(x, target)
        extend = terms.sign_extended if sign else terms.zero_extended
        return extend(x, source, target)

    return convert


def _sum(minus: bool, width: int) -> Function:
    operation = terms.subtract if minus else terms.add

    def total(x: Term, y: Term) -> Term:
        if isinstance(x, Pointer) and isinstance(y, Pointer):
            near = minus and x.region == y.region
            return terms.subtract(x.offset, y.offset, 64) if near else DATA
        if isinstance(x, Pointer):
            return Pointer(x.region, operation(x.offset, y, 64))
        if isinstance(y, Pointer):
            return DATA if minus else y.moved(x)
        return operation(x, y, width)

    return total


def _product(opcode: str, width: int, sign: bool) -> Function:
    wide, high = ".wide" in opcode, ".hi" in opcode
    extend = terms.sign_extended if sign else terms.zero_extended
    result = 2 * width if wide else width

    def product(x: Term, y: Term, addend: Term = 0) -> Term:
        if isinstance(x, Pointer) or isinstance(y, Pointer):
            return DATA
        if wide or high:
            factors = extend(x, width, 2 * width), extend(y, width, 2 * width)
            value = terms.multiply(*factors, 2 * width)
        else:
            value = terms.multiply(x, y, width)
        if high:
            value = value >> width if isinstance(value, int) else _upper(value, width)
        if isinstance(addend, Pointer):
            return addend.moved(value)
        return terms.add(value, addend, result)

    return product


def _upper(value: Term, width: int) -> Term:
    return terms.field(value, 2 * width - 1, width)


def _logic(numbers: Callable[[int, int], int], truths: Callable[[Term, Term], Term]) -> Function:
    def combine(x: Term, y: Term) -> Term:
        if isinstance(x, int) and isinstance(y, int):
            return numbers(x & 1, y & 1)
        return truths(x, y)

    return combine


_LOGIC: dict[str, Function] = {
    "not": terms.negated,
    "and": _logic(lambda x, y: x & y, terms.both),
    "or": _logic(lambda x, y: x | y, terms.either),
    "xor": _logic(lambda x, y: x ^ y, terms.differ),
}


def _shift(base: str, width: int, sign: bool) -> Function:
    mask = (1 << width) - 1

    def numbers(x: int, by: int) -> int:
        by = min(by & 0xFFFFFFFF, width)
        if base == "shl":
            return x << by & mask
        return (terms.signed_number(x & mask, width) if sign else x & mask) >> by & mask

    def shift(x: Term, by: Term) -> Term:
        if isinstance(x, Pointer) or isinstance(by, Pointer):
            return DATA
        if isinstance(x, int) and isinstance(by, int):
            return numbers(x, by)
        if isinstance(by, int):
            if base == "shl":  # a product keeps sums of strides linear
                return terms.multiply(x, 1 << by, width) if by < width else 0
            by = min(by, width - 1 if sign else width)
        value, amount = terms.bits(x, width), _amount(by, width)
        if base == "shl":
            return value << amount
        return value >> amount if sign else terms.shifted_right(value, amount)

    return shift


def _amount(by: Term, width: int) -> Term:
    """Return a shift distance: PTX clamps it to the width, and SMT-LIB's shifts do so too."""
    if isinstance(by, int) or width >= by.size():
        return terms.bits(by, width)
    most = terms.bits(width, by.size())
    return terms.bits(terms.chosen(terms.less(by, most), by, most), width)


def _field(width: int) -> Function:
    def extract(x: Term, start: Term, length: Term) -> Term:
        if isinstance(x, Pointer) or not (isinstance(start, int) and isinstance(length, int)):
            return DATA
        mask, start = (1 << (length & 255)) - 1 & (1 << width) - 1, start & 255
        if start >= width:
            return 0
        if isinstance(x, int):
            return x >> start & mask
        return terms.shifted_right(terms.bits(x, width), terms.bits(start, width)) & mask

    return extract


def _insertion(width: int) -> Function:
    everything = (1 << width) - 1

    def insert(x: Term, y: Term, start: Term, length: Term) -> Term:
        if isinstance(x, Pointer) or isinstance(y, Pointer):
            return DATA
        if not (isinstance(start, int) and isinstance(length, int)):
            return DATA
        start = start & 255
        mask = (1 << (length & 255)) - 1 << start & everything
        if isinstance(x, int) and isinstance(y, int):
            return y & ~mask & everything | x << start & mask
        if not mask:
            return y
        left = terms.bits(x, width) << terms.bits(start, width) & terms.bits(mask, width)
        return left | terms.bits(y, width) & terms.bits(everything & ~mask, width)

    return insert


def _quotient(x: int, y: int) -> int | None:
    if y == 0:
        return None
    quotient = abs(x) // abs(y)
    return quotient if (x < 0) == (y < 0) else -quotient


def _remainder(x: int, y: int) -> int | None:
    quotient = _quotient(x, y)
    return None if quotient is None else x - y * quotient


# base -> (on numbers, on unsigned terms, on signed terms)
_INTEGER: dict[str, tuple[Callable[..., int | None], Function, Function]] = {
    "and": (lambda x, y: x & y, lambda x, y: x & y, lambda x, y: x & y),
    "or": (lambda x, y: x | y, lambda x, y: x | y, lambda x, y: x | y),
    "xor": (lambda x, y: x ^ y, lambda x, y: x ^ y, lambda x, y: x ^ y),
    "not": (lambda x: ~x, lambda x: ~x, lambda x: ~x),
    "neg": (lambda x: -x, lambda x: -x, lambda x: -x),
    "abs": (abs, lambda x: x, lambda x: terms.chosen(x < 0, -x, x)),
    "min": (
        min,
        lambda x, y: terms.chosen(terms.less(x, y), x, y),
        lambda x, y: terms.chosen(x < y, x, y),
    ),
    "max": (
        max,
        lambda x, y: terms.chosen(terms.less(x, y), y, x),
        lambda x, y: terms.chosen(x < y, y, x),
    ),
    "div": (_quotient, terms.quotient, lambda x, y: x / y),
    "rem": (_remainder, terms.remainder, terms.signed_remainder),
}
_ARGUMENTS = {base: "x" if base in ("not", "neg", "abs") else "xy" for base in _INTEGER}


def _integers(base: str, width: int, sign: bool) -> Function:
    numbers, unsigned, signed = _INTEGER[base]
    mask = (1 << width) - 1

    def compute(*values: Term) -> Term:
        if any(isinstance(value, Pointer) for value in values):
            return DATA
        if all(isinstance(value, int) for value in values):
            known = [value & mask for value in values]
            if sign:
                known = [terms.signed_number(value, width) for value in known]
            result = numbers(*known)
            return DATA if result is None else result & mask
        if base in ("div", "rem") and not (isinstance(values[1], int) and values[1] & mask):
            return _nonzero(values, width, unsigned, sign)
        return (signed if sign else unsigned)(*(terms.bits(value, width) for value in values))

    return compute


def _nonzero(values: tuple[Term, ...], width: int, unsigned: Function, sign: bool) -> Term:
    """Return an unsigned division by a term.

    By zero PTX gives an unspecified value; the term then has all bits set, or the dividend, which
    no clause of a contract equals by chance: a divisor that may be zero ends in a counterexample.
    """
    if sign:
        return DATA
    return unsigned(*(terms.bits(value, width) for value in values))
