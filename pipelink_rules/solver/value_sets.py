"""Bounds and multiples of an expression: syntax tree, sets of the names -> a set of values.

The set contains every value that the expression has; it may contain more.  It decides what usual
contracts need (`ceildiv(K, 64)` is at least 1, `rows * 8192` is a multiple of 16) without a solver.
"""

import ast
import math
from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from pipelink_rules.expression.evaluate import evaluate_tree
from pipelink_rules.expression.normal_form import has_names
from pipelink_rules.expression.parse import COMPARISON


class ValueSet(NamedTuple):
    """The integers from `low` to `high` that are `rest` modulo `step` (0: a constant)."""

    low: int
    high: int
    step: int = 1
    rest: int = 0


class Unbounded(Exception):
    """A divisor may be 0, or a part is a dtype."""


def constant(value: int) -> ValueSet:
    """Return the set of one value."""
    return ValueSet(value, value, 0, value)


def values_of(node: ast.expr, names: Mapping[str, ValueSet]) -> ValueSet:
    """Return a set with all values of the expression; raise Unbounded or ExpressionError."""
    if not has_names(node):
        value = evaluate_tree(node, {})
        if isinstance(value, str):
            raise Unbounded
        return constant(value)
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.BinOp):
        return _arithmetic(node.op, values_of(node.left, names), values_of(node.right, names))
    if isinstance(node, ast.UnaryOp):
        operand = values_of(node.operand, names)
        return _negative(operand) if isinstance(node.op, ast.USub) else _not(operand)
    if isinstance(node, ast.BoolOp):
        parts = [_not(_not(values_of(item, names))) for item in node.values]
        return reduce(_least if isinstance(node.op, ast.And) else _most, parts)
    if isinstance(node, ast.Compare):
        sets = [values_of(item, names) for item in (node.left, *node.comparators)]
        pairs = zip(node.ops, sets, sets[1:], strict=False)
        return reduce(_least, [_compare(op, left, right) for op, left, right in pairs])
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    sets = [values_of(item, names) for item in node.args]
    if node.func.id == "ceildiv":
        return _negative(_quotient(_negative(sets[0]), sets[1]))
    return reduce(_least if node.func.id == "min" else _most, sets)


def _arithmetic(op: ast.operator, a: ValueSet, b: ValueSet) -> ValueSet:
    if isinstance(op, ast.Add):
        return _made(a.low + b.low, a.high + b.high, math.gcd(a.step, b.step), a.rest + b.rest)
    if isinstance(op, ast.Sub):
        return _arithmetic(ast.Add(), a, _negative(b))
    if isinstance(op, ast.FloorDiv):
        return _quotient(a, b)
    if isinstance(op, ast.Mod):
        return _remainder(a, b)
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    step = math.gcd(a.step * b.step, a.step * b.rest, b.step * a.rest)
    return _made(min(corners), max(corners), step, a.rest * b.rest)


def _made(low: int, high: int, step: int, rest: int) -> ValueSet:
    if low == high:
        return constant(low)
    return ValueSet(low, high, step or 1, rest % (step or 1))


def _negative(a: ValueSet) -> ValueSet:
    return _made(-a.high, -a.low, a.step, -a.rest)


def _quotient(a: ValueSet, b: ValueSet) -> ValueSet:
    if b.low <= 0 <= b.high:
        raise Unbounded
    corners = [x // y for x in (a.low, a.high) for y in (b.low, b.high)]
    if b.low == b.high and a.step % b.low == 0:
        return _made(min(corners), max(corners), abs(a.step // b.low), a.rest // b.low)
    return _made(min(corners), max(corners), 1, 0)


def _remainder(a: ValueSet, b: ValueSet) -> ValueSet:
    if b.low <= 0 <= b.high:
        raise Unbounded
    if b.low != b.high:
        return _made(min(b.low + 1, 0), max(b.high - 1, 0), 1, 0)
    by = b.low
    if a.step % by == 0:
        return constant(a.rest % by)
    if a.low // by == a.high // by:
        return _made(a.low % by, a.high % by, a.step, a.rest - a.low // by * by)
    step = math.gcd(a.step, by)
    return _made(min(by + 1, 0), max(by - 1, 0), step, a.rest)


def _least(a: ValueSet, b: ValueSet) -> ValueSet:
    low, high = min(a.low, b.low), min(a.high, b.high)
    return _made(low, high, math.gcd(a.step, b.step, a.rest - b.rest), a.rest)


def _most(a: ValueSet, b: ValueSet) -> ValueSet:
    low, high = max(a.low, b.low), max(a.high, b.high)
    return _made(low, high, math.gcd(a.step, b.step, a.rest - b.rest), a.rest)


def _not(a: ValueSet) -> ValueSet:
    return _compare(ast.Eq(), a, constant(0))


def _compare(op: ast.cmpop, a: ValueSet, b: ValueSet) -> ValueSet:
    if isinstance(op, (ast.Eq, ast.NotEq)):
        step = math.gcd(a.step, b.step)
        apart = a.high < b.low or b.high < a.low
        if apart or (step and (a.rest - b.rest) % step):
            return constant(int(isinstance(op, ast.NotEq)))
        if a.low == a.high == b.low == b.high:
            return constant(int(isinstance(op, ast.Eq)))
        return ValueSet(0, 1)
    ends = {COMPARISON[type(op)](x, y) for x, y in ((a.low, b.high), (a.high, b.low))}
    return constant(int(ends.pop())) if len(ends) == 1 else ValueSet(0, 1)
