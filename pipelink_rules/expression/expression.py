"""Evaluation and substitution of expressions with spans: Expr, names -> int, or a smaller Expr.

The language has integers, names, + - * // %, comparisons (also chained), and/or/not, ceildiv(a, b),
min(...), max(...) and sizeof(dtype).  Division rounds down.  A dtype can only be compared (== or
!=) or measured with sizeof.  The text is parsed into a syntax tree, checked against this list and
walked; Python never evaluates it."""

import ast
from collections.abc import Mapping
from dataclasses import replace

from pipelink_rules.diagnostics.diagnostic import PipelinkError, error
from pipelink_rules.expression.evaluate import Value, evaluate_tree, names_in, number
from pipelink_rules.expression.parse import FUNCTIONS, ExpressionError, parse
from pipelink_rules.model.contract import DTYPES
from pipelink_rules.model.source_span import Expr, Span


def check_syntax(expr: Expr | str) -> None:
    """Raise PL0030 where the text is not an expression of the language."""
    _tree(expr)


def names(expr: Expr | str) -> frozenset[str]:
    """Return the names in the expression, without dtype names and functions."""
    check_syntax(expr)
    return names_in(_text(expr))


def name_span(expr: Expr, name: str) -> Span | None:
    """Return the span of the first use of `name`."""
    for node in ast.walk(_tree(expr)):
        if isinstance(node, ast.Name) and node.id == name:
            return _span(expr, node.col_offset, node.end_col_offset)
    return expr.span


def evaluate(expr: Expr | str, env: Mapping[str, Value]) -> int:
    """Return the value, 1 or 0 of a condition; raise PL0031 for an unknown name, else PL0032."""
    tree = _tree(expr)
    try:
        return number(tree, env)
    except KeyError as unknown:
        name = unknown.args[0]
        raise error(
            "PL0031",
            f"`{name}` has no value in expression `{_text(expr)}`",
            name_span(expr, name) if isinstance(expr, Expr) else None,
            expected="one of " + ", ".join(sorted(env)) if env else "an expression of numbers",
            found=name,
            subject=f"{_text(expr)}: {name}",
        ) from None
    except ExpressionError as refused:
        raise _no_value(expr, refused, env) from None


def substitute(expr: Expr, env: Mapping[str, Value]) -> Expr:
    """Return the expression with the names of `env` replaced and constants folded.

    The span stays that of the source.  Raise PL0032 where a folded part has no value.
    """
    if expr.literal is not None:
        return expr
    try:
        folded = _fold(_tree(expr), env)
    except ExpressionError as refused:
        raise _no_value(expr, refused, env) from None
    if isinstance(folded, ast.expr):
        folded = ast.unparse(ast.fix_missing_locations(folded))
    return replace(expr, text=str(folded))


# -- text -> checked tree -------------------------------------------------------------------------


def _text(expr: Expr | str) -> str:
    return expr.text if isinstance(expr, Expr) else expr


def _span(expr: Expr | str, start: int, end: int | None) -> Span | None:
    """Return the part of the expression's span between two columns, if it is on one line."""
    if not isinstance(expr, Expr) or expr.span is None:
        return None
    text = expr.text
    if expr.span.length != len(text) or end is None or end <= start or "\n" in text:
        return expr.span
    return replace(expr.span, column=expr.span.column + start, length=end - start)


def _tree(expr: Expr | str) -> ast.expr:
    try:
        return parse(_text(expr))
    except ExpressionError as refused:
        raise error(
            "PL0030",
            f"malformed expression `{_shown(expr)}`: {refused.reason}",
            _span(expr, refused.start, refused.end) if isinstance(expr, Expr) else None,
            expected="integers, names, + - * // %, comparisons, and/or/not, ceildiv/min/max/sizeof",
            suggestions=(refused.hint,) if refused.hint else (),
            subject=_shown(expr),
        ) from None


def _shown(expr: Expr | str) -> str:
    text = " ".join(_text(expr).split())
    return text if len(text) <= 80 else text[:77] + "..."


# -- tree -> value --------------------------------------------------------------------------------


def _no_value(
    expr: Expr | str, refused: ExpressionError, env: Mapping[str, Value]
) -> PipelinkError:
    known = ", ".join(f"{name}={env[name]}" for name in sorted(names(expr)) if name in env)
    return error(
        "PL0032",
        f"cannot evaluate `{_shown(expr)}`: {refused.reason}",
        _span(expr, refused.start, refused.end) if isinstance(expr, Expr) else None,
        notes=(f"with {known}",) if known else (),
        suggestions=(refused.hint,) if refused.hint else (),
        subject=_shown(expr),
    )


# -- partial evaluation ---------------------------------------------------------------------------


def _fold(node: ast.expr, env: Mapping[str, Value]) -> ast.expr | int | str:
    """Return the value where every name of the part is known, else the part with folded parts."""
    if all(
        item.id in env or item.id in DTYPES or item.id in FUNCTIONS
        for item in ast.walk(node)
        if isinstance(item, ast.Name)
    ):
        return evaluate_tree(node, env)
    if isinstance(node, ast.BinOp):
        left, right = _fold(node.left, env), _fold(node.right, env)
        return _simplified(node.op, left, right) or ast.BinOp(_node(left), node.op, _node(right))
    if isinstance(node, ast.UnaryOp):
        return ast.UnaryOp(node.op, _node(_fold(node.operand, env)))
    if isinstance(node, ast.BoolOp):
        return _fold_condition(node, env)
    if isinstance(node, ast.Compare):
        parts = [_node(_fold(item, env)) for item in (node.left, *node.comparators)]
        return ast.Compare(parts[0], node.ops, parts[1:])
    if isinstance(node, ast.Call):
        return ast.Call(node.func, [_node(_fold(item, env)) for item in node.args], [])
    return node


def _simplified(op: ast.operator, left: object, right: object) -> ast.expr | None:
    """Return `x` for x*1, 1*x, x+0, 0+x, x-0, x//1, and x*6 for x*2*3."""
    if isinstance(left, ast.expr) and (
        (right == 1 and isinstance(op, (ast.Mult, ast.FloorDiv)))
        or (right == 0 and isinstance(op, (ast.Add, ast.Sub)))
    ):
        return left
    if isinstance(op, ast.Mult) and isinstance(left, ast.BinOp) and isinstance(right, int):
        inner = left.right
        if isinstance(left.op, ast.Mult) and isinstance(inner, ast.Constant):
            return ast.BinOp(left.left, op, ast.Constant(int(inner.value) * right))  # type: ignore[arg-type]
    if isinstance(right, ast.expr) and (
        (left == 1 and isinstance(op, ast.Mult)) or (left == 0 and isinstance(op, ast.Add))
    ):
        return right
    return None


def _fold_condition(node: ast.BoolOp, env: Mapping[str, Value]) -> ast.expr | int:
    decides = isinstance(node.op, ast.Or)
    rest: list[ast.expr] = []
    for item in node.values:
        part = _fold(item, env)
        if isinstance(part, int):
            if bool(part) is decides:
                return int(decides)
        else:
            rest.append(_node(part))
    if len(rest) > 1:
        return ast.BoolOp(node.op, rest)
    return ast.Compare(rest[0], [ast.NotEq()], [ast.Constant(0)])


def _node(part: ast.expr | int | str) -> ast.expr:
    if isinstance(part, ast.expr):
        return part
    if isinstance(part, str):
        return ast.Name(part, ast.Load())
    return ast.Constant(part) if part >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-part))
