"""SMT-LIB text of expressions with Python's meaning of // and %: syntax tree -> terms."""

import ast
from functools import reduce

from pipelink_rules.expression.evaluate import evaluate_tree
from pipelink_rules.expression.normal_form import has_names
from pipelink_rules.expression.parse import DivisionByZero

Value = tuple[str, str]  # an Int term, and a Bool term: whether the expression has this value

_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "=",
    ast.NotEq: "distinct",
}


def number(value: int) -> str:
    """Return a literal; SMT-LIB has no negative ones."""
    return str(value) if value >= 0 else f"(- {-value})"


class SmtWriter:
    """Declares names and defines a constant for every part of an expression.

    Every part is defined once, so the text grows with the expression only.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.count = 0

    def integer(self, name: str, low: int, high: int, step: int) -> None:
        """Declare a multiple of `step` within bounds."""
        first, last = number(-(-low // step)), number(high // step)
        self.lines.append(
            f"(declare-const |{name}.n| Int)(assert (<= {first} |{name}.n| {last}))"
            f"(define-fun |{name}| () Int (* {step} |{name}.n|))"
        )

    def define(self, name: str, node: ast.expr) -> None:
        """Define a name as the value of an expression, which exists."""
        term, defined = self.value(node)
        self.lines.append(f"(define-fun |{name}| () Int {term})(assert {defined})")

    def claim(self, formula: str) -> None:
        """Assert a formula."""
        self.lines.append(f"(assert {formula})")

    def true(self, node: ast.expr) -> str:
        """Return the formula that an expression has a value other than 0."""
        term, defined = self.value(node)
        return f"(and {defined} (not (= {term} 0)))"

    def value(self, node: ast.expr) -> Value:
        """Return the value of an expression, and whether it has one."""
        if not has_names(node):
            try:
                value = evaluate_tree(node, {})
            except DivisionByZero:
                return "0", "false"
            assert isinstance(value, int)  # a dtype is only compared with a dtype, or measured
            return number(value), "true"
        if isinstance(node, ast.Name):
            return f"|{node.id}|", "true"
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node.op, self.value(node.left), self.value(node.right))
        if isinstance(node, ast.UnaryOp):
            term, defined = self.value(node.operand)
            minus = isinstance(node.op, ast.USub)
            return self._kept(f"(- {term})" if minus else f"(ite (= {term} 0) 1 0)", defined)
        if isinstance(node, ast.BoolOp):
            return self._condition(node)
        if isinstance(node, ast.Compare):
            parts = [self.value(item) for item in (node.left, *node.comparators)]
            pairs = zip(node.ops, parts, parts[1:], strict=False)
            all_hold = " ".join(f"({_SIGNS[type(op)]} {a[0]} {b[0]})" for op, a, b in pairs)
            return self._kept(f"(ite (and {all_hold}) 1 0)", _both(parts))
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return self._call(node.func.id, [self.value(item) for item in node.args])

    def _kept(self, term: str, defined: str) -> Value:
        self.count += 1
        names = f"|{self.count}.v|", f"|{self.count}.d|"
        self.lines.append(
            f"(define-fun {names[0]} () Int {term})(define-fun {names[1]} () Bool {defined})"
        )
        return names

    def _arithmetic(self, op: ast.operator, a: Value, b: Value) -> Value:
        defined, sign = _both([a, b]), _SIGNS.get(type(op))
        if sign:
            return self._kept(f"({sign} {a[0]} {b[0]})", defined)
        # SMT-LIB rounds towards the side where the remainder is not negative; Python rounds down.
        up, down = f"{a[0]} {b[0]}", f"(- {a[0]}) (- {b[0]})"
        term = f"(ite (> {b[0]} 0) (div {up}) (div {down}))"
        if isinstance(op, ast.Mod):
            term = f"(ite (> {b[0]} 0) (mod {up}) (- (mod {down})))"
        return self._kept(term, f"(and {defined} (not (= {b[0]} 0)))")

    def _condition(self, node: ast.BoolOp) -> Value:
        """Operands after the first one that decides need no value."""
        parts = [self.value(item) for item in node.values]
        stops = isinstance(node.op, ast.Or)
        term, defined = parts[-1]
        term = f"(not (= {term} 0))"
        for one, exists in reversed(parts[:-1]):
            this = f"(not (= {one} 0))"
            decides = this if stops else f"(= {one} 0)"
            defined = f"(and {exists} (or {decides} {defined}))"
            term = f"({'or' if stops else 'and'} {this} {term})"
        return self._kept(f"(ite {term} 1 0)", defined)

    def _call(self, name: str, parts: list[Value]) -> Value:
        if name == "ceildiv":  # -(-a // b)
            minus = self._kept(f"(- {parts[0][0]})", parts[0][1])
            term, defined = self._arithmetic(ast.FloorDiv(), minus, parts[1])
            return self._kept(f"(- {term})", defined)
        sign = "<=" if name == "min" else ">="

        def choose(a: Value, b: Value) -> Value:
            return self._kept(f"(ite ({sign} {a[0]} {b[0]}) {a[0]} {b[0]})", _both([a, b]))

        return reduce(choose, parts)


def _both(parts: list[Value]) -> str:
    return f"(and {' '.join(defined for _, defined in parts)})"
