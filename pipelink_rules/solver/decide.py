"""Exact decisions about expressions: are two equal, does a condition hold, for all allowed values?

Symbols are integers within bounds, multiples of a number, under conditions.  The answer is "yes",
"no" with values of the names for which it is not so, or "cannot be decided".  In this order:

    one text, one polynomial         yes
    bounds and multiples             yes
    few values: all of them          yes or no
    values around every constant     no
    z3, integers                     yes or no, or more than the budget

Every "no" is a point at which Python's integers differ, also where z3 found it.  An expression has
no value where a divisor is 0; two are equal there only if neither has one.  Integers have no
largest value here, but a "no" needs values below 2^63, as the contract language does.
"""

import ast
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from pipelink_rules.expression.evaluate import names_in, number
from pipelink_rules.expression.normal_form import has_names, normal_form
from pipelink_rules.expression.parse import DivisionByZero, ExpressionError, parse
from pipelink_rules.model.contract import Symbol
from pipelink_rules.model.source_span import Expr
from pipelink_rules.solver.session import SAT, UNSAT, Session
from pipelink_rules.solver.smt_expression import SmtWriter
from pipelink_rules.solver.value_sets import Unbounded, ValueSet, values_of

MOST_POINTS = 4096  # that are all evaluated
RLIMIT = 1_000_000  # of a question, in units of z3: about 0.5 s
Point = dict[str, int]


class Domain(NamedTuple):
    """The values of names.  A name without a symbol or a value is any int32 that is not negative.

    values: name -> expression over other names.  conditions: (name, what holds where that name is
    used); "" for what always holds.
    """

    symbols: tuple[Symbol, ...] = ()
    values: tuple[tuple[str, Expr], ...] = ()
    conditions: tuple[tuple[str, Expr], ...] = ()


INT32 = Domain()


class Answer(NamedTuple):
    """`holds` is None where it cannot be decided; `case`: values for which it does not hold."""

    holds: bool | None
    case: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        """Return `K=1281, k_blocks=21`."""
        return ", ".join(f"{name}={value}" for name, value in self.case)


def equal(a: Expr | str, b: Expr | str, domain: Domain = INT32) -> Answer:
    """Decide whether two expressions have the same value for all values of their names."""
    left, right = parse(str(a)), parse(str(b))
    if ast.dump(left) == ast.dump(right):
        return Answer(True)
    forms = normal_form(left), normal_form(right)
    if forms[0] is not None and forms[0] == forms[1]:
        return Answer(True)

    def wrong(point: Point) -> bool:
        return _value(left, point) != _value(right, point)

    def formula(writer: SmtWriter) -> str:
        (x, has_x), (y, has_y) = writer.value(left), writer.value(right)
        return f"(or (distinct {has_x} {has_y}) (and {has_x} (distinct {x} {y})))"

    same = ast.Compare(left, [ast.Eq()], [right])
    return _decide(same, wrong, formula, domain)


def always(condition: Expr | str, domain: Domain = INT32) -> Answer:
    """Decide whether a condition is true for all values of its names."""
    tree = parse(str(condition))

    def wrong(point: Point) -> bool:
        return not _value(tree, point)

    return _decide(tree, wrong, lambda writer: f"(not {writer.true(tree)})", domain)


def lowest(expr: Expr | str, domain: Domain = INT32) -> int | None:
    """Return a number that no value of an expression is below; None if there is none."""
    tree = parse(str(expr))
    try:
        return values_of(tree, _RelevantNames(domain, tree).sets()).low
    except (Unbounded, ExpressionError):
        return None


def _decide(
    tree: ast.expr,
    wrong: Callable[[Point], bool],
    formula: Callable[[SmtWriter], str],
    domain: Domain,
) -> Answer:
    """Find a point of the domain that is `wrong`; `formula` says the same of all points."""
    names = _RelevantNames(domain, tree)
    try:
        if values_of(tree, names.sets()).low > 0:
            return Answer(True)
    except (Unbounded, ExpressionError):
        pass
    skipped = False
    whole = names.size <= MOST_POINTS
    for free in names.all() if whole else names.some():
        point: Point | None = None
        try:
            point = names.point(free)
            if point is not None and wrong(point):
                return Answer(False, names.shown(point))
        except _TooLarge:
            skipped = True
    if whole and not skipped:
        return Answer(True)
    return _solve(names, wrong, formula)


def _solve(
    names: "_RelevantNames", wrong: Callable[[Point], bool], formula: Callable[[SmtWriter], str]
) -> Answer:
    writer = SmtWriter()
    try:
        names.write(writer)
        writer.claim(formula(writer))
    except (AssertionError, ExpressionError):  # a dtype where a number belongs
        return Answer(None)
    session = Session("\n".join(writer.lines), 4 * RLIMIT)  # a first check has a quarter
    verdict = session.check()
    if verdict == UNSAT:
        return Answer(True)
    if verdict == SAT:
        free = {
            symbol.name: session.values.get(f"{symbol.name}.n", names.first(symbol))
            * symbol.multiple_of
            for symbol in names.free
        }
        try:
            point = names.point(free)
            if point is not None and wrong(point):
                return Answer(False, names.shown(point))
        except _TooLarge:
            pass
    return Answer(None)


class _TooLarge(Exception):
    """A value exceeds 63 bits."""


def _value(tree: ast.expr, point: Mapping[str, int]) -> int | None:
    try:
        return number(tree, point)
    except DivisionByZero:
        return None
    except (ExpressionError, KeyError):
        raise _TooLarge from None


class _RelevantNames:
    """The names that an expression depends on, directly and through values and conditions."""

    def __init__(self, domain: Domain, tree: ast.expr):
        values = {name: parse(str(value)) for name, value in domain.values}
        used = _free(tree)
        grown = True
        self.conditions: list[ast.expr] = []
        left = [(name, names_in(str(text)), parse(str(text))) for name, text in domain.conditions]
        while grown:
            grown = False
            for name in used & set(values):
                more = _free(values[name]) - used
                used, grown = used | more, grown or bool(more)
            for item in list(left):
                name, names, condition = item
                if name in used if name else names & used:
                    left.remove(item)
                    self.conditions.append(condition)
                    used, grown = used | names, True
        self.values = {name: tree for name, tree in values.items() if name in used}
        symbols = {symbol.name: symbol for symbol in domain.symbols}
        self.free = [
            symbols.get(name, Symbol(name)) for name in sorted(used) if name not in self.values
        ]
        self.bounds = {name: symbols[name] for name in self.values if name in symbols}
        trees = [tree, *self.values.values(), *self.conditions]
        self.numbers = sorted({number for tree in trees for number in _constants(tree)})

    @staticmethod
    def first(symbol: Symbol) -> int:
        """Return the least multiple, as a factor of `multiple_of`."""
        return -(-symbol.minimum // symbol.multiple_of)

    @staticmethod
    def last(symbol: Symbol) -> int:
        """Return the largest multiple, as a factor of `multiple_of`."""
        return symbol.maximum // symbol.multiple_of

    @property
    def size(self) -> int:
        """The number of points."""
        counts = [self.last(symbol) - self.first(symbol) + 1 for symbol in self.free]
        return math.prod(max(count, 0) for count in counts)

    def all(self) -> Iterator[Point]:
        """Yield every choice of values."""
        choices = [range(self.first(symbol), self.last(symbol) + 1) for symbol in self.free]
        yield from self._points(choices)

    def some(self) -> Iterator[Point]:
        """Yield values at the ends and around constants and their products, small ones first."""
        wanted = {0, 1, 2, 3, *self.numbers}
        wanted |= {a * b for a, b in itertools.combinations_with_replacement(self.numbers[:8], 2)}
        near = sorted({abs(value) + step for value in wanted for step in (-1, 0, 1)})
        choices = []
        for symbol in self.free:
            low, high = self.first(symbol), self.last(symbol)
            found = {low, low + 1, low + 2, high, high - 1}
            found |= {value // symbol.multiple_of + step for value in near for step in (0, 1)}
            choices.append(sorted(value for value in found if low <= value <= high))
        limit = max(int(MOST_POINTS ** (1 / max(len(choices), 1))), 2)
        yield from self._points([[*few[: limit - 1], few[-1]] for few in choices if few])
        for place, values in enumerate(choices):  # one at a time, where that left any out
            for value in values[limit - 1 :]:
                rest = [few[:1] for few in choices]
                yield from self._points([*rest[:place], [value], *rest[place + 1 :]])

    def _points(self, choices: Iterable[Iterable[int]]) -> Iterator[Point]:
        for factors in itertools.product(*choices):
            yield {
                symbol.name: factor * symbol.multiple_of
                for symbol, factor in zip(self.free, factors, strict=True)
            }

    def point(self, free: Point) -> Point | None:
        """Return all names at a choice of values; None if a condition forbids it."""
        point = dict(free)
        left = dict(self.values)
        while left:  # values may depend on each other, but not in a cycle
            name = next((name for name in left if _free(left[name]) <= set(point)), None)
            if name is None:
                return None
            value = _value(left.pop(name), point)
            if value is None:
                return None
            point[name] = value
            symbol = self.bounds.get(name)
            if symbol and not symbol.minimum <= value <= symbol.maximum:
                return None
        return point if all(_value(condition, point) for condition in self.conditions) else None

    def shown(self, point: Point) -> tuple[tuple[str, int], ...]:
        """Return the point, derived names last."""
        return tuple(sorted(point.items(), key=lambda item: (item[0] in self.values, item[0])))

    def sets(self) -> dict[str, ValueSet]:
        """Return what bounds and multiples say about every name."""
        found = {
            symbol.name: ValueSet(
                self.first(symbol) * symbol.multiple_of,
                self.last(symbol) * symbol.multiple_of,
                symbol.multiple_of,
            )
            for symbol in self.free
        }
        left = dict(self.values)
        while name := next((name for name in left if _free(left[name]) <= set(found)), None):
            made, symbol = values_of(left.pop(name), found), self.bounds.get(name)
            if symbol and made.step:
                low, high = max(made.low, symbol.minimum), min(made.high, symbol.maximum)
                made = made._replace(low=low, high=max(low, high))
            found[name] = made
        if left:
            raise Unbounded
        return found

    def write(self, writer: SmtWriter) -> None:
        """Declare all names with what holds for them."""
        for symbol in self.free:
            writer.integer(symbol.name, symbol.minimum, symbol.maximum, symbol.multiple_of)
        left = dict(self.values)
        while name := next((name for name in left if not _free(left[name]) & set(left)), None):
            writer.define(name, left.pop(name))
            if name in self.bounds:
                symbol = self.bounds[name]
                writer.claim(f"(<= {symbol.minimum} |{name}| {symbol.maximum})")
        for condition in self.conditions:
            writer.claim(writer.true(condition))


def _free(tree: ast.expr) -> set[str]:
    if isinstance(tree, ast.Name):
        return {tree.id} if has_names(tree) else set()
    children = tree.args if isinstance(tree, ast.Call) else ast.iter_child_nodes(tree)
    return {name for child in children if isinstance(child, ast.expr) for name in _free(child)}


def _constants(tree: ast.expr) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            yield int(node.value)  # type: ignore[arg-type]
