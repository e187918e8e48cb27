"""What does an expression of the contract language mean?  Expr, names -> int, or a smaller Expr.

The language: integers, names, + - * // %, comparisons (chained too), and/or/not, ceildiv(a, b),
min(...), max(...), sizeof(dtype).  Division rounds down.  A dtype may only be compared (== or !=)
or measured with sizeof.  Text is parsed into a syntax tree, checked against this list, and walked;
nothing is ever handed to Python's own evaluation.
"""

from __future__ import annotations

import ast
import hashlib
import operator
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

from pipelink_rules.diagnostics.diagnostic import PipelinkError, error
from pipelink_rules.model.contract import DTYPES
from pipelink_rules.model.source import Expr, Span

Value = int | str  # a dtype is its name

FUNCTIONS = {"ceildiv": (2, 2), "min": (2, 16), "max": (2, 16), "sizeof": (1, 1)}  # arguments
LONGEST = 2000  # characters of one expression
MOST_NODES = 400
DEEPEST = 60
LARGEST = 2**63  # every value, intermediate ones too, stays below

_ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISON: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_CHARACTERS = re.compile(r"[A-Za-z0-9_ \t()+\-*/%<>=!,]*")
_BAD_NUMBER = re.compile(r"(?<![A-Za-z0-9_])[0-9]+[A-Za-z_][A-Za-z0-9_]*")
_HINTS = {
    "&&": "write `and`",
    "||": "write `or`",
    "**": "write the product out",
    "^": "there are no bit operations",
    "&": "there are no bit operations; `and` joins conditions",
    "|": "there are no bit operations; `or` joins conditions",
    "?": "write the two cases as `min`, `max` or a product with a comparison",
    ".": "there are integers only",
}


class _Refused(Exception):
    """A reason and the columns of the text it is about."""

    def __init__(self, reason: str, start: int = 0, end: int | None = None, hint: str = ""):
        super().__init__(reason)
        self.reason, self.start, self.end, self.hint = reason, start, end, hint


def check_syntax(expr: Expr | str) -> None:
    """Raises PL0030 where the text is not an expression of the language."""
    _tree(expr)


def names(expr: Expr | str) -> frozenset[str]:
    """The names it mentions, dtype names and functions left out."""
    return frozenset(
        node.id
        for node in ast.walk(_tree(expr))
        if isinstance(node, ast.Name) and node.id not in DTYPES and node.id not in FUNCTIONS
    )


def name_span(expr: Expr, name: str) -> Span | None:
    """Where the expression mentions `name` first."""
    for node in ast.walk(_tree(expr)):
        if isinstance(node, ast.Name) and node.id == name:
            return _span(expr, node.col_offset, node.end_col_offset)
    return expr.span


def evaluate(expr: Expr | str, env: Mapping[str, Value]) -> int:
    """Its value (a condition is 1 or 0); PL0031 for an unknown name, PL0032 for no value."""
    tree = _tree(expr)
    try:
        return _number(tree, env)
    except KeyError as unknown:
        name = unknown.args[0]
        raise error(
            "PL0031",
            f"`{_text(expr)}` needs `{name}`, which has no value here",
            name_span(expr, name) if isinstance(expr, Expr) else None,
            expected="names among " + ", ".join(sorted(env)) if env else "an expression of numbers",
            found=name,
            subject=f"{_text(expr)}: {name}",
        ) from None
    except _Refused as refused:
        raise _no_value(expr, refused, env) from None


def substitute(expr: Expr, env: Mapping[str, Value]) -> Expr:
    """The expression with the names of `env` replaced and constants folded.

    The span stays that of the source.  PL0032 where a folded part has no value.
    """
    if expr.literal is not None:
        return expr
    try:
        folded = _fold(_tree(expr), env)
    except _Refused as refused:
        raise _no_value(expr, refused, env) from None
    return replace(expr, text=str(folded) if isinstance(folded, (int, str)) else _unparse(folded))


def equal(a: Expr | str, b: Expr | str, minimums: Mapping[str, int] | None = None) -> bool:
    """Whether both give the same value for all names, each from its minimum (default 0) up.

    Decided by evaluation at fixed points: corners first, then spread values of growing size.  Two
    different expressions of this language that agree on all of them are possible but contrived.
    A point where one has no value counts only if the other has one.
    """
    wanted = sorted(names(a) | names(b))
    if not wanted:
        return _try(a, {}) == _try(b, {})
    seen = False
    for env in _points(wanted, minimums or {}):
        left, right = _try(a, env), _try(b, env)
        if left != right:
            return False
        seen = seen or left is not None
    return seen or _text(a).split() == _text(b).split()


def _points(wanted: list[str], minimums: Mapping[str, int]) -> list[dict[str, int]]:
    low = {name: minimums.get(name, 0) for name in wanted}
    points = [low, {name: value + 1 for name, value in low.items()}]
    points += [{**low, name: low[name] + step} for name in wanted for step in (1, 2, 7)]
    for round_ in range(48):
        size = 4 << (round_ // 3)  # up to a few hundred thousand
        points.append(
            {
                name: low[name]
                + int.from_bytes(hashlib.sha256(f"{name}:{round_}".encode()).digest()[:6]) % size
                for name in wanted
            }
        )
    return points


def _try(expr: Expr | str, env: Mapping[str, Value]) -> int | None:
    try:
        return _number(_tree(expr), env)
    except (_Refused, KeyError):
        return None


# -- text -> checked tree -------------------------------------------------------------------------


def _text(expr: Expr | str) -> str:
    return expr.text if isinstance(expr, Expr) else expr


def _span(expr: Expr | str, start: int, end: int | None) -> Span | None:
    """The part of the expression's span between two columns, if it is on one line."""
    if not isinstance(expr, Expr) or expr.span is None:
        return None
    text = expr.text
    if expr.span.length != len(text) or end is None or end <= start or "\n" in text:
        return expr.span
    return replace(expr.span, column=expr.span.column + start, length=end - start)


def _tree(expr: Expr | str) -> ast.expr:
    try:
        return _parse(_text(expr))
    except _Refused as refused:
        raise error(
            "PL0030",
            f"`{_shown(expr)}` is not an expression: {refused.reason}",
            _span(expr, refused.start, refused.end) if isinstance(expr, Expr) else None,
            expected="integers, names, + - * // %, comparisons, and/or/not, ceildiv, min, max, sizeof",
            helps=(refused.hint,) if refused.hint else (),
            subject=_shown(expr),
        ) from None


def _shown(expr: Expr | str) -> str:
    text = " ".join(_text(expr).split())
    return text if len(text) <= 80 else text[:77] + "..."


@lru_cache(maxsize=4096)
def _parse(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise _Refused(f"it has {len(text)} characters, more than {LONGEST}")
    if not text.strip():
        raise _Refused("it is empty")
    matched = _CHARACTERS.match(text)
    end = matched.end() if matched else 0
    for sign, hint in _HINTS.items():
        if (at := text.find(sign)) >= 0:
            raise _Refused(f"`{sign}` is not part of the language", at, at + len(sign), hint)
    if end < len(text):
        raise _Refused(f"`{text[end]}` is not part of the language", end, end + 1)
    if bad := _BAD_NUMBER.search(text):
        raise _Refused(f"`{bad.group()}` is neither a number nor a name", bad.start(), bad.end())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as problem:
        at = max((problem.offset or 1) - 1, 0)
        raise _Refused(_plain(problem.msg), at, at + 1) from None
    except (ValueError, RecursionError, MemoryError):
        raise _Refused("it is nested too deeply") from None
    _check(tree, 0, [0])
    return tree


def _plain(message: str) -> str:
    """Python's reason without Python's suggestions."""
    known = {"leading zeros": "numbers have no leading zeros", "was never closed": "an open `(`"}
    for part, plain in known.items():
        if part in message:
            return plain
    return message.split(".")[0] if message.startswith(("unmatched", "too many")) else "bad syntax"


def _check(node: ast.AST, depth: int, count: list[int]) -> None:
    count[0] += 1
    if depth > DEEPEST or count[0] > MOST_NODES:
        raise _Refused("it is nested too deeply" if depth > DEEPEST else "it has too many parts")
    place = (getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None))
    children: list[ast.expr] = []
    if isinstance(node, ast.Constant):
        if type(node.value) is not int or node.value >= LARGEST:
            reason = "this number is too large" if type(node.value) is int else "integers only"
            raise _Refused(reason, *place)
    elif isinstance(node, ast.Name):
        if node.id in FUNCTIONS:
            raise _Refused(f"`{node.id}` is a function: `{node.id}(...)`", *place)
    elif isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div):
            raise _Refused(
                "`/` is not part of the language", *place, "write `//` or `ceildiv(a, b)`"
            )
        if type(node.op) not in _ARITHMETIC:
            raise _Refused("this operator is not part of the language", *place)
        children = [node.left, node.right]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        children = [node.operand]
    elif isinstance(node, ast.BoolOp):
        children = node.values
    elif isinstance(node, ast.Compare):
        if any(type(op) not in _COMPARISON for op in node.ops):
            raise _Refused("this comparison is not part of the language", *place)
        children = [node.left, *node.comparators]
    elif isinstance(node, ast.Call):
        children = _check_call(node, place)
    else:
        raise _Refused("this is not part of the language", *place)
    for child in children:
        _check(child, depth + 1, count)


def _check_call(node: ast.Call, place: tuple[int, int | None]) -> list[ast.expr]:
    name = node.func.id if isinstance(node.func, ast.Name) else "this"
    if name not in FUNCTIONS:
        raise _Refused(
            f"there is no function `{name}`", *place, "functions: " + ", ".join(FUNCTIONS)
        )
    least, most = FUNCTIONS[name]
    if node.keywords or not least <= len(node.args) <= most:
        raise _Refused(
            f"`{name}` takes {least}{'' if least == most else ' or more'} values", *place
        )
    if name == "sizeof" and not isinstance(node.args[0], ast.Name):
        raise _Refused("`sizeof` takes a dtype", *place)
    return node.args


# -- tree -> value --------------------------------------------------------------------------------


def _no_value(expr: Expr | str, refused: _Refused, env: Mapping[str, Value]) -> PipelinkError:
    known = ", ".join(f"{name}={env[name]}" for name in sorted(names(expr)) if name in env)
    return error(
        "PL0032",
        f"`{_shown(expr)}` has no value: {refused.reason}",
        _span(expr, refused.start, refused.end) if isinstance(expr, Expr) else None,
        notes=(f"with {known}",) if known else (),
        helps=(refused.hint,) if refused.hint else (),
        subject=_shown(expr),
    )


def _refuse(node: ast.AST, reason: str, hint: str = "") -> _Refused:
    start, end = getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None)
    return _Refused(reason, start, end, hint)


def _number(node: ast.expr, env: Mapping[str, Value]) -> int:
    value = _value(node, env)
    if isinstance(value, str):
        hint = f"`sizeof({ast.unparse(node)})` is its size in bytes"
        raise _refuse(node, f"`{ast.unparse(node)}` is a dtype, not a number", hint)
    return value


def _value(node: ast.expr, env: Mapping[str, Value]) -> Value:
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
        return _apply(node, _number(node.left, env), _number(node.right, env))
    if isinstance(node, ast.UnaryOp):
        operand = _number(node.operand, env)
        return -operand if isinstance(node.op, ast.USub) else int(not operand)
    if isinstance(node, ast.BoolOp):
        stop = isinstance(node.op, ast.Or)
        return int(stop if any(bool(_number(v, env)) is stop for v in node.values) else not stop)
    if isinstance(node, ast.Compare):
        values = [_value(item, env) for item in (node.left, *node.comparators)]
        pairs = zip(node.ops, values, values[1:], strict=False)
        return int(all(_compare(node, op, left, right) for op, left, right in pairs))
    assert isinstance(node, ast.Call)
    return _call(node, env)


def _apply(node: ast.BinOp, left: int, right: int) -> int:
    if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and right == 0:
        raise _refuse(node, f"`{ast.unparse(node.right)}` is 0, and it divides by it")
    value = _ARITHMETIC[type(node.op)](left, right)
    if not -LARGEST < value < LARGEST:
        raise _refuse(node, f"`{ast.unparse(node)}` is beyond 63 bits")
    return value


def _compare(node: ast.expr, op: ast.cmpop, left: Value, right: Value) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        if not isinstance(op, (ast.Eq, ast.NotEq)) or type(left) is not type(right):
            raise _refuse(node, "a dtype compares only with a dtype, by == or !=")
        return (left == right) is isinstance(op, ast.Eq)
    return _COMPARISON[type(op)](left, right)


def _call(node: ast.Call, env: Mapping[str, Value]) -> int:
    assert isinstance(node.func, ast.Name)
    name = node.func.id
    if name == "sizeof":
        dtype = _value(node.args[0], env)
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise _refuse(node, f"`{ast.unparse(node.args[0])}` is not a dtype")
        return DTYPES[dtype][0]
    values = [_number(item, env) for item in node.args]
    if name == "ceildiv":
        if values[1] == 0:
            raise _refuse(node, f"`{ast.unparse(node.args[1])}` is 0, and it divides by it")
        return -(-values[0] // values[1])
    return min(values) if name == "min" else max(values)


# -- partial evaluation ---------------------------------------------------------------------------


def _fold(node: ast.expr, env: Mapping[str, Value]) -> ast.expr | int | str:
    """The value where every name of the part is known, else the part with its parts folded."""
    if all(
        item.id in env or item.id in DTYPES or item.id in FUNCTIONS
        for item in ast.walk(node)
        if isinstance(item, ast.Name)
    ):
        return _value(node, env)
    if isinstance(node, ast.BinOp):
        left, right = _fold(node.left, env), _fold(node.right, env)
        return _neutral(node.op, left, right) or ast.BinOp(_node(left), node.op, _node(right))
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


def _neutral(op: ast.operator, left: object, right: object) -> ast.expr | None:
    """`x` for x*1, 1*x, x+0, 0+x, x-0, x//1; x*6 for x*2*3."""
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
    return (
        ast.BoolOp(node.op, rest)
        if len(rest) > 1
        else ast.Compare(rest[0], [ast.NotEq()], [ast.Constant(0)])
    )


def _node(part: ast.expr | int | str) -> ast.expr:
    if isinstance(part, ast.expr):
        return part
    if isinstance(part, str):
        return ast.Name(part, ast.Load())
    return ast.Constant(part) if part >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-part))


def _unparse(node: ast.expr) -> str:
    return ast.unparse(ast.fix_missing_locations(node))
