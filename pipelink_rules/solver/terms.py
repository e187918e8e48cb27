"""Values of a symbolic machine: integers, bit-vector terms, predicates, pointers, unknown data.

A constant is a Python integer (unsigned, of the width of its use); what depends on the inputs of a
role is a bit-vector or a truth value of Z3; a pointer is a region and an offset of 64 bits; data of
tensors are one unknown, `DATA`.  Functions on terms accept integers and terms alike and keep
constants constant, so that most of a program never reaches the solver.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import z3  # type: ignore[import-untyped]

Term = Any  # an integer, a bit-vector or a truth value


class Data:
    """The one unknown value: contents of tensors and whatever is computed from them."""

    def __repr__(self) -> str:
        return "data"


DATA: Final = Data()


@dataclass(frozen=True, eq=False)
class Pointer:
    """An address: a region and an offset in it, 64 bits."""

    region: str
    offset: Term

    def moved(self, by: Term) -> "Pointer":
        """Return the pointer `by` bytes further."""
        return Pointer(self.region, add(self.offset, by, 64))


def variable(name: str, width: int) -> Term:
    """Return a free variable; a width of 1 is a truth value."""
    return z3.Bool(name) if width == 1 else z3.BitVec(name, width)


def is_bool(value: Term) -> bool:
    """Return whether the value is a truth value of Z3."""
    return not isinstance(value, (int, Data, Pointer)) and z3.is_bool(value)


def is_constant(value: Term) -> bool:
    """Return whether the value is a number."""
    return isinstance(value, int)


def bits(value: Term, width: int) -> Term:
    """Return a bit-vector of the width: truncated, or extended by zeros."""
    if isinstance(value, int):
        return z3.BitVecVal(value, width)
    if z3.is_bool(value):
        return z3.If(value, z3.BitVecVal(1, width), z3.BitVecVal(0, width))
    have = value.size()
    if have == width:
        return value
    return z3.Extract(width - 1, 0, value) if have > width else z3.ZeroExt(width - have, value)


def truth(value: Term) -> Term:
    """Return the truth value of a number or predicate."""
    if isinstance(value, int):
        return z3.BoolVal(bool(value))
    return value if z3.is_bool(value) else value != 0


def signed_number(value: int, width: int) -> int:
    """Return a number of that width as two's complement."""
    return value - (1 << width) if value >> (width - 1) & 1 else value


def sign_extended(value: Term, source: int, width: int) -> Term:
    """Return a value of `source` bits, extended by its sign."""
    if isinstance(value, int):
        return signed_number(value & (1 << source) - 1, source) & (1 << width) - 1
    value = bits(value, source)
    return z3.SignExt(width - source, value) if width > source else bits(value, width)


def zero_extended(value: Term, source: int, width: int) -> Term:
    """Return a value of `source` bits, extended by zeros."""
    if isinstance(value, int):
        return value & (1 << source) - 1
    return bits(bits(value, source), width)


def low_half(value: Term) -> Term:
    """Return bits 0 to 31 of a value of 64 bits."""
    return value & 0xFFFFFFFF if isinstance(value, int) else bits(bits(value, 64), 32)


def high_half(value: Term) -> Term:
    """Return bits 32 to 63 of a value of 64 bits."""
    return value >> 32 if isinstance(value, int) else z3.Extract(63, 32, bits(value, 64))


def field(value: Term, high: int, low: int) -> Term:
    """Return bits low to high of a term."""
    return z3.Extract(high, low, value)


def joined(low: Term, high: Term) -> Term:
    """Return the 64 bits of two words."""
    if isinstance(low, int) and isinstance(high, int):
        return low | high << 32
    return z3.Concat(bits(high, 32), bits(low, 32))


def concatenated(*parts: Term) -> Term:
    """Return the concatenation of terms, highest first."""
    return z3.Concat(*parts)


def wide(value: Term) -> Term:
    """Return a value of 32 bits as an unsigned one of 64; one of 64 bits as it is."""
    if isinstance(value, int):
        return z3.BitVecVal(value & 0xFFFFFFFF, 64)
    return value if not z3.is_bool(value) and value.size() > 32 else bits(value, 64)


def add(left: Term, right: Term, width: int) -> Term:
    """left + right; adding nothing keeps the term."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right & (1 << width) - 1
    for one, other in ((left, right), (right, left)):
        if isinstance(one, int) and not one & (1 << width) - 1:
            return bits(other, width)
    return bits(left, width) + bits(right, width)


def subtract(left: Term, right: Term, width: int) -> Term:
    """left - right."""
    if isinstance(left, int) and isinstance(right, int):
        return left - right & (1 << width) - 1
    return bits(left, width) - bits(right, width)


def multiply(left: Term, right: Term, width: int) -> Term:
    """left * right."""
    if isinstance(left, int) and isinstance(right, int):
        return left * right & (1 << width) - 1
    return bits(left, width) * bits(right, width)


COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_UNSIGNED: dict[str, Callable[[Any, Any], Any]] = {
    "lt": z3.ULT,
    "le": z3.ULE,
    "gt": z3.UGT,
    "ge": z3.UGE,
}


def compare(relation: str, left: Term, right: Term, width: int, sign: bool) -> Term:
    """Return a comparison; 0 or 1 of numbers."""
    if isinstance(left, int) and isinstance(right, int):
        mask = (1 << width) - 1
        left, right = left & mask, right & mask
        if sign:
            left, right = signed_number(left, width), signed_number(right, width)
        return int(COMPARE[relation](left, right))
    table = COMPARE if sign or relation in ("eq", "ne") else _UNSIGNED
    return table[relation](bits(left, width), bits(right, width))


def less(left: Term, right: Term) -> Term:
    """Unsigned left < right of terms of one width."""
    return z3.ULT(left, right)


def at_most(left: Term, right: Term) -> Term:
    """Unsigned left <= right of terms of one width."""
    return z3.ULE(left, right)


def remainder(value: Term, divisor: Term) -> Term:
    """Unsigned value % divisor."""
    return z3.URem(value, divisor)


def quotient(value: Term, divisor: Term) -> Term:
    """Unsigned value // divisor."""
    return z3.UDiv(value, divisor)


def signed_remainder(value: Term, divisor: Term) -> Term:
    """value % divisor, with the sign of the value."""
    return z3.SRem(value, divisor)


def shifted_right(value: Term, by: Term) -> Term:
    """value >> by, filled with zeros."""
    return z3.LShR(value, by)


def both(*conditions: Term) -> Term:
    """Whether all conditions hold."""
    return z3.And(*map(truth, conditions))


def either(*conditions: Term) -> Term:
    """Whether one of the conditions holds."""
    return z3.Or(*map(truth, conditions))


def differ(left: Term, right: Term) -> Term:
    """Exclusive or of two truth values."""
    return z3.Xor(truth(left), truth(right))


def negated(value: Term) -> Term:
    """Return the negation of a truth value."""
    return int(not value) if isinstance(value, int) else z3.Not(truth(value))


def chosen(condition: Term, yes: Term, no: Term) -> Term:
    """`yes` where the condition holds, else `no`: terms of one kind."""
    if same(yes, no):
        return yes
    return z3.If(condition, yes, no)


def simplified(value: Term) -> Term:
    """Return an integer where the value is constant (1 or 0 for a truth value)."""
    if isinstance(value, (int, Data, Pointer)) or value is None:
        return value
    value = z3.simplify(value, elim_sign_ext=False)  # else 32 copies of a bit
    if z3.is_bv_value(value):
        return value.as_long()
    if z3.is_true(value):
        return 1
    return 0 if z3.is_false(value) else value


def same(left: Term, right: Term) -> bool:
    """Return whether two values are syntactically equal."""
    if left is right:
        return True
    if isinstance(left, int) or isinstance(right, int):
        return isinstance(left, int) and isinstance(right, int) and left == right
    if isinstance(left, Pointer) or isinstance(right, Pointer):
        return (
            isinstance(left, Pointer)
            and isinstance(right, Pointer)
            and left.region == right.region
            and same(left.offset, right.offset)
        )
    return left is not DATA and right is not DATA and bool(left.eq(right))


def key(value: Term) -> object:
    """Return what is equal for syntactically equal terms, while they are alive."""
    return value if isinstance(value, int) else value.get_id()


def substituted(value: Term, *pairs: tuple[Term, Term]) -> Term:
    """Return the term with variables replaced by terms of their width."""
    return value if isinstance(value, int) else z3.substitute(value, *pairs)


_variables: dict[int, tuple[Term, frozenset[str]]] = {}  # terms stay alive: ids are reused


def variables(value: Term) -> frozenset[str]:
    """Return the names of the free variables of a term."""
    if isinstance(value, (int, Data)):
        return frozenset()
    found = _variables.get(value.get_id())
    if found is None:
        names, todo, seen = set(), [value], set()
        while todo:
            term = todo.pop()
            if term.get_id() in seen:
                continue
            seen.add(term.get_id())
            if term.num_args():
                todo += term.children()
            elif term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                names.add(term.decl().name())
        found = _variables[value.get_id()] = (value, frozenset(names))
    return found[1]


def forget_terms() -> None:
    """Drop what is kept of the terms of one role."""
    _variables.clear()


def subterms(value: Term) -> list[Term]:
    """Return all terms inside a term, and itself, once each."""
    found, todo, seen = [], [value], set()
    while todo:
        term = todo.pop()
        if isinstance(term, int) or term.get_id() in seen:
            continue
        seen.add(term.get_id())
        found.append(term)
        todo += term.children()
    return found


def is_product(value: Term) -> bool:
    """Return whether a term is a product."""
    return bool(z3.is_app(value) and value.decl().kind() == z3.Z3_OP_BMUL)


def conjuncts(value: Term) -> list[Term]:
    """Return the conditions of a conjunction."""
    return value.children() if not isinstance(value, int) and z3.is_and(value) else [value]


def split_sum(value: Term) -> tuple[tuple[object, ...], int]:
    """Return a sum as (keys of its symbolic parts, its constant)."""
    if isinstance(value, int):
        return (), value
    if z3.is_bv_value(value):
        return (), value.as_long()
    if value.decl().kind() == z3.Z3_OP_BADD and z3.is_bv_value(value.arg(0)):
        rest = tuple(value.arg(number).get_id() for number in range(1, value.num_args()))
        return rest, value.arg(0).as_long()
    return (value.get_id(),), 0
