"""Work that fails on nouns read from a file is a finding about the file, however it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.bad_input import reporting_bad_input

NOTHING: list[int] = []
FAILURES: dict[str, Callable[[], object]] = {
    "no such key": lambda: {}["a"],
    "no such item": lambda: NOTHING[3],
    "no next": lambda: next(iter(NOTHING)),
    "no next inside a generator": lambda: list(firsts()),
    "no such attribute": lambda: NOTHING.places,  # type: ignore[attr-defined]
    "too deep": lambda: deep(0),
    "division": lambda: 1 // 0,
}


def firsts() -> Iterator[int]:
    yield next(iter(NOTHING))


def deep(level: int) -> int:
    return deep(level + 1)


def broken() -> Iterator[int]:
    yield 1
    raise RuntimeError("lost")


@pytest.mark.parametrize("work", FAILURES.values(), ids=FAILURES)
def test_it_is_a_finding_about_the_file(work: Callable[[], object]) -> None:
    with pytest.raises(PipelinkError) as refused, reporting_bad_input("x.program.json"):
        work()
    finding = refused.value.diagnostics[0]
    assert finding.code == "PL0011"
    assert finding.labels[0].span.file == "x.program.json"


def test_our_own_mistakes_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="lost"), reporting_bad_input("x.program.json"):
        list(broken())
    monkeypatch.setenv("PIPELINK_TRACEBACK", "1")
    with pytest.raises(RuntimeError), reporting_bad_input("x.program.json"):
        list(firsts())
