"""The findings of one pass, collected so that all of them are reported at once."""

from __future__ import annotations

from collections.abc import Iterable

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.model.source_span import Span

Place = Span | Label | tuple[Span | None, str] | None


class Findings:
    """A growing list of diagnostics; a place that is not known is left out."""

    def __init__(self) -> None:
        self.items: list[Diagnostic] = []

    def add(self, code: str, message: str, *places: Place, **clauses: object) -> None:
        """Adds one finding; each place is a span, or a span with what is to be said about it."""
        labels = []
        for place in places:
            if isinstance(place, tuple) and place[0] is not None:
                labels.append(Label(place[0], place[1]))
            elif isinstance(place, Span):
                labels.append(Label(place))
            elif isinstance(place, Label):
                labels.append(place)
        self.items.append(Diagnostic(code, message, tuple(labels), **clauses))  # type: ignore[arg-type]

    def extend(self, items: Iterable[Diagnostic]) -> None:
        """Adds findings of another pass."""
        self.items += items

    def stop(self) -> None:
        """Raises what was found, if anything."""
        if self.items:
            raise PipelinkError(self.items)
