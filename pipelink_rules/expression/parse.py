"""Parser of the expression language of contracts and manifests: text -> checked syntax tree.

Python's parser makes the tree; then every part of it must be on the list below.
"""

import ast
import operator
import re
import warnings
from collections.abc import Callable
from functools import lru_cache

FUNCTIONS = {"ceildiv": (2, 2), "min": (2, 16), "max": (2, 16), "sizeof": (1, 1)}  # arguments
LONGEST = 2000  # characters of one expression
MOST_NODES = 400
DEEPEST = 60
LARGEST = 2**63  # every value, intermediate ones too, stays below

ARITHMETIC: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
COMPARISON: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
UNCLOSED = "a `(` is not closed"
IN_FLOW = "quote a text with a comma inside [ ] or { }"
_CHARACTERS = re.compile(r"[A-Za-z0-9_ \t()+\-*/%<>=!,]*")
_BAD_NUMBER = re.compile(r"(?<![A-Za-z0-9_])[0-9]+[A-Za-z_][A-Za-z0-9_]*")
_HINTS = {
    "&&": "write `and`",
    "||": "write `or`",
    "**": "write a product",
    "^": "use arithmetic instead of bit operations",
    "&": "join conditions with `and`",
    "|": "join conditions with `or`",
    "?": "write the two cases as `min`, `max` or a product with a comparison",
    ".": "use integers",
}


class ExpressionError(Exception):
    """An invalid expression: the reason, and the columns of the text that it applies to."""

    def __init__(self, reason: str, start: int = 0, end: int | None = None, hint: str = ""):
        super().__init__(reason)
        self.reason, self.start, self.end, self.hint = reason, start, end, hint


class DivisionByZero(ExpressionError):
    """The expression is well formed, but a divisor is 0 for these values."""


@lru_cache(maxsize=4096)
def parse(text: str) -> ast.expr:
    """Return the tree of a text; raise ExpressionError."""
    if len(text) > LONGEST:
        raise ExpressionError(f"it has {len(text)} characters, more than {LONGEST}")
    if not text.strip():
        raise ExpressionError("it is empty")
    matched = _CHARACTERS.match(text)
    end = matched.end() if matched else 0
    for sign, hint in _HINTS.items():
        if (at := text.find(sign)) >= 0:
            raise ExpressionError(f"`{sign}` is not part of the language", at, at + len(sign), hint)
    if end < len(text):
        raise ExpressionError(f"`{text[end]}` is not part of the language", end, end + 1)
    if bad := _BAD_NUMBER.search(text):
        raise ExpressionError(
            f"`{bad.group()}` is neither a number nor a name", bad.start(), bad.end()
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as problem:
        at = max((problem.offset or 1) - 1, 0)
        reason = _plain(problem.msg)
        hint = IN_FLOW if reason == UNCLOSED else ""
        raise ExpressionError(reason, at, at + 1, hint) from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError("it is nested too deeply") from None
    _check(tree, 0, [0])
    return tree


def _plain(message: str) -> str:
    """Return Python's reason without its suggestions."""
    known = {"leading zeros": "numbers have no leading zeros", "was never closed": UNCLOSED}
    for part, plain in known.items():
        if part in message:
            return plain
    return message.split(".")[0] if message.startswith(("unmatched", "too many")) else "bad syntax"


def _check(node: ast.AST, depth: int, count: list[int]) -> None:
    count[0] += 1
    if depth > DEEPEST or count[0] > MOST_NODES:
        raise ExpressionError(
            "it is nested too deeply" if depth > DEEPEST else "it has too many parts"
        )
    place = (getattr(node, "col_offset", 0), getattr(node, "end_col_offset", None))
    if isinstance(node, (ast.Constant, ast.Name)):
        _check_leaf(node, place)
        return
    for child in _children(node, place):
        _check(child, depth + 1, count)


def _check_leaf(node: ast.Constant | ast.Name, place: tuple[int, int | None]) -> None:
    if isinstance(node, ast.Name):
        if node.id in FUNCTIONS:
            raise ExpressionError(f"function `{node.id}` is not called", *place)
    elif type(node.value) is not int:
        raise ExpressionError("it has a literal that is not an integer", *place)
    elif node.value >= LARGEST:
        raise ExpressionError("this number is too large", *place)


def _children(node: ast.AST, place: tuple[int, int | None]) -> list[ast.expr]:
    """Return the parts of an expression; raise ExpressionError for one of another language."""
    if isinstance(node, ast.BinOp):
        if isinstance(node.op, ast.Div):
            raise ExpressionError(
                "`/` is not part of the language", *place, "write `//` or `ceildiv(a, b)`"
            )
        if type(node.op) not in ARITHMETIC:
            raise ExpressionError("this operator is not part of the language", *place)
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
        return [node.operand]
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.Compare):
        if any(type(op) not in COMPARISON for op in node.ops):
            raise ExpressionError("this comparison is not part of the language", *place)
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call):
        return _check_call(node, place)
    raise ExpressionError("this is not part of the language", *place)


def _check_call(node: ast.Call, place: tuple[int, int | None]) -> list[ast.expr]:
    name = node.func.id if isinstance(node.func, ast.Name) else "this"
    if name not in FUNCTIONS:
        raise ExpressionError(
            f"unknown function `{name}`", *place, "functions: " + ", ".join(FUNCTIONS)
        )
    least, most = FUNCTIONS[name]
    if node.keywords or not least <= len(node.args) <= most:
        raise ExpressionError(
            f"`{name}` requires {least}{'' if least == most else ' or more'} arguments", *place
        )
    if name == "sizeof" and not isinstance(node.args[0], ast.Name):
        raise ExpressionError("`sizeof` requires a dtype", *place)
    return node.args
