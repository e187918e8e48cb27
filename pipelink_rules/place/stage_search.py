"""The best stage counts and offsets where all allocations are live together, without a solver.

Stage counts are tried in the order of the objective (`objective`), best first; arithmetic excludes
most of them, an exact search for a layout (`stacking`) decides the others.  What the budget of that
search leaves open is not proved best.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipelink_rules.model.placement import PlacementProblem, StageVariable
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import stacking
from pipelink_rules.place.greedy import at_level, layout, stage_classes
from pipelink_rules.place.rectangles import (
    admits,
    column_rectangles,
    columns_fit,
    minimum_stages,
    rectangles,
    rows,
)
from pipelink_rules.place.stacking import Exhausted, Steps

MOST = 100  # allocations; the search nests as deep
Counts = dict[str, int]


@dataclass
class Stacked:
    """Stage counts and offsets, and the objectives that the budget cut short."""

    stages: Counts
    offsets: dict[str, int]
    unproved: tuple[str, ...]


def applies(problem: PlacementProblem) -> bool:
    """Return whether all allocations of the problem are live together."""
    items = rectangles(problem, minimum_stages(problem))
    columns = column_rectangles(problem, minimum_stages(problem))
    limit = TARGETS[problem.target].shared_limit(problem.occupancy)
    together = len({need.lifetimes for need in columns}) <= 1
    return together and len(items) <= MOST and stacking.stackable(items, limit)


def best(problem: PlacementProblem) -> Stacked | None:
    """Return the best stage counts and offsets, None if there are none; Exhausted if unknown."""
    search = _StageSearch(problem)
    if not search.accept(minimum_stages(problem), Steps()):
        return None
    for group in stage_classes(problem):
        search.raise_together(group)
        search.raise_single(group)
    sizes = rectangles(problem, search.stages)
    offsets, proved = stacking.lowest(sizes, search.limit, search.offsets, Steps())
    left_open = (("stages", search.proved), ("offsets", proved))
    return Stacked(search.stages, offsets, tuple(step for step, done in left_open if not done))


class _StageSearch:
    """The best counts so far, and their layout."""

    def __init__(self, problem: PlacementProblem) -> None:
        self.problem, self.form = problem, rows(problem)
        self.limit = TARGETS[problem.target].shared_limit(problem.occupancy)
        self.stages: Counts = {}
        self.offsets: dict[str, int] = {}
        self.budget, self.proved = Steps(), True

    def accept(self, counts: Counts, budget: Steps) -> bool:
        """Return whether a layout of these counts exists; they become the best ones."""
        if not self._may_fit(counts):
            return False
        items = rectangles(self.problem, counts)
        offsets, height = layout(items, self.limit, rounds=0)
        found = offsets if height <= self.limit else None
        if found is None:
            found = stacking.stack(items, self.limit, {}, budget)
        if found is None:
            return False
        self.stages, self.offsets = counts, found
        return True

    def _may_fit(self, counts: Mapping[str, int]) -> bool:
        return admits(self.form, counts, self.limit) and columns_fit(
            self.problem, counts, self.problem.occupancy
        )

    def try_counts(self, counts: Counts) -> bool:
        """Accept the counts if that is decided within the budget."""
        try:
            return self.accept(counts, self.budget.part())
        except Exhausted:
            self.proved = False
            return False

    def raise_together(self, group: Sequence[StageVariable]) -> None:
        """Raise the smallest count of a class as far as possible."""
        for level in range(max(s.maximum for s in group), min(s.minimum for s in group), -1):
            if self.try_counts({**self.stages, **at_level(group, level)}):
                return

    def raise_single(self, group: Sequence[StageVariable]) -> None:
        """Raise the sum of the counts of a class, then the counts in the order of names."""
        for counts in self._raised(group):
            if self.try_counts(counts):
                return

    def _raised(self, group: Sequence[StageVariable]) -> Iterator[Counts]:
        """Yield counts above the current ones by falling sum, then by falling counts by name."""
        base = dict(self.stages)
        row = max(self.form, key=lambda row: row.at(base))  # others are of empty lifetimes
        cost = dict(row.coefficients)
        costs = [cost.get(s.name, 0) for s in group]
        more = [s.maximum - base[s.name] for s in group]
        room = self.limit - row.at(base)
        most = _most(sorted(zip(costs, more, strict=True)), room)
        for total in range(most, 0, -1):
            for steps in _splits(total, costs, more, room):
                counts = {s.name: base[s.name] + by for s, by in zip(group, steps, strict=True)}
                if not self._spend():
                    return
                yield {**base, **counts}

    def _spend(self) -> bool:
        try:
            self.budget.take()
        except Exhausted:
            self.proved = False
        return self.budget.left > 0


def _most(offers: Sequence[tuple[int, int]], room: int) -> int:
    """Return how many units fit into the room; offers: (cost, units), the cheapest first."""
    count = 0
    for cost, units in offers:
        taken = min(units, room // cost) if cost else units
        count, room = count + taken, room - taken * cost
        if taken < units:
            break
    return count


def _splits(
    total: int, costs: Sequence[int], more: Sequence[int], room: int
) -> Iterator[tuple[int, ...]]:
    """Yield how to take `total` units within the room, the most of the first offer first."""
    if not costs:
        if not total:
            yield ()
        return
    rest = sorted(zip(costs[1:], more[1:], strict=True))
    for first in range(min(total, more[0]), -1, -1):
        left = room - first * costs[0]
        if left >= 0 and _most(rest, left) >= total - first:
            for others in _splits(total - first, costs[1:], more[1:], left):
                yield (first, *others)
