"""Mutants of a Python module: each changes one operator, constant, condition, call or statement.

Texts, annotations, docstrings and imports are left out: they decide nothing that a test of the
verdict could see, except through a message, which other tests compare.
"""

from __future__ import annotations

import ast
import copy
import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

Change = tuple[str, ast.AST]  # (what, the node in its place)

_COMPARE: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_SKIPPED = ("annotation", "returns", "decorator_list", "type_params")


@dataclass(frozen=True)
class Mutant:
    """One change of a module."""

    line: int
    what: str
    old: str
    new: str
    key: str  # of the change and its content, whatever the line
    make: Callable[[], ast.Module]

    @property
    def tree(self) -> ast.Module:
        """Return the changed module; it is copied only now."""
        return self.make()

    @property
    def text(self) -> str:
        """Describe the change in one line."""
        return f"{self.what}: {_short(self.old)} -> {_short(self.new)}"


def mutants(source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module, in the order of its statements; none equals the module."""
    tree = ast.parse(source)
    seen: Counter[str] = Counter()
    for parent, field, index, node in _places(tree):
        for what, changed in _changes(node):
            old, new = ast.unparse(node), ast.unparse(changed)
            change = f"{what}|{old}|{new}"
            seen[change] += 1
            key = hashlib.sha256(f"{change}|{seen[change]}".encode()).hexdigest()[:12]
            make = partial(_replaced, tree, parent, field, index, changed)
            yield Mutant(getattr(node, "lineno", 0), what, old, new, key, make)


def _short(text: str) -> str:
    line, _, rest = text.partition("\n")
    return f"{line} ..." if rest else line


def _places(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Yield (parent, field, index in the field, node) of what may change."""
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED or isinstance(value, ast.JoinedStr):
            continue
        if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
            return
        children = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        for index, child in children:
            if isinstance(child, ast.AST) and not _is_docstring(child):
                yield node, field, index, child
                yield from _places(child)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _replaced(
    tree: ast.Module, parent: ast.AST, field: str, index: int | None, changed: ast.AST
) -> ast.Module:
    """Copy the tree with one node changed; the original stays as it is."""
    memo: dict[int, object] = {}
    made = copy.deepcopy(tree, memo)
    place = memo[id(parent)]
    if index is None:
        setattr(place, field, changed)
    else:
        getattr(place, field)[index] = changed
    return ast.fix_missing_locations(made)


def _changes(node: ast.AST) -> Iterator[Change]:
    for kind, change in _OPERATORS:
        if isinstance(node, kind):
            yield from change(node)


def _of_compare(node: ast.Compare) -> Iterator[Change]:
    for place, operator in enumerate(node.ops):
        for other in _COMPARE[type(operator)]:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield "compare", ast.Compare(node.left, ops, node.comparators)


def _of_condition(node: ast.If | ast.While | ast.IfExp) -> Iterator[Change]:
    negated = copy.copy(node)
    negated.test = ast.UnaryOp(ast.Not(), node.test)
    if not isinstance(node, ast.While):  # a negated loop seldom ends
        yield "negate", negated


def _of_filter(node: ast.comprehension) -> Iterator[Change]:
    for place in range(len(node.ifs)):
        kept = [*node.ifs[:place], *node.ifs[place + 1 :]]
        yield "drop a filter", ast.comprehension(node.target, node.iter, kept, node.is_async)


def _of_boolean(node: ast.BoolOp) -> Iterator[Change]:
    yield "and/or", ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    for place in range(len(node.values)):
        rest = [*node.values[:place], *node.values[place + 1 :]]
        yield "drop an operand", rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)


def _of_unary(node: ast.UnaryOp) -> Iterator[Change]:
    yield "drop a sign", node.operand


def _of_arithmetic(node: ast.BinOp) -> Iterator[Change]:
    text = any(isinstance(s, ast.Constant | ast.JoinedStr) and _is_text(s) for s in _sides(node))
    if type(node.op) in _ARITHMETIC and not text:
        yield "arithmetic", ast.BinOp(node.left, _ARITHMETIC[type(node.op)](), node.right)


def _sides(node: ast.BinOp) -> tuple[ast.expr, ast.expr]:
    return node.left, node.right


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def _of_constant(node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "constant", ast.Constant(node.value + 1)
        yield "constant", ast.Constant(node.value - 1)


def _of_call(node: ast.Call) -> Iterator[Change]:
    symmetric = isinstance(node.func, ast.Name) and node.func.id in ("min", "max")
    for place in range(0 if symmetric else len(node.args) - 1):
        one, other = node.args[place : place + 2]
        if not isinstance(one, ast.Starred) and not isinstance(other, ast.Starred):
            args = [*node.args[:place], other, one, *node.args[place + 2 :]]
            yield "swap arguments", ast.Call(node.func, args, node.keywords)
    for place in range(len(node.keywords)):
        rest = [*node.keywords[:place], *node.keywords[place + 1 :]]
        yield "drop an argument", ast.Call(node.func, node.args, rest)


def _of_extreme(node: ast.Name) -> Iterator[Change]:
    others = {"min": "max", "max": "min", "any": "all", "all": "any"}
    if isinstance(node.ctx, ast.Load) and node.id in others:
        yield "extreme", ast.Name(others[node.id], node.ctx)


def _of_statement(node: ast.stmt) -> Iterator[Change]:
    """Remove a statement without which the function still has its names."""
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Continue | ast.Break) or (
        isinstance(node, ast.Return) and node.value is None
    ):
        yield "remove", ast.Pass()


_OPERATORS: tuple[tuple[object, Callable[..., Iterator[Change]]], ...] = (
    (ast.Compare, _of_compare),
    (ast.If, _of_condition),
    (ast.IfExp, _of_condition),
    (ast.comprehension, _of_filter),
    (ast.BoolOp, _of_boolean),
    (ast.UnaryOp, _of_unary),
    (ast.BinOp, _of_arithmetic),
    (ast.Constant, _of_constant),
    (ast.Call, _of_call),
    (ast.Name, _of_extreme),
    (ast.stmt, _of_statement),
)
