"""How do findings of the placement speak of a problem?  Labels, phases and limits in words."""

from __future__ import annotations

from pipelink_rules.diagnostics.diagnostic import Label
from pipelink_rules.model.placement import PlacementProblem
from pipelink_rules.model.source_span import Span

SHOWN = 8  # holders listed one by one


def labels(*places: tuple[Span | None, str]) -> tuple[Label, ...]:
    """The places that are known, with what is said of them."""
    return tuple(Label(span, text) for span, text in places if span is not None)


def per_sm(problem: PlacementProblem) -> str:
    """`sm_90a, 2 CTAs per SM`."""
    return f"{problem.target}, {count(problem.occupancy, 'CTA')} per SM"


def phase_name(problem: PlacementProblem, index: int) -> str:
    """A phase as it is quoted."""
    return f"phase `{problem.phases[index]}`"


def count(number: int, noun: str) -> str:
    """`1 stage`, `2 stages`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
