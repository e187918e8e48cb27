"""What can stay where it was?  Offsets and ids of a previous placement, kept where that is free.

An item that existed before (same name) moves if its offset changes, and then costs all its bytes.
Stages and registers come first: nothing is kept that would cost a stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipelink_rules.model.placement import Placement, PlacementProblem
from pipelink_rules.place.allocation_sizes import Rectangle, minimum_stages, rectangles
from pipelink_rules.place.barrier_ids import ids
from pipelink_rules.place.greedy import canonical_order
from pipelink_rules.place.objective import Search
from pipelink_rules.place.smtlib import Encoding
from pipelink_rules.place.solver import Bound, equal


def keepable_offsets(
    problem: PlacementProblem, previous: Placement | None, limit: int
) -> dict[str, int]:
    """Offsets of the previous placement that are legal for the item of that name today."""
    if previous is None:
        return {}
    before = dict(previous.offsets)
    return {
        item.name: before[item.name]
        for item in rectangles(problem, minimum_stages(problem))
        if item.name in before
        and before[item.name] % item.align == 0
        and 0 <= before[item.name] <= limit - item.bytes
    }


def keepable_ids(problem: PlacementProblem, previous: Placement | None) -> dict[str, int]:
    """Ids of the previous placement that do not contradict each other today."""
    if previous is None:
        return {}
    before, allowed = dict(previous.named), set(ids(problem))
    kept: dict[str, int] = {}
    phases = {barrier.name: barrier.phases for barrier in problem.barriers}
    for name in sorted(phases):
        number = before.get(name)
        if number in allowed and not any(
            kept[other] == number and phases[other] & phases[name] for other in kept
        ):
            kept[name] = number
    return kept


def keep_offsets(
    search: Search,
    encoding: Encoding,
    keep: Mapping[str, int],
    sizes: Sequence[Rectangle],
) -> dict[str, int]:
    """Settles which items stay, so that the fewest bytes move; returns the offsets that stay."""
    if not keep:
        return {}
    items = {item.name: item for item in sizes}
    flags = {encoding.moved[name]: items[name].bytes for name in keep}
    stay = [equal(flag, 0) for flag in flags]
    if search.ask("moved bytes", stay):
        search.session.require(stay)
        return dict(keep)
    terms = tuple(flags.items())
    while search.ask("moved bytes", [Bound(terms, "<=", search.total(flags) - 1)]):
        pass
    search.session.require([Bound(terms, "<=", search.total(flags))])
    kept: dict[str, int] = {}
    for item in sorted((items[name] for name in keep), key=canonical_order):
        flag = encoding.moved[item.name]
        stays = search.values[flag] == 0 or search.ask("moved bytes", [equal(flag, 0)])
        search.session.require([equal(flag, 0 if stays else 1)])
        if stays:
            kept[item.name] = keep[item.name]
    return kept


def keep_ids(search: Search, encoding: Encoding, keep: Mapping[str, int]) -> dict[str, int]:
    """Settles the ids that stay: all that can, or none where they leave no id for a new one."""
    stay = [equal(encoding.named[name], number) for name, number in sorted(keep.items())]
    if not stay or not search.ask("", stay):
        return {}
    search.session.require(stay)
    return dict(keep)
