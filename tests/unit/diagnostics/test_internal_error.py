"""Commands and build actions raise diagnostics; any other exception is an internal error."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError, error
from pipelink_rules.diagnostics.internal_error import reporting_internal_errors
from pipelink_rules.model.source_span import Span

NOTHING: list[int] = []
FAILURES: dict[str, Callable[[], object]] = {
    "no such key": lambda: {}["a"],
    "no such item": lambda: NOTHING[3],
    "no next": lambda: next(iter(NOTHING)),
    "no next inside a generator": lambda: list(firsts()),
    "no such attribute": lambda: NOTHING.places,  # type: ignore[attr-defined]
    "too deep": lambda: deep(0),
    "division": lambda: 1 // 0,
    "any other": lambda: list(broken()),
}


def firsts() -> Iterator[int]:
    yield next(iter(NOTHING))


def deep(level: int) -> int:
    return deep(level + 1)


def broken() -> Iterator[int]:
    yield 1
    raise RuntimeError("lost")


@pytest.mark.parametrize("work", FAILURES.values(), ids=FAILURES)
def test_an_exception_is_an_internal_error(work: Callable[[], object]) -> None:
    """Never one of the file: that was validated when it was read."""
    with (
        pytest.raises(PipelinkError) as caught,
        reporting_internal_errors("pipelink map", "x.program.json"),
    ):
        work()
    (found,) = caught.value.diagnostics
    assert found.code == "PL9901" and not found.labels
    assert "PIPELINK_TRACEBACK=1 pipelink map" in found.suggestions[0]
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("work", FAILURES.values(), ids=FAILURES)
def test_the_traceback_is_shown_on_request(
    work: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIPELINK_TRACEBACK", "1")
    with pytest.raises(Exception) as caught, reporting_internal_errors("pipelink map", "x"):
        work()
    assert not isinstance(caught.value, PipelinkError)


def test_a_closed_pipe_is_no_error() -> None:
    with pytest.raises(BrokenPipeError), reporting_internal_errors("pipelink map"):
        raise BrokenPipeError


def test_a_diagnostic_without_a_place_gets_the_file() -> None:
    with (
        pytest.raises(PipelinkError) as caught,
        reporting_internal_errors("pipelink map", "x.program.json", "y"),
    ):
        raise PipelinkError((Diagnostic("PL0101", "m"), Diagnostic("PL1201", "m")))
    placed, toolkit = caught.value.diagnostics
    assert placed.labels == (Label(Span("x.program.json")),) and not toolkit.labels
    with pytest.raises(PipelinkError) as caught, reporting_internal_errors("pipelink map", "x"):
        raise error("PL0101", "m", Span("a.yaml", 3, 1))
    assert caught.value.diagnostics[0].labels[0].span.file == "a.yaml"
