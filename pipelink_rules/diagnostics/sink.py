"""The diagnostics of one pass, collected so that all of them are reported together."""

from collections.abc import Iterable
from typing import Unpack

from pipelink_rules.diagnostics.diagnostic import (
    Clauses,
    Diagnostic,
    Location,
    PipelinkError,
    known_labels,
)


class DiagnosticSink:
    """A growing list of diagnostics."""

    def __init__(self) -> None:
        self.items: list[Diagnostic] = []

    def add(
        self, code: str, message: str, *locations: Location, **clauses: Unpack[Clauses]
    ) -> None:
        """Adds one diagnostic; a place that is not known is left out."""
        self.items.append(Diagnostic(code, message, tuple(known_labels(locations)), **clauses))

    def extend(self, items: Iterable[Diagnostic]) -> None:
        """Adds the diagnostics of another pass."""
        self.items += items

    def raise_if_any(self) -> None:
        """Raises PipelinkError with all diagnostics, if there are any."""
        if self.items:
            raise PipelinkError(self.items)
