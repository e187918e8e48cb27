"""Decisions about expressions against brute force on small domains, by every way to decide."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelink_rules.expression.evaluate import value_of
from pipelink_rules.expression.normal_form import normal_form
from pipelink_rules.expression.parse import DivisionByZero, ExpressionError, parse
from pipelink_rules.model.contract import Symbol
from pipelink_rules.model.source_span import Expr
from pipelink_rules.solver import decide
from pipelink_rules.solver.decide import Answer, Domain, always, equal, lowest
from pipelink_rules.solver.value_sets import Unbounded, ValueSet, values_of

INT32 = Domain()
TILES = Domain(
    (Symbol("K", 1, 2**31 - 1, 8), Symbol("k_blocks", 0)),
    (("k_blocks", Expr("ceildiv(K, 64)")),),
)


def expressions() -> st.SearchStrategy[str]:
    leaves = st.integers(0, 9).map(str) | st.sampled_from(["a", "a", "b", "b", "d"])
    signs = ["+", "-", "*", "//", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or"]

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        binary = st.tuples(inner, st.sampled_from(signs), inner).map(
            lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
        )
        calls = st.tuples(st.sampled_from(["ceildiv", "min", "max"]), inner, inner).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        )
        return binary | calls | inner.map("(-{})".format) | inner.map("(not {})".format)

    return st.recursive(leaves, grow, max_leaves=6)


@st.composite
def domains(draw: st.DrawFn) -> Domain:
    symbols = []
    for name in ("a", "b"):
        low = draw(st.integers(0, 3))
        symbols.append(Symbol(name, low, low + draw(st.integers(0, 5)), draw(st.integers(1, 3))))
    conditions = draw(st.lists(expressions().map(Expr), max_size=1))
    value = draw(st.sampled_from(["ceildiv(a, 2)", "a + b", "a // b", "3"]))
    symbols.append(Symbol("d", draw(st.integers(0, 2)), draw(st.integers(3, 9))))
    return Domain(tuple(symbols), (("d", Expr(value)),), tuple(("", item) for item in conditions))


def value(text: str, env: dict[str, int]) -> int | None:
    try:
        return value_of(text, env)
    except DivisionByZero:
        return None


def points(domain: Domain, *texts: str) -> list[dict[str, int]]:
    """All points of a domain, by brute force; only the names that matter are restricted."""
    conditions = [item for _, item in domain.conditions]
    used = set().union(*(decide._free(parse(text)) for text in texts))
    while True:
        more = set(used)
        if "d" in used:
            more |= decide._free(parse(str(domain.values[0][1])))
        for item in conditions:
            if decide._free(parse(str(item))) & more:
                more |= decide._free(parse(str(item)))
        if more == used:
            break
        used = more
    ranges = [
        [v for v in range(s.minimum, s.maximum + 1) if v % s.multiple_of == 0 or s.name not in used]
        for s in domain.symbols[:2]
    ]
    found = []
    for a, b in itertools.product(*ranges):
        env = {"a": a, "b": b}
        if "d" in used:
            d = value(str(domain.values[0][1]), env)
            if d is None or not domain.symbols[2].minimum <= d <= domain.symbols[2].maximum:
                continue
            env["d"] = d
        mine = [item for item in conditions if decide._free(parse(str(item))) & used]
        if all(value(str(item), env) for item in mine):
            found.append(env)
    return found


WAYS = {"all points": 4096, "z3": 0}


@pytest.mark.parametrize("way", WAYS)
@settings(deadline=None)
@given(expressions(), expressions(), domains())
def test_equal_is_what_brute_force_finds(way: str, a: str, b: str, domain: Domain) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decide, "MOST_POINTS", WAYS[way])
        _compare(equal(a, b, domain), domain, a, b)


@pytest.mark.parametrize("way", WAYS)
@settings(deadline=None)
@given(expressions(), domains())
def test_always_is_what_brute_force_finds(way: str, text: str, domain: Domain) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decide, "MOST_POINTS", WAYS[way])
        answer = always(text, domain)
    every = points(domain, text)
    holds = all(value(text, env) for env in every)
    assert answer.holds in (holds, None)
    if answer.holds is False:
        assert any(_within(answer, env) and not value(text, env) for env in every)


def _compare(answer: Answer, domain: Domain, a: str, b: str) -> None:
    every = points(domain, a, b)
    same = all(value(a, env) == value(b, env) for env in every)
    assert answer.holds in (same, None)
    if answer.holds is False:
        assert any(_within(answer, env) and value(a, env) != value(b, env) for env in every)


def _within(answer: Answer, env: dict[str, int]) -> bool:
    return all(env[name] == number for name, number in answer.case)


def test_z3_decides_nearly_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, "MOST_POINTS", 0)
    undecided: list[str] = []

    @settings(deadline=None, max_examples=200, derandomize=True, database=None)
    @given(expressions(), expressions())
    def run(a: str, b: str) -> None:
        if equal(a, b, Domain((Symbol("a", 0, 5), Symbol("b", 0, 5)))).holds is None:
            undecided.append(f"{a} and {b}")

    run()
    assert len(undecided) <= 4, undecided


@given(expressions(), st.integers(0, 4), st.integers(1, 4), st.integers(0, 9))
def test_a_set_of_values_contains_every_value(text: str, low: int, step: int, b: int) -> None:
    first = -(-low // step) * step
    names = {"a": ValueSet(first, first + 3 * step, step), "b": ValueSet(b, b, 0, b)}
    names["d"] = ValueSet(0, 2)
    try:
        found = values_of(parse(text), names)
    except (Unbounded, ExpressionError):
        return
    for a, d in itertools.product(range(first, first + 3 * step + 1, step), range(3)):
        number = value_of(text, {"a": a, "b": b, "d": d})
        assert found.low <= number <= found.high
        assert (number - found.rest) % found.step == 0 if found.step else number == found.rest


@given(expressions(), expressions(), st.lists(st.integers(-9, 9), min_size=3, max_size=3))
def test_one_normal_form_is_one_value(a: str, b: str, numbers: list[int]) -> None:
    env = dict(zip("abd", numbers, strict=True))
    forms = normal_form(parse(a)), normal_form(parse(f"({b}) - ({b}) + {a} * 1"))
    if None not in forms:
        assert forms[0] == forms[1]
    other = normal_form(parse(b))
    if forms[0] is not None and forms[0] == other:
        assert value(a, env) == value(b, env)


@pytest.mark.parametrize(
    ("a", "b", "domain", "case"),
    [
        ("min(k_blocks, 400000)", "k_blocks", TILES, {"K": 25_600_008, "k_blocks": 400_001}),
        ("min(k_blocks, 20)", "k_blocks", TILES, {"K": 1288, "k_blocks": 21}),
        ("k // 1048576", "0", INT32, {"k": 1_048_576}),
        ("k * (k != 123457)", "k", INT32, {"k": 123_457}),
        ("max(k - 7, 0)", "k", INT32, {"k": 1}),
        ("(k * k == 1524157875019052100) * 3", "0", INT32, {"k": 1_234_567_890}),
        ("(a % 1000003 == 77777) and b % 1009 == 5", "0", INT32, {"a": 77_777, "b": 5}),
        ("M // N * N + M % N", "M", INT32, {"M": 0, "N": 0}),
        ("min(a, b, 900000)", "min(a, b)", INT32, {"a": 900_001, "b": 900_001}),
        ("min(2147483646, k)", "k", INT32, {"k": 2_147_483_647}),
    ],
)
def test_unequal(a: str, b: str, domain: Domain, case: dict[str, int]) -> None:
    assert equal(a, b, domain) == Answer(False, tuple(case.items()))


@pytest.mark.parametrize(
    ("a", "b", "domain"),
    [
        ("k_blocks", " k_blocks", TILES),
        ("ceildiv(M, 128) * ceildiv(N, 256)", "ceildiv(N, 256) * ceildiv(M, 128)", INT32),
        ("min(k_blocks, 33554432)", "k_blocks", TILES),
        ("min(k, 20) + max(k - 20, 0)", "k", INT32),
        ("k // 2 + (k + 1) // 2", "k", INT32),
        ("ceildiv(ceildiv(M, 3), 5)", "ceildiv(M, 15)", INT32),
        ("min(a, b) + max(a, b)", "a + b", INT32),
        ("N // 8 * 8", "N", Domain((Symbol("N", 0, 2**31 - 1, 8),))),
        ("N // 8 * 8", "N", Domain(conditions=(("", Expr("N % 8 == 0")),))),
        ("x // y", "x // y", INT32),
        ("min(k, 20)", "k", Domain((Symbol("k", 0, 20),))),
        ("3", "4 - 1", INT32),
    ],
)
def test_equal(a: str, b: str, domain: Domain) -> None:
    assert equal(a, b, domain) == Answer(True)


def test_what_is_beyond_the_budget_is_undecided() -> None:
    assert equal("(a * a + a) // 2 * 2", "a * a + a") == Answer(None)


def test_usual_questions_need_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(decide, "Session")
    assert always("k_blocks >= 1", TILES).holds
    assert always("K * N * 2 % 16 == 0", TILES).holds
    assert equal("k_blocks", "k_blocks", TILES).holds
    assert equal("min(k_blocks, 20)", "k_blocks", TILES).holds is False
    assert lowest("rows * 8192", Domain((Symbol("rows", 1, 4),))) == 8192


def test_a_domain_without_a_value_allows_everything() -> None:
    empty = Domain((Symbol("N", 5, 7, 8),))
    assert equal("N", "N + 1", empty).holds and always("N < 0", empty).holds
