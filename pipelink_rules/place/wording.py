"""How do findings of the placement speak of a problem?  Labels, phases and limits in words."""

from __future__ import annotations

from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.placement import PlacementProblem

SHOWN = 8  # holders listed one by one


def per_sm(problem: PlacementProblem) -> str:
    """`sm_90a, 2 CTAs per SM`."""
    return f"{problem.target}, {plural(problem.occupancy, 'CTA')} per SM"


def lifetime_name(problem: PlacementProblem, index: int) -> str:
    """A phase as it is quoted."""
    return f"phase `{problem.lifetimes[index]}`"
