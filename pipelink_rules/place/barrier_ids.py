"""Which ids may named barriers have, and which does each get without a search?"""

from __future__ import annotations

from collections.abc import Mapping

from pipelink_rules.model.placement import PlacementProblem
from pipelink_rules.model.target import TARGETS


def ids(problem: PlacementProblem) -> list[int]:
    """The named-barrier ids that may be given out."""
    count = TARGETS[problem.target].named_barriers
    return [number for number in range(count) if number not in problem.reserved_barriers]


def lowest_ids(
    problem: PlacementProblem, fixed: Mapping[str, int] | None = None
) -> dict[str, int | None]:
    """Each barrier in turn, earliest phase first, at the lowest id free in its phases; None: none.

    Optimal where no barrier pauses between phases.
    """
    given: dict[str, int | None] = dict(fixed or {})
    masks = {need.name: need.phases for need in problem.barriers}
    for name in id_order(problem):
        if name not in given:
            taken = {given[other] for other in given if masks[other] & masks[name]}
            given[name] = next((number for number in ids(problem) if number not in taken), None)
    return given


def id_order(problem: PlacementProblem) -> list[str]:
    """Named barriers in the order in which their ids are made as small as possible."""
    ordered = sorted(problem.barriers, key=lambda need: (need.phases & -need.phases, need.name))
    return [need.name for need in ordered]
