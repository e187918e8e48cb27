"""Expressions: values against Python's own arithmetic, folding that keeps the value, refusals."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.expression.expression import (
    check_syntax,
    evaluate,
    name_span,
    names,
    substitute,
)
from pipelink_rules.model.source_span import Expr, Span

NAMES = ("a", "b", "TM")


def expressions() -> st.SearchStrategy[str]:
    leaves = st.integers(0, 300).map(str) | st.sampled_from(NAMES)

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        binary = st.tuples(
            inner,
            st.sampled_from(
                ["+", "-", "*", "//", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or"]
            ),
            inner,
        ).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})")
        calls = st.tuples(st.sampled_from(["ceildiv", "min", "max"]), inner, inner).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        )
        return binary | calls | inner.map("(-{})".format) | inner.map("(not {})".format)

    return st.recursive(leaves, grow, max_leaves=10)


class OneOrZero(ast.NodeTransformer):
    """`and`/`or` are 1 or 0 in the language, and an operand in Python."""

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        return ast.IfExp(node, ast.Constant(1), ast.Constant(0))


def by_python(text: str, env: dict[str, int]) -> int | None:
    """The oracle; None where Python has no value either."""
    scope = {**env, "ceildiv": lambda x, y: -(-x // y), "min": min, "max": max}
    tree = ast.fix_missing_locations(OneOrZero().visit(ast.parse(text, mode="eval")))
    try:
        return int(eval(compile(tree, "", "eval"), {"__builtins__": {}}, scope))
    except ZeroDivisionError:
        return None


def value(text: str | Expr, env: dict[str, int]) -> int | None:
    try:
        return evaluate(text, env)
    except PipelinkError as problem:
        assert [item.code for item in problem.diagnostics] == ["PL0032"]
        return None


environments = st.fixed_dictionaries({name: st.integers(0, 50) for name in NAMES})


@given(expressions(), environments)
def test_value_is_pythons(text: str, env: dict[str, int]) -> None:
    assert value(text, env) == by_python(text, env)


@given(expressions(), environments, st.sets(st.sampled_from(NAMES)))
def test_substitution_keeps_the_value(text: str, env: dict[str, int], some: set[str]) -> None:
    known = {name: env[name] for name in some}
    try:
        folded = substitute(Expr(text), known)
    except PipelinkError:  # a part of it has no value, whatever the rest is
        assert by_python(text, env) is None or " and " in text or " or " in text
        return
    assert not names(folded) & some
    wanted = value(text, env)
    if wanted is not None:
        assert value(folded, env) == wanted


@given(expressions())
def test_substitution_of_everything_is_a_literal(text: str) -> None:
    env = dict.fromkeys(NAMES, 3)
    wanted = value(text, env)
    if wanted is not None:
        assert substitute(Expr(text), env).literal == wanted


@pytest.mark.parametrize(
    ("text", "env", "expected"),
    [
        ("(TM + TN) * TK * sizeof(T)", {"TM": 128, "TN": 256, "TK": 64, "T": "bf16"}, 49152),
        ("ceildiv(K, 64)", {"K": 65}, 2),
        ("sizeof(f32) + sizeof(u8)", {}, 5),
        ("0 < x <= 4 and T == bf16", {"x": 4, "T": "bf16"}, 1),
        ("T != f16 or x == 1", {"x": 0, "T": "f16"}, 0),
        ("-7 // 2", {}, -4),
        ("max(1, 2, 3) - min(4, 5)", {}, -1),
        ("false_name or 1", {"false_name": 0}, 1),
        ("1 or missing", {}, 1),
    ],
)
def test_values(text: str, env: dict[str, int | str], expected: int) -> None:
    assert evaluate(text, env) == expected


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("rows * D * sizeof(T)", "rows * 8192"),
        ("ceildiv(M, TM) * ceildiv(N, TM)", "ceildiv(M, 128) * ceildiv(N, 128)"),
        ("x * (TM // 128)", "x"),
        ("TM == 128 and x > 1 and y > 1", "x > 1 and y > 1"),
        ("TM == 128 or x > 1", "1"),
        ("TM != 128 or x", "x != 0"),
        ("x - (0 - TM)", "x - -128"),
        ("(x + 1) * (TM - 126)", "(x + 1) * 2"),
        ("T == bf16 and x", "x != 0"),
    ],
)
def test_folded_text(text: str, folded: str) -> None:
    env = {"TM": 128, "D": 4096, "T": "bf16"}
    assert substitute(Expr(text), env).text == folded


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "2TM",
        "a ** b",
        "x.y",
        "__import__('os')",
        "f(1)",
        "a / b",
        "1 if a else b",
        "min(1)",
        "ceildiv(1, 2, 3)\n    ",
        "lambda: 1",
        "[1]",
        "a := 1",
        "01",
        "a not in b",
        "a is b",
        "~a",
        "a << 1",
        "1.5",
        '"a"',
        'f"{a}"',
        "sizeof(1)",
        "sizeof(a + b)\n    ",
        "min(*a)",
        "min(a, key=b)",
        "a; b",
        "#",
        "a # b",
        "é",
        "min",
        "0x10",
        "1_000",
        "1e3",
        "None.x",
        "a @ b",
        "+a",
        "yield",
        "await a",
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(PipelinkError) as caught:
        check_syntax(text.strip())
    assert [item.code for item in caught.value.diagnostics] == ["PL0030"]


@pytest.mark.parametrize(
    "text", ["(" * 900 + "1" + ")" * 900, "-" * 900 + "1", "+".join("a" * 900), "1" * 3000]
)
def test_bounded(text: str) -> None:
    with pytest.raises(PipelinkError) as caught:
        check_syntax(text)
    assert caught.value.diagnostics[0].code == "PL0030"


@given(st.text(max_size=40))
def test_any_text_is_an_expression_or_a_finding(text: str) -> None:
    try:
        evaluate(text, {})
    except PipelinkError as problem:
        assert {item.code for item in problem.diagnostics} <= {"PL0030", "PL0031", "PL0032"}


@pytest.mark.parametrize(
    ("text", "env", "reason"),
    [
        ("1 // (a - a)", {"a": 3}, "is 0"),
        ("a * a * a", {"a": 2**40}, "exceeds 63 bits"),
        ("T + 1", {"T": "f16"}, "is a dtype"),
        ("T < f32", {"T": "f16"}, "only be compared"),
        ("T == 2", {"T": "f16"}, "only be compared"),
        ("sizeof(a)", {"a": 3}, "is not a dtype"),
    ],
)
def test_no_value(text: str, env: dict[str, int | str], reason: str) -> None:
    with pytest.raises(PipelinkError) as caught:
        evaluate(text, env)
    (found,) = caught.value.diagnostics
    assert found.code == "PL0032"
    assert reason in found.message


def test_unknown_name_points_at_the_name() -> None:
    expr = Expr("4 * WG + 1", Span("c.yaml", 3, 10, 10))
    with pytest.raises(PipelinkError) as caught:
        evaluate(expr, {"TM": 1})
    (found,) = caught.value.diagnostics
    assert (found.code, found.labels[0].span) == ("PL0031", Span("c.yaml", 3, 14, 2))
    assert name_span(expr, "WG") == Span("c.yaml", 3, 14, 2)


def test_names_are_those_with_values() -> None:
    assert names("sizeof(T) * M + ceildiv(a, 2) + sizeof(bf16)") == {"T", "M", "a"}
