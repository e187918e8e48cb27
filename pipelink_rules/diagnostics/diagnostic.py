"""A finding, its report, and the exception that carries findings to the edge of the program."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipelink_rules.diagnostics.clean import lines, one_line
from pipelink_rules.model.source_span import Span


@dataclass(frozen=True)
class Label:
    """A place and what is said about it; the first label of a diagnostic is the primary one."""

    span: Span
    text: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", one_line(self.text))


@dataclass(frozen=True)
class Diagnostic:
    """One finding.  `message` is one line without a full stop; numbers are already substituted."""

    code: str  # "PL0202"
    message: str
    labels: tuple[Label, ...] = ()
    expected: str = ""  # what was expected
    found: str = ""  # what was found
    at_run_time: str = ""  # what would happen if it were linked anyway
    notes: tuple[str, ...] = ()
    trace: tuple[str, ...] = ()  # the cycle: who waits for whom, and why
    schedule: tuple[str, ...] = ()  # a shortest run into it, step by step
    helps: tuple[str, ...] = ()  # how to fix it, the smallest change first
    subject: str = ""  # the connection, role or resource: one finding per code and subject
    severity: str = "error"  # or "warning"

    def __post_init__(self) -> None:
        """Texts quote what users wrote: nothing of it may steer a terminal or break a line."""
        object.__setattr__(self, "message", one_line(self.message))
        for name in ("expected", "found", "at_run_time", "subject"):
            object.__setattr__(self, name, lines(getattr(self, name)))
        for name in ("notes", "trace", "schedule", "helps"):
            object.__setattr__(self, name, tuple(map(lines, getattr(self, name))))

    forced: str = ""  # why it is a warning here: the reason a declaration gives in allow=


class PipelinkError(Exception):
    """Findings that stop a stage.  Never shown as a traceback; the edge renders `diagnostics`."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic):
        found = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = found
        super().__init__("; ".join(f"{item.code}: {item.message}" for item in found))


def error(code: str, message: str, *spans: Span | Label | None, **clauses: object) -> PipelinkError:
    """The exception for a single finding: `raise error("PL0001", "...", span, helps=("...",))`."""
    labels = tuple(
        place if isinstance(place, Label) else Label(place) for place in spans if place is not None
    )
    return PipelinkError(Diagnostic(code, message, labels, **clauses))  # type: ignore[arg-type]
