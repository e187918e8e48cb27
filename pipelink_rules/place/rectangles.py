"""What is placed, as rectangles of bytes (or columns) x phases, and how much is alive at once?

No layout can be lower than what is alive in one phase, whatever the offsets.  So a phase over the
limit refuses without a solver, and a height equal to that bound is proved by one addition.

Tensor memory: one allocation serves the whole CTA, a power of two of columns, at least 32, and
those of all CTAs on the SM together at most what it has (PTX ISA, tcgen05.alloc).  A need has all
128 lanes of its columns, so that columns are all there is to place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipelink_rules.model.placement import BARRIER_TABLE, PlacementProblem
from pipelink_rules.model.target import TARGETS

MBARRIER_BYTES = 8
TABLE_ALIGN = 16
FIXED = "fixed"  # the table's part for mbarriers_fixed


@dataclass(frozen=True)
class Rectangle:
    """An item with its stages multiplied in: bytes x phases."""

    name: str
    bytes: int
    align: int
    lifetimes: int  # bit mask

    @property
    def span(self) -> int:
        """Phases from the first to the last one it lives in."""
        return self.lifetimes.bit_length() - (self.lifetimes & -self.lifetimes).bit_length() + 1


def round_up(value: int, unit: int) -> int:
    """The smallest multiple of `unit` that is not below `value`."""
    return -(-value // unit) * unit


def all_lifetimes(problem: PlacementProblem) -> int:
    """The mask of an item that lives in every phase."""
    return (1 << max(1, len(problem.lifetimes))) - 1


def table_parts(
    problem: PlacementProblem, stages: Mapping[str, int]
) -> tuple[tuple[str, int, int], ...]:
    """(channel, first byte in the table, bytes), channels by name, the fixed ones last."""
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
    """Every item and the mbarrier table at the given stage counts, by name."""
    found = [
        Rectangle(
            item.name,
            item.bytes * (stages[item.channel] if item.channel else 1),
            item.align,
            item.lifetimes,
        )
        for item in problem.items
    ]
    table = sum(size for _, _, size in table_parts(problem, stages))
    if table:
        found.append(Rectangle(BARRIER_TABLE, table, TABLE_ALIGN, all_lifetimes(problem)))
    return tuple(sorted(found, key=lambda rectangle: rectangle.name))


def minimum_stages(problem: PlacementProblem) -> dict[str, int]:
    """Every channel at its minimum."""
    return {stage.name: stage.minimum for stage in problem.stages}


@dataclass(frozen=True)
class Row:
    """Live bytes of one phase as a linear form: constant + sum of coefficient * stages."""

    phase: int
    constant: int
    coefficients: tuple[tuple[str, int], ...]

    def at(self, stages: Mapping[str, int]) -> int:
        """The live bytes at the given stage counts."""
        return self.constant + sum(size * stages[name] for name, size in self.coefficients)


def rows(problem: PlacementProblem) -> tuple[Row, ...]:
    """One row per phase; phases with the same row are named once, by the first of them."""
    found: dict[tuple[int, tuple[tuple[str, int], ...]], Row] = {}
    for phase in range(max(1, len(problem.lifetimes))):
        constant = MBARRIER_BYTES * problem.mbarriers_fixed
        coefficients = {name: MBARRIER_BYTES * n for name, n in problem.mbarriers_per_stage}
        for item in problem.items:
            if not item.lifetimes >> phase & 1:
                continue
            if item.channel:
                coefficients[item.channel] = coefficients.get(item.channel, 0) + item.bytes
            else:
                constant += item.bytes
        key = (constant, tuple(sorted(coefficients.items())))
        found.setdefault(key, Row(phase, *key))
    return tuple(found.values())


def live_bytes(rectangles: Iterable[Rectangle]) -> dict[int, int]:
    """Phase -> bytes alive in it."""
    live: dict[int, int] = {}
    for rectangle in rectangles:
        mask, phase = rectangle.lifetimes, 0
        while mask:
            if mask & 1:
                live[phase] = live.get(phase, 0) + rectangle.bytes
            mask >>= 1
            phase += 1
    return live


def bound(rectangles: Iterable[Rectangle]) -> tuple[int, int]:
    """(bytes, phase) of the fullest phase, the first of several; (0, 0) without rectangles."""
    live = live_bytes(rectangles)
    if not live:
        return 0, 0
    phase = min(live, key=lambda index: (-live[index], index))
    return live[phase], phase


def admits(form: Iterable[Row], stages: Mapping[str, int], limit: int) -> bool:
    """Do the live bytes of every phase stay within the limit?  Necessary for a layout."""
    return all(row.at(stages) <= limit for row in form)


LEAST_ALLOCATION = 32  # columns; PTX ISA, tcgen05.alloc: powers of two from 32 up


def column_limit(problem: PlacementProblem, occupancy: int | None = None) -> int:
    """The largest allocation of one CTA when `occupancy` of them share the SM."""
    share = TARGETS[problem.target].tmem_columns // (occupancy or problem.occupancy)
    power = 1 << max(share, 1).bit_length() - 1
    return power if power >= LEAST_ALLOCATION else 0


def allocation(height: int) -> int:
    """Columns to allocate for a layout of this height; 0 for none."""
    return max(LEAST_ALLOCATION, 1 << (height - 1).bit_length()) if height else 0


def column_rectangles(
    problem: PlacementProblem, stages: Mapping[str, int]
) -> tuple[Rectangle, ...]:
    """Every need at the given stage counts, by name; `bytes` are columns."""
    found = [
        Rectangle(n.name, n.columns * (stages[n.channel] if n.channel else 1), 1, n.lifetimes)
        for n in problem.tensor
    ]
    return tuple(sorted(found, key=lambda rectangle: rectangle.name))


def columns_admit(problem: PlacementProblem, stages: Mapping[str, int], occupancy: int) -> bool:
    """Do the columns alive in every phase fit?  Necessary for a layout."""
    most, _ = bound(column_rectangles(problem, stages))
    return most <= column_limit(problem, occupancy)
