"""The launcher's expressions: values as Python has them, and nothing beyond the language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelink_rules.expression.evaluate import names_in, solve_for, value_of
from pipelink_rules.expression.parse import ExpressionError

NUMBERS = st.integers(-50, 50)


def expressions() -> st.SearchStrategy[str]:
    leaf = st.one_of(st.sampled_from(["M", "N"]), st.integers(0, 20).map(str))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%", "<", "=="]), inner).map(
                lambda t: f"({t[0]} {t[1]} {t[2]})"
            ),
            st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
                lambda t: f"{t[0]}({t[1]}, {t[2]})"
            ),
            inner.map(lambda text: f"(not {text})"),
        ),
        max_leaves=8,
    )


@given(expressions(), NUMBERS, NUMBERS)
def test_agrees_with_python(text: str, m: int, n: int) -> None:
    try:
        wanted = int(eval(text, {"__builtins__": {"min": min, "max": max}}, {"M": m, "N": n}))
    except ZeroDivisionError:
        with pytest.raises(ExpressionError):
            value_of(text, {"M": m, "N": n})
        return
    assert value_of(text, {"M": m, "N": n}) == wanted


def test_functions() -> None:
    assert value_of("ceildiv(M, 128) * 2", {"M": 129}) == 4
    assert value_of("sizeof(bf16) * K", {"K": 3}) == 6
    assert value_of("M > 0 and N % 8 == 0 or K < 1", {"M": 1, "N": 8, "K": 5}) == 1
    assert value_of("1 < M <= 4", {"M": 4}) == 1
    assert names_in("min(M, sizeof(f32)) + ceildiv(N, 2)") == {"M", "N"}


@pytest.mark.parametrize(
    "text",
    ["__import__('os')", "M.real", "M ** 9", "M[0]", "lambda: 1", "1.5", "'x'", "M if M else 1",
     "open(M)", "min(M)", "[M]", "M +", "True", "sizeof(M)", "(" * 400],
)  # fmt: skip
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        value_of(text, {"M": 1})


def test_a_name_without_value() -> None:
    with pytest.raises(ExpressionError, match="`Q` has no value"):
        value_of("Q + 1", {})


@given(st.integers(1, 40), st.integers(-20, 20), NUMBERS)
def test_affine_expressions_are_solved(slope: int, offset: int, value: int) -> None:
    text = f"{slope} * X + {offset}"
    assert solve_for(text, "X", slope * value + offset) == value
    if slope > 1:
        assert solve_for(text, "X", slope * value + offset + 1) is None


def test_what_is_not_affine_is_left() -> None:
    assert solve_for("X // 2", "X", 3) is None
