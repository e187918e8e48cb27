"""Allocations as rectangles of bytes (or columns) x lifetimes, and the lower bound of a layout.

No layout can be lower than the bytes live in one lifetime, whatever the offsets.  A lifetime over
the limit is therefore rejected without a solver, and a height equal to the bound is optimal.

Tensor memory: one allocation serves the whole CTA.  Its size is a power of two of at least 32
columns, and the CTAs on one SM share its columns (PTX ISA, tcgen05.alloc).  A request takes all
128 lanes of its columns, so that only columns are placed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipelink_rules.model.placement import BARRIER_TABLE, PlacementProblem
from pipelink_rules.model.target import TARGETS

MBARRIER_BYTES = 8
TABLE_ALIGN = 16
FIXED = "fixed"  # the table's part for mbarriers_fixed


@dataclass(frozen=True)
class Rectangle:
    """An allocation with its stages multiplied in: bytes x lifetimes."""

    name: str
    bytes: int
    align: int
    lifetimes: int  # bit mask

    @property
    def span(self) -> int:
        """Number of lifetimes from the first to the last one."""
        return self.lifetimes.bit_length() - (self.lifetimes & -self.lifetimes).bit_length() + 1


def round_up(value: int, unit: int) -> int:
    """Return the smallest multiple of `unit` that is not below `value`."""
    return -(-value // unit) * unit


def all_lifetimes(problem: PlacementProblem) -> int:
    """Return the mask of an allocation that is live in every lifetime."""
    return (1 << max(1, len(problem.lifetimes))) - 1


def table_parts(
    problem: PlacementProblem, stages: Mapping[str, int]
) -> tuple[tuple[str, int, int], ...]:
    """Return (channel, first byte in the table, bytes), channels by name, the fixed ones last."""
    parts: list[tuple[str, int, int]] = []
    start = 0
    for channel, count in sorted(problem.mbarriers_per_stage):
        size = MBARRIER_BYTES * count * stages[channel]
        parts.append((channel, start, size))
        start += size
    if problem.mbarriers_fixed:
        parts.append((FIXED, start, MBARRIER_BYTES * problem.mbarriers_fixed))
    return tuple(parts)


def rectangles(problem: PlacementProblem, stages: Mapping[str, int]) -> tuple[Rectangle, ...]:
    """Return every allocation and the mbarrier table at the given stage counts, by name."""
    times = {"": 1, **stages}  # a buffer has no channel
    found = [
        Rectangle(item.name, item.bytes * times[item.channel], item.align, item.lifetimes)
        for item in problem.items
    ]
    table = sum(size for _, _, size in table_parts(problem, stages))
    if table:
        found.append(Rectangle(BARRIER_TABLE, table, TABLE_ALIGN, all_lifetimes(problem)))
    return tuple(sorted(found, key=lambda rectangle: rectangle.name))


def minimum_stages(problem: PlacementProblem) -> dict[str, int]:
    """Return the minimum stage count of every channel."""
    return {stage.name: stage.minimum for stage in problem.stages}


@dataclass(frozen=True)
class Row:
    """Live bytes of one lifetime as a linear form: constant + sum of coefficient * stages."""

    lifetime: int
    constant: int
    coefficients: tuple[tuple[str, int], ...]

    def at(self, stages: Mapping[str, int]) -> int:
        """Return the live bytes at the given stage counts."""
        return self.constant + sum(size * stages[name] for name, size in self.coefficients)


def rows(problem: PlacementProblem) -> tuple[Row, ...]:
    """Return one row per lifetime; equal rows once, with the first of their lifetimes."""
    found: dict[tuple[int, tuple[tuple[str, int], ...]], Row] = {}
    for lifetime in range(max(1, len(problem.lifetimes))):
        constant = MBARRIER_BYTES * problem.mbarriers_fixed
        coefficients = {name: MBARRIER_BYTES * n for name, n in problem.mbarriers_per_stage}
        for item in problem.items:
            if not item.lifetimes >> lifetime & 1:
                continue
            if item.channel:
                coefficients[item.channel] = coefficients.get(item.channel, 0) + item.bytes
            else:
                constant += item.bytes
        key = (constant, tuple(sorted(coefficients.items())))
        found.setdefault(key, Row(lifetime, *key))
    return tuple(found.values())


def live_bytes(rectangles: Iterable[Rectangle]) -> dict[int, int]:
    """Return lifetime -> bytes live in it."""
    live: dict[int, int] = {}
    for rectangle in rectangles:
        for lifetime in range(rectangle.lifetimes.bit_length()):
            if rectangle.lifetimes >> lifetime & 1:
                live[lifetime] = live.get(lifetime, 0) + rectangle.bytes
    return live


def bound(rectangles: Iterable[Rectangle]) -> tuple[int, int]:
    """Return (bytes, lifetime) of the fullest lifetime, the first of several; (0, 0) if empty."""
    live = live_bytes(rectangles)
    lifetime = min(live, key=lambda index: (-live[index], index), default=0)
    return live.get(lifetime, 0), lifetime


def admits(form: Iterable[Row], stages: Mapping[str, int], limit: int) -> bool:
    """Return whether the live bytes of every lifetime fit: necessary for a layout."""
    return all(row.at(stages) <= limit for row in form)


LEAST_ALLOCATION = 32  # columns; PTX ISA, tcgen05.alloc: powers of two from 32 up


def column_limit(problem: PlacementProblem, occupancy: int | None = None) -> int:
    """Return the largest allocation of one CTA when `occupancy` of them share the SM."""
    share = TARGETS[problem.target].tmem_columns // (occupancy or problem.occupancy)
    power = 1 << max(share, 1).bit_length() - 1
    return power if power >= LEAST_ALLOCATION else 0


def allocation(height: int) -> int:
    """Return the columns to allocate for a layout of this height; 0 for none."""
    return max(LEAST_ALLOCATION, 1 << (height - 1).bit_length()) if height else 0


def column_rectangles(
    problem: PlacementProblem, stages: Mapping[str, int]
) -> tuple[Rectangle, ...]:
    """Return every request at the given stage counts, by name; `bytes` are columns."""
    times = {"": 1, **stages}
    found = [
        Rectangle(need.name, need.columns * times[need.channel], 1, need.lifetimes)
        for need in problem.tensor
    ]
    return tuple(sorted(found, key=lambda rectangle: rectangle.name))


def columns_fit(problem: PlacementProblem, stages: Mapping[str, int], occupancy: int) -> bool:
    """Return whether the live columns of every lifetime fit: necessary for a layout."""
    most, _ = bound(column_rectangles(problem, stages))
    return most <= column_limit(problem, occupancy)
