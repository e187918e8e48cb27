"""Exact layouts of allocations that are all live together, without a solver.

Only the order in memory matters then: an allocation starts at the first aligned byte after the one
below it, and to start lower never hurts those above.  The search goes from the bottom up and drops
what has been tried: of two starts with the same allocations left, the higher one is no better.
Every start is a multiple of the smallest alignment, so that sizes are rounded up to it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pipelink_rules.place.greedy import canonical_order, first_fit
from pipelink_rules.place.rectangles import Rectangle, round_up

STEPS = 30_000  # of one placement; about 15 us each
QUESTION = 3_000  # of one question


class Exhausted(Exception):
    """The steps ended before the question was decided."""


@dataclass
class Steps:
    """Steps that searches may still take; counted instead of timed, to be repeatable."""

    left: int = STEPS

    whole: "Steps | None" = None

    def take(self) -> None:
        """Take a step; raise Exhausted if there is none left."""
        if self.whole:
            self.whole.take()
        if not self.left:
            raise Exhausted
        self.left -= 1

    def part(self) -> "Steps":
        """Return the budget of one question."""
        return Steps(QUESTION, self)


def stackable(items: Sequence[Rectangle], limit: int) -> bool:
    """Return whether the allocations share all lifetimes, and the limit is aligned as they are."""
    return len({item.lifetimes for item in items}) <= 1 and not limit % min(
        (item.align for item in items), default=1
    )


@dataclass
class _Filling:
    """Allocations to put into holes, from the lowest hole up."""

    items: list[tuple[int, int]]  # (rounded size, alignment), identical ones adjacent
    holes: list[tuple[int, int]]
    budget: Steps
    grid: int  # the largest alignment
    failed: dict[tuple[int, int], int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)  # index -> start

    def fill(self, left: int, hole: int, top: int, slack: int) -> bool:
        """Return whether the allocations in the mask `left` fit above `top` and in later holes.

        slack: bytes that may still be wasted.
        """
        if not left:
            return True
        if hole == len(self.holes):
            return False
        if self.failed.get((left, hole), 1 << 62) <= top:
            return False
        self.budget.take()
        end = self.holes[hole][1]
        seen: set[tuple[int, int]] = set()
        choices = []
        for index, (size, align) in enumerate(self.items):
            if left >> index & 1 and (size, align) not in seen:
                seen.add((size, align))
                start = round_up(top, align)
                gap, rest = start - top, -(start + size) % self.grid
                if gap <= slack and start + size <= end:
                    choices.append((rest, gap, -align, index))
        for _, gap, _, index in sorted(choices):  # those first after which anything fits
            self.starts[index] = top + gap
            if self.fill(left & ~(1 << index), hole, top + gap + self.items[index][0], slack - gap):
                return True
        if end - top <= slack and hole + 1 < len(self.holes):
            below = self.holes[hole + 1][0]
            if self.fill(left, hole + 1, below, slack - (end - top)):
                return True
        self.failed[left, hole] = top
        return False


def stack(
    items: Sequence[Rectangle], limit: int, fixed: Mapping[str, int], budget: Steps
) -> dict[str, int] | None:
    """Return offsets within the limit with some of them fixed, or None if there are none.

    The allocations must be `stackable`.  Raise Exhausted if the budget ends first.
    """
    grain = min((item.align for item in items), default=1)
    free = [item for item in items if item.name not in fixed]
    free.sort(key=canonical_order)
    holes = _holes(items, limit, fixed, grain)
    sizes = [(round_up(item.bytes, grain), item.align) for item in free]
    slack = sum(high - low for low, high in holes) - sum(size for size, _ in sizes)
    if slack < 0 or not holes:
        return None if free else dict(fixed)
    search = _Filling(sizes, holes, budget, max((item.align for item in free), default=1))
    if not search.fill((1 << len(free)) - 1, 0, holes[0][0], slack):
        return None
    return {**fixed, **{item.name: search.starts[i] for i, item in enumerate(free)}}


def _holes(
    items: Sequence[Rectangle], limit: int, fixed: Mapping[str, int], grain: int
) -> list[tuple[int, int]]:
    ends = sorted(
        (fixed[item.name], fixed[item.name] + round_up(item.bytes, grain))
        for item in items
        if item.name in fixed
    )
    found, top = [], 0
    for start, end in (*ends, (limit, limit)):
        if top < start:
            found.append((top, start))
        top = end
    return found


def lowest(
    items: Sequence[Rectangle], limit: int, known: Mapping[str, int], budget: Steps
) -> tuple[dict[str, int], bool]:
    """Return the offsets that are smallest in canonical order, and whether that is proved.

    known: any layout within the limit, which is improved.
    """
    ordered = sorted(items, key=canonical_order)
    first, height = first_fit(ordered)
    if height <= limit:
        return first, True
    fixed: dict[str, int] = {}
    current, proved = dict(known), True
    for item in ordered:
        for start in _candidates(item, ordered, limit, fixed):
            if start >= current[item.name]:
                break
            try:
                found = stack(items, limit, {**fixed, item.name: start}, budget.part())
            except Exhausted:
                found, proved = None, False
            if found is not None:
                current = found
                break
        fixed[item.name] = current[item.name]
    return current, proved


def _candidates(
    item: Rectangle, items: Sequence[Rectangle], limit: int, fixed: Mapping[str, int]
) -> Iterator[int]:
    """Yield starts, from the lowest up, between which and the neighbors sizes of others add up."""
    grain = min(other.align for other in items)
    size = round_up(item.bytes, grain)
    holes = _holes(items, limit, fixed, grain)
    others = [
        round_up(other.bytes, grain)
        for other in items
        if other.name not in fixed and other.name != item.name
    ]
    slack = sum(high - low for low, high in holes) - sum(others) - size
    sums = 1  # bit n: some of the others have n grains together
    for other in others:
        sums |= sums << other // grain

    def filled(room: int) -> bool:
        """Return whether some of the others waste no more than the slack of this room."""
        first = max(0, room - slack) // grain
        return bool(sums >> first & ((2 << room // grain - first) - 1))

    for low, high in holes:
        for start in range(round_up(low, item.align), high - size + 1, item.align):
            if filled(start - low) and filled(high - start - size):
                yield start
