"""Reports failures on well-formed files that contradict themselves as errors of those files.

A stage may be rerun from a saved file that was edited.  Its parts refer to each other by name, and
the stages rely on that.  If a name is unknown or a number invalid, the stage fails with an
exception, which is reported here as an error of the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.model.source_span import Span

_FAILURES = (
    *(ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError),
    *(StopIteration, TypeError, ValueError),
)
_ELSEWHERE = ("PL12", "PL14", "PL99")


@contextmanager
def reporting_bad_input(path: str | Path, *others: str | Path) -> Iterator[None]:
    """Run a block on stage data that was read from these files.

    Raise PL0011 for exceptions other than diagnostics; diagnostics without a location get the
    first file.  With PIPELINK_TRACEBACK=1 in the environment exceptions pass unchanged.
    """
    try:
        yield
    except PipelinkError as problem:
        problem.diagnostics = tuple(_placed(item, path) for item in problem.diagnostics)
        raise
    except (*_FAILURES, RuntimeError) as problem:
        # A generator converts StopIteration to the cause of a RuntimeError.
        if not isinstance(problem, _FAILURES) and not isinstance(problem.__cause__, StopIteration):
            raise
        if os.environ.get("PIPELINK_TRACEBACK") == "1":
            raise
        raise PipelinkError(_contradiction(problem, path, others)) from None


def _placed(item: Diagnostic, path: str | Path) -> Diagnostic:
    """Return the diagnostic with a location, unless it is about the toolkit or the GPU."""
    if item.labels or item.code.startswith(_ELSEWHERE):
        return item
    return replace(item, labels=(Label(Span(str(path))),))


def _contradiction(
    problem: Exception, path: str | Path, others: tuple[str | Path, ...]
) -> Diagnostic:
    name = Path(path).name
    more = tuple(Label(Span(str(item)), "read with it") for item in others)
    if isinstance(problem, KeyError):
        reason = f"unknown name {_word(problem)}"
    else:
        reason = f"{type(problem).__name__}: {str(problem)[:200]}".rstrip(": ")
    return Diagnostic(
        "PL0011",
        f"{name} contradicts itself" + (", or the files beside it" if others else ""),
        (Label(Span(str(path))), *more),
        expected="a file that PipeLink wrote",
        found=reason,
        suggestions=(
            "delete the file and run scons again",
            "or, if it was not edited, report this with the output of PIPELINK_TRACEBACK=1",
        ),
        subject=str(path),
    )


def _word(problem: KeyError) -> str:
    key = problem.args[0] if problem.args else ""
    return f"`{'.'.join(map(str, key)) if isinstance(key, tuple) else key}`"[:200]
