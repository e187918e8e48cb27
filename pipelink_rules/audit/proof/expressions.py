"""Expressions of contracts as terms of 64 bits: Expr, names -> Term.

Symbols and fields have 32 bits, so that no sum or product of two of them wraps in 64.
"""

import ast
import math
from collections.abc import Mapping

from pipelink_rules.audit.proof.verdict import UnprovedError
from pipelink_rules.expression.parse import parse
from pipelink_rules.model.contract import DTYPES
from pipelink_rules.model.source_span import Expr
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import Term

_RELATIONS = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}


def term_of(expr: Expr | str, env: Mapping[str, Term]) -> Term:
    """Return the value in 64 bits, signed; a number where it is constant.

    Raise UnprovedError for a division by what is not constant.
    """
    return _value(parse(expr.text if isinstance(expr, Expr) else expr), env)


def condition_of(expr: Expr | str, env: Mapping[str, Term]) -> Term:
    """Return a condition as a truth value."""
    return terms.truth(term_of(expr, env))


def _value(node: ast.AST, env: Mapping[str, Term]) -> Term:
    if isinstance(node, ast.Constant):
        return int(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return env[node.id]
    if isinstance(node, ast.UnaryOp):
        operand = _value(node.operand, env)
        if isinstance(node.op, ast.Not):
            return terms.negated(operand)
        return -operand if isinstance(operand, int) else -terms.bits(operand, 64)
    if isinstance(node, ast.BinOp):
        return _arithmetic(node.op, _value(node.left, env), _value(node.right, env))
    if isinstance(node, ast.Compare):
        return _comparison(node, env)
    if isinstance(node, ast.BoolOp):
        join = terms.both if isinstance(node.op, ast.And) else terms.either
        return join(*(_value(value, env) for value in node.values))
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    return _call(node.func.id, node.args, env)


def _arithmetic(op: ast.operator, left: Term, right: Term) -> Term:
    if not isinstance(left, int) or not isinstance(right, int):
        left, right = (v if isinstance(v, int) else terms.bits(v, 64) for v in (left, right))
    if isinstance(op, ast.Add):
        return left + right
    if isinstance(op, ast.Sub):
        return left - right
    if isinstance(op, ast.Mult):
        return left * right
    quotient = _floor_division(left, right)
    return quotient if isinstance(op, ast.FloorDiv) else left - right * quotient


def _floor_division(left: Term, right: Term) -> Term:
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    if not isinstance(right, int) or right <= 0:
        raise UnprovedError("a clause that does not divide by a positive constant")
    left, divisor = terms.bits(left, 64), terms.bits(right, 64)
    down = -terms.quotient(right - 1 - left, divisor)
    return terms.chosen(left >= 0, terms.quotient(left, divisor), down)


def _comparison(node: ast.Compare, env: Mapping[str, Term]) -> Term:
    values = [_value(value, env) for value in (node.left, *node.comparators)]
    parts = [
        _related(_RELATIONS[type(op)], left, right)
        for op, left, right in zip(node.ops, values, values[1:], strict=False)
    ]
    return parts[0] if len(parts) == 1 else terms.both(*parts)


def _related(relation: str, left: Term, right: Term) -> Term:
    if isinstance(left, int) and isinstance(right, int):
        return int(terms.COMPARE[relation](left, right))
    return terms.compare(relation, left, right, 64, True)


def _call(name: str, arguments: list[ast.expr], env: Mapping[str, Term]) -> Term:
    if name == "sizeof":
        assert isinstance(arguments[0], ast.Name)
        return DTYPES[arguments[0].id][0]
    values = [_value(argument, env) for argument in arguments]
    if name == "ceildiv":
        up = _arithmetic(ast.Add(), values[0], values[1])
        return _floor_division(_arithmetic(ast.Sub(), up, 1), values[1])
    if all(isinstance(value, int) for value in values):
        return min(values) if name == "min" else max(values)
    first, *rest = (terms.bits(value, 64) for value in values)
    for other in rest:
        first = terms.chosen(first < other if name == "min" else first > other, first, other)
    return first


def product_of(extents: tuple[Expr, ...], env: Mapping[str, Term]) -> Term:
    """Return the product of extents."""
    values = [term_of(extent, env) for extent in extents]
    if all(isinstance(value, int) for value in values):
        return math.prod(values)
    total = terms.bits(values[0], 64)
    for value in values[1:]:
        total = total * terms.bits(value, 64)
    return total
