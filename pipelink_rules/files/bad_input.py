"""What if a file is well formed and contradicts itself?  Then that is a finding about the file.

A stage may be entered from a file that somebody edited.  The nouns in it refer to each other by
name, and the stages rely on that; where a name leads nowhere, or a number is none that a stage can
work with, the stage fails in the middle.  At the edge that is a finding about the file.
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
    """Work on nouns that were read from these files.

    PL0011 where the work fails for another reason than a finding; findings without a place get
    the first file.  With PIPELINK_TRACEBACK=1 in the environment failures are left as they are.
    """
    try:
        yield
    except PipelinkError as problem:
        problem.diagnostics = tuple(_placed(item, path) for item in problem.diagnostics)
        raise
    except (*_FAILURES, RuntimeError) as problem:
        # A generator hands StopIteration on as the cause of a RuntimeError.
        if not isinstance(problem, _FAILURES) and not isinstance(problem.__cause__, StopIteration):
            raise
        if os.environ.get("PIPELINK_TRACEBACK") == "1":
            raise
        raise PipelinkError(_contradiction(problem, path, others)) from None


def _placed(item: Diagnostic, path: str | Path) -> Diagnostic:
    """Findings of the toolkit and of the GPU are about no file."""
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
