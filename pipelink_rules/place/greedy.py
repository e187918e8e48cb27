"""Greedy layout, stage counts and barrier ids: the hints that make the solver fast.

No result is final: a problem without a greedy layout may still have one.
"""

import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from pipelink_rules.model.placement import PlacementProblem, StageVariable
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place.rectangles import (
    Rectangle,
    admits,
    bound,
    minimum_stages,
    rectangles,
    round_up,
    rows,
)

Key = Callable[[Rectangle], tuple[int | str, ...]]


def canonical_order(rectangle: Rectangle) -> tuple[int | str, ...]:
    """Return the order in which offsets are made as small as possible: big alignments first."""
    return (-rectangle.align, -rectangle.bytes, -rectangle.span, rectangle.name)


ORDERS: tuple[Key, ...] = (
    canonical_order,
    lambda r: (-r.align, -r.span, -r.bytes, r.name),
    lambda r: (-r.align, -r.span * r.bytes, r.name),
    lambda r: (r.lifetimes & -r.lifetimes, -r.bytes, r.name),
)


def first_fit(
    order: Iterable[Rectangle], fixed: Mapping[str, int] | None = None, best: bool = False
) -> tuple[dict[str, int], int]:
    """Place each rectangle in turn at its lowest free offset, or in the tightest hole.

    Return (offsets, height).  Rectangles named in `fixed` are placed there before all others.
    """
    items = list(order)
    fixed = fixed or {}
    offsets = {item.name: fixed[item.name] for item in items if item.name in fixed}
    taken = sorted(
        (offsets[item.name], offsets[item.name] + item.bytes, item.lifetimes)
        for item in items
        if item.name in offsets
    )
    for item in items:
        if item.name in offsets:
            continue
        start = _slot(item, taken, best)
        offsets[item.name] = start
        bisect.insort(taken, (start, start + item.bytes, item.lifetimes))
    return offsets, max((end for _, end, _ in taken), default=0)


def _slot(item: Rectangle, taken: Sequence[tuple[int, int, int]], best: bool) -> int:
    top, chosen, slack = 0, None, None
    for low, high, phases in taken:
        if not phases & item.lifetimes:
            continue
        start = round_up(top, item.align)
        if start + item.bytes <= low:
            if not best:
                return start
            if slack is None or low - top - item.bytes < slack:
                chosen, slack = start, low - top - item.bytes
        top = max(top, high)
    return round_up(top, item.align) if chosen is None else chosen


def layout(items: Sequence[Rectangle], limit: int, rounds: int = 40) -> tuple[dict[str, int], int]:
    """Return the lowest layout of several orders, then of repeated runs that place the top first.

    The search stops at the first layout within `limit` in canonical order, else at the lower bound.
    """
    floor, _ = bound(items)
    found = first_fit(sorted(items, key=canonical_order))
    if found[1] <= limit:
        return found
    for key in ORDERS:
        for tightest in (False, True):
            attempt = first_fit(sorted(items, key=key), best=tightest)
            if attempt[1] < found[1]:
                found = attempt
            if found[1] <= max(floor, limit):
                return found
    return _squeaky(items, limit, rounds, found)


def _squeaky(
    items: Sequence[Rectangle], limit: int, rounds: int, found: tuple[dict[str, int], int]
) -> tuple[dict[str, int], int]:
    by_name = {item.name: item for item in items}
    for key in ORDERS[:3]:
        rank = {item.name: 1000 * place for place, item in enumerate(sorted(items, key=key))}
        for _ in range(rounds):
            ranked = sorted(items, key=lambda item: (rank[item.name], item.name))
            offsets, height = first_fit(ranked)
            if height < found[1]:
                found = (offsets, height)
            if height <= limit:
                return found
            for name, start in offsets.items():
                if (start + by_name[name].bytes) * 50 > height * 49:
                    rank[name] = rank[name] * 3 // 5 - 1000
    return found


def stage_classes(problem: PlacementProblem) -> list[list[StageVariable]]:
    """Return stage variables by priority, inside a class by name."""
    classes: dict[int, list[StageVariable]] = {}
    for stage in sorted(problem.stages, key=lambda stage: stage.name):
        classes.setdefault(stage.priority, []).append(stage)
    return [classes[priority] for priority in sorted(classes)]


def at_level(group: Iterable[StageVariable], level: int) -> dict[str, int]:
    """Return the counts of stage variables at one level, each within its range."""
    return {s.name: max(s.minimum, min(level, s.maximum)) for s in group}


def suggest_stages(
    problem: PlacementProblem, limit: int, columns_fit: Callable[[Mapping[str, int]], bool]
) -> tuple[dict[str, int], dict[str, int]]:
    """Return stage counts, increased while a greedy layout exists, and that layout."""
    form = rows(problem)
    cost: dict[str, int] = defaultdict(int)  # bytes per stage
    for item in problem.items:
        cost[item.channel] += item.bytes
    stages = minimum_stages(problem)
    offsets, height = layout(rectangles(problem, stages), limit)
    if height > limit:
        return stages, offsets

    def accept(raised: dict[str, int]) -> bool:
        nonlocal stages, offsets
        if raised == stages or not admits(form, raised, limit) or not columns_fit(raised):
            return False
        attempt, top = layout(rectangles(problem, raised), limit)
        if top > limit:
            return False
        stages, offsets = raised, attempt
        return True

    for group in stage_classes(problem):
        for level in range(max(s.maximum for s in group), min(s.minimum for s in group), -1):
            if accept({**stages, **at_level(group, level)}):
                break
        for stage in sorted(group, key=lambda s: (cost[s.name], s.name)):
            for level in range(stage.maximum, stages[stage.name], -1):
                if accept({**stages, stage.name: level}):
                    break
    return stages, offsets


def ids(problem: PlacementProblem) -> list[int]:
    """Return the named-barrier ids that may be assigned."""
    count = TARGETS[problem.target].named_barriers
    return [number for number in range(count) if number not in problem.reserved_barriers]


def lowest_ids(
    problem: PlacementProblem, fixed: Mapping[str, int] | None = None
) -> dict[str, int | None]:
    """Assign each barrier, earliest lifetime first, the lowest id free in its lifetimes, or None.

    Optimal if the lifetimes of every barrier are consecutive.
    """
    assigned: dict[str, int | None] = dict(fixed or {})
    masks = {need.name: need.lifetimes for need in problem.barriers}
    for name in id_order(problem):
        if name not in assigned:
            used = {assigned[other] for other in assigned if masks[other] & masks[name]}
            assigned[name] = next((number for number in ids(problem) if number not in used), None)
    return assigned


def id_order(problem: PlacementProblem) -> list[str]:
    """Return named barriers in the order in which their ids are made as small as possible."""
    first = {need.name: need.lifetimes & -need.lifetimes for need in problem.barriers}
    return sorted(first, key=lambda name: (first[name], name))
