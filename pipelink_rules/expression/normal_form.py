"""Polynomial normal form of expressions: checked syntax tree -> sums of products.

Two expressions with one normal form are equal wherever both have a value.  What is not a sum or a
product (a quotient, a minimum, a comparison) is an unknown of the polynomial, named by the normal
forms of its operands.  Without a divisor that varies, an expression has a value everywhere.
"""

import ast

from pipelink_rules.expression.evaluate import evaluate_tree
from pipelink_rules.expression.parse import ExpressionError
from pipelink_rules.model.contract import DTYPES

MOST_TERMS = 64
Product = tuple[str, ...]  # sorted unknowns
Polynomial = dict[Product, int]  # product -> factor, which is not 0


def normal_form(node: ast.expr) -> Polynomial | None:
    """Return the normal form; None if it is too long or a divisor varies."""
    try:
        return _polynomial(node)
    except (_NoForm, ExpressionError):
        return None


class _NoForm(Exception):
    """An expression without a normal form."""


def has_names(node: ast.AST) -> bool:
    """Return whether the value depends on names; functions and dtypes are constants."""
    if isinstance(node, ast.Call):
        return any(map(has_names, node.args))
    if isinstance(node, ast.Name):
        return node.id not in DTYPES
    return any(map(has_names, ast.iter_child_nodes(node)))


def _polynomial(node: ast.expr) -> Polynomial:
    if not has_names(node):
        value = evaluate_tree(node, {})
        if isinstance(value, str):
            raise _NoForm
        return {(): value} if value else {}
    if isinstance(node, ast.Name):
        return {(node.id,): 1}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _product({(): -1}, _polynomial(node.operand))
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        left, right = _polynomial(node.left), _polynomial(node.right)
        if isinstance(node.op, ast.Mult):
            return _product(left, right)
        return _sum(left, right, 1 if isinstance(node.op, ast.Add) else -1)
    return _unknown(node)


def _unknown(node: ast.expr) -> Polynomial:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        parts = [_polynomial(item) for item in node.args]
        if node.func.id == "ceildiv":  # -(-a // b)
            quotient = _quotient("//", _product({(): -1}, parts[0]), parts[1])
            return _product({(): -1}, quotient)
        return {(f"{node.func.id}({', '.join(sorted({_text(part) for part in parts}))})",): 1}
    if isinstance(node, ast.BinOp):
        sign = "//" if isinstance(node.op, ast.FloorDiv) else "%"
        return _quotient(sign, _polynomial(node.left), _polynomial(node.right))
    if isinstance(node, ast.Compare):
        parts = [_polynomial(item) for item in (node.left, *node.comparators)]
        signs = [type(op).__name__ for op in node.ops]
        return {(f"{signs}({', '.join(map(_text, parts))})",): 1}
    if isinstance(node, ast.BoolOp):
        operands = ", ".join(_text(_polynomial(item)) for item in node.values)
        return {(f"{type(node.op).__name__}({operands})",): 1}
    assert isinstance(node, ast.UnaryOp)
    return {(f"not({_text(_polynomial(node.operand))})",): 1}


def _quotient(sign: str, left: Polynomial, right: Polynomial) -> Polynomial:
    if set(right) != {()}:
        raise _NoForm
    return {(f"({_text(left)} {sign} {right[()]})",): 1}


def _sum(left: Polynomial, right: Polynomial, factor: int) -> Polynomial:
    found = dict(left)
    for product, value in right.items():
        found[product] = found.get(product, 0) + factor * value
    return {product: value for product, value in found.items() if value}


def _product(left: Polynomial, right: Polynomial) -> Polynomial:
    found: Polynomial = {}
    for one, factor in left.items():
        for other, value in right.items():
            product = tuple(sorted((*one, *other)))
            found[product] = found.get(product, 0) + factor * value
    if len(found) > MOST_TERMS:
        raise _NoForm
    return {product: value for product, value in found.items() if value}


def _text(form: Polynomial) -> str:
    """Return a text that only equal polynomials have."""
    return " + ".join(f"{value}*{'*'.join(product)}" for product, value in sorted(form.items()))
