"""Evaluation of expressions: text or checked syntax tree, names -> integer or dtype.

The launcher evaluates the expressions of a manifest with `value_of`, `names_in` and `solve_for`.
"""

import ast
from collections.abc import Mapping

from pipelink_rules.expression.parse import (
    ARITHMETIC,
    COMPARISON,
    FUNCTIONS,
    LARGEST,
    DivisionByZero,
    ExpressionError,
    parse,
)
from pipelink_rules.model.contract import DTYPES

Value = int | str  # a dtype is its name


def value_of(text: str, symbols: Mapping[str, int]) -> int:
    """Return the integer value of a text, 0 or 1 of a comparison; raise ExpressionError."""
    try:
        return number(parse(text), symbols)
    except KeyError as unknown:
        raise ExpressionError(f"`{unknown.args[0]}` has no value") from None


def names_in(text: str) -> frozenset[str]:
    """Return the names in an expression, without dtype names and functions."""
    return frozenset(
        node.id
        for node in ast.walk(parse(text))
        if isinstance(node, ast.Name) and node.id not in DTYPES and node.id not in FUNCTIONS
    )


def solve_for(text: str, name: str, wanted: int) -> int | None:
    """Return the value of the only name of `text` for which it is `wanted`; None unless affine."""
    at_zero = value_of(text, {name: 0})
    slope = value_of(text, {name: 1}) - at_zero
    if slope == 0 or (wanted - at_zero) % slope:
        return None
    found = (wanted - at_zero) // slope
    return found if value_of(text, {name: found}) == wanted else None


def _refuse(
    node: ast.AST, reason: str, hint: str = "", kind: type[ExpressionError] = ExpressionError
) -> ExpressionError:
    start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None)
    return kind(reason, start, end, hint)


def _divisor_is_zero(node: ast.expr, divisor: ast.expr) -> ExpressionError:
    return _refuse(node, f"the divisor `{ast.unparse(divisor)}` is 0", kind=DivisionByZero)


def number(node: ast.expr, env: Mapping[str, Value]) -> int:
    """Return the integer value; raise KeyError for an unknown name, else ExpressionError."""
    value = evaluate_tree(node, env)
    if isinstance(value, str):
        hint = f"write `sizeof({ast.unparse(node)})` for its size in bytes"
        raise _refuse(node, f"`{ast.unparse(node)}` is a dtype, not a number", hint)
    return value


def evaluate_tree(node: ast.expr, env: Mapping[str, Value]) -> Value:
    """Return the integer or dtype; raise the errors of `number`."""
    if isinstance(node, ast.Constant):
        return int(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        if node.id in env:
            value = env[node.id]
            return int(value) if isinstance(value, bool) else value
        if node.id in DTYPES:
            return node.id
        raise KeyError(node.id)
    if isinstance(node, ast.BinOp):
        return _apply(node, number(node.left, env), number(node.right, env))
    if isinstance(node, ast.UnaryOp):
        operand = number(node.operand, env)
        return -operand if isinstance(node.op, ast.USub) else int(not operand)
    if isinstance(node, ast.BoolOp):
        stop = isinstance(node.op, ast.Or)
        return int(stop if any(bool(number(v, env)) is stop for v in node.values) else not stop)
    if isinstance(node, ast.Compare):
        values = [evaluate_tree(item, env) for item in (node.left, *node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        return int(all(_compare(node, op, left, right) for op, left, right in pairs))
    assert isinstance(node, ast.Call)
    return _call(node, env)


def _apply(node: ast.BinOp, left: int, right: int) -> int:
    if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and right == 0:
        raise _divisor_is_zero(node, node.right)
    value = ARITHMETIC[type(node.op)](left, right)
    if not -LARGEST < value < LARGEST:
        raise _refuse(node, f"`{ast.unparse(node)}` exceeds 63 bits")
    return value


def _compare(node: ast.expr, op: ast.cmpop, left: Value, right: Value) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        if not isinstance(op, (ast.Eq, ast.NotEq)) or type(left) is not type(right):
            raise _refuse(node, "a dtype can only be compared with a dtype, by == or !=")
        return (left == right) is isinstance(op, ast.Eq)
    return COMPARISON[type(op)](left, right)


def _call(node: ast.Call, env: Mapping[str, Value]) -> int:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    if name == "sizeof":
        dtype = evaluate_tree(node.args[0], env)
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise _refuse(node, f"`{ast.unparse(node.args[0])}` is not a dtype")
        return DTYPES[dtype][0]
    values = [number(item, env) for item in node.args]
    if name == "ceildiv":
        if values[1] == 0:
            raise _divisor_is_zero(node, node.args[1])
        return -(-values[0] // values[1])
    return min(values) if name == "min" else max(values)
