"""What is an expression of the manifest worth, once the symbols are known?

The launcher may not depend on the contract stage, so this is the small half of its expression
language that a manifest can hold: integers, symbols, + - * // %, comparisons, and/or/not,
ceildiv, min, max, sizeof.  Parsed with `ast` against a whitelist, never handed to `eval`.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from pipelink_rules.model.contract import DTYPES

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_CALLS: dict[str, Callable[..., int]] = {
    "ceildiv": lambda a, b: -(-a // b),
    "min": min,
    "max": max,
}


class ConditionError(ValueError):
    """The text is no expression of the language, or a name in it has no value."""


def value_of(text: str, symbols: Mapping[str, int]) -> int:
    """The integer `text` is worth; comparisons give 0 or 1.  ConditionError where it has none."""
    try:
        return int(_value(_parsed(text), symbols))
    except ZeroDivisionError:
        raise ConditionError(f"division by zero in {text!r}") from None


def names_in(text: str) -> frozenset[str]:
    """The symbols that an expression reads."""
    tree = _parsed(text)
    called = {node.func.id for node in ast.walk(tree) if _is_call(node)}  # type: ignore[attr-defined]
    found = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return frozenset(found - called - set(DTYPES))


def solve_for(text: str, name: str, wanted: int) -> int | None:
    """The value of the only name of `text` that makes it `wanted`; None unless it is affine."""
    at_zero = value_of(text, {name: 0})
    slope = value_of(text, {name: 1}) - at_zero
    if slope == 0 or (wanted - at_zero) % slope:
        return None
    found = (wanted - at_zero) // slope
    return found if value_of(text, {name: found}) == wanted else None


@lru_cache(maxsize=512)
def _parsed(text: str) -> ast.expr:
    if len(text) > 500:
        raise ConditionError("an expression is longer than 500 characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ConditionError(f"{text!r} is not an expression") from None


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name)


def _value(node: ast.expr, symbols: Mapping[str, int]) -> Any:
    match node:
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name):
            if name not in symbols:
                raise ConditionError(f"{name!r} has no value")
            return symbols[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(left, symbols), _value(right, symbols))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, symbols)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, symbols)
        case ast.BoolOp(op=op, values=values):
            every = all if isinstance(op, ast.And) else any
            return every(_value(item, symbols) for item in values)
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _compare(_value(left, symbols), ops, [_value(o, symbols) for o in others])
        case ast.Call(func=ast.Name(id="sizeof"), args=[ast.Name(id=dtype)], keywords=[]):
            if dtype in DTYPES:
                return DTYPES[dtype][0]
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
            if function in _CALLS and len(arguments) == 2:
                return _CALLS[function](*(_value(item, symbols) for item in arguments))
    raise ConditionError(f"{ast.unparse(node)!r} is not part of the expression language")


def _compare(left: int, ops: list[ast.cmpop], others: list[int]) -> bool:
    for op, right in zip(ops, others, strict=True):
        if type(op) not in _COMPARE:
            raise ConditionError("only == != < <= > >= compare")
        if not _COMPARE[type(op)](left, right):
            return False
        left = right
    return True
