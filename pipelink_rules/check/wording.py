"""Words that findings share."""

from __future__ import annotations

from pipelink_rules.diagnostics.diagnostic import Label
from pipelink_rules.model.source_span import Span


def count(number: int, word: str) -> str:
    """`1 stage`, `2 stages`."""
    return f"{number} {word}" + ("" if number == 1 else "s")


def labels(*places: tuple[Span | None, str] | None) -> tuple[Label, ...]:
    """Labels of the places that are known; a place that is given twice keeps its first words."""
    found: dict[Span, Label] = {}
    for place in places:
        if place is not None and place[0] is not None:
            found.setdefault(place[0], Label(place[0], place[1]))
    return tuple(found.values())
