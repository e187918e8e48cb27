"""What a command or a build action makes of exceptions: diagnostics with a place, or PL9901.

Files are validated when they are read, so whatever else fails is a mistake of PipeLink and is
reported as one.  With PIPELINK_TRACEBACK=1 in the environment such exceptions are left as they are.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError, error
from pipelink_rules.model.source_span import Span

_ABOUT_NO_FILE = ("PL12", "PL14", "PL99")  # the toolkit, the GPU, PipeLink itself


@contextmanager
def reporting_internal_errors(command: str, *files: str) -> Iterator[None]:
    """Raise PipelinkError whatever fails; PL9901 for all but diagnostics and BrokenPipeError.

    files: what is read; diagnostics without a place get the first of them.
    """
    try:
        yield
    except PipelinkError as problem:
        if files:
            problem.diagnostics = tuple(_placed(item, files[0]) for item in problem.diagnostics)
        raise
    except BrokenPipeError:
        raise
    except Exception as problem:
        if os.environ.get("PIPELINK_TRACEBACK") == "1":
            raise
        kind = type(problem).__name__
        again = f"PIPELINK_TRACEBACK=1 {command} ..."
        raise error(
            "PL9901",
            f"internal error in `{command}`: {kind}",
            found=str(problem)[:300] or kind,
            suggestions=(f"report it with the input file and the output of `{again}`",),
            subject=command,
        ) from problem


def _placed(item: Diagnostic, file: str) -> Diagnostic:
    if item.labels or item.code.startswith(_ABOUT_NO_FILE):
        return item
    return replace(item, labels=(Label(Span(file)),))
