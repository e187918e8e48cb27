"""How many bytes does each shared item take, and where in the mbarrier table is whose part?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipelink_rules.model.placement import BARRIER_TABLE, PlacementProblem

MBARRIER_BYTES = 8
TABLE_ALIGN = 16
FIXED = "fixed"  # the table's part for mbarriers_fixed


@dataclass(frozen=True)
class Rectangle:
    """An item with its stages multiplied in: bytes x phases."""

    name: str
    bytes: int
    align: int
    phases: int  # bit mask

    @property
    def span(self) -> int:
        """Phases from the first to the last one it lives in."""
        return self.phases.bit_length() - (self.phases & -self.phases).bit_length() + 1


def round_up(value: int, unit: int) -> int:
    """The smallest multiple of `unit` that is not below `value`."""
    return -(-value // unit) * unit


def all_phases(problem: PlacementProblem) -> int:
    """The mask of an item that lives in every phase."""
    return (1 << max(1, len(problem.phases))) - 1


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
            item.phases,
        )
        for item in problem.items
    ]
    table = sum(size for _, _, size in table_parts(problem, stages))
    if table:
        found.append(Rectangle(BARRIER_TABLE, table, TABLE_ALIGN, all_phases(problem)))
    return tuple(sorted(found, key=lambda rectangle: rectangle.name))


def minimum_stages(problem: PlacementProblem) -> dict[str, int]:
    """Every channel at its minimum."""
    return {stage.name: stage.minimum for stage in problem.stages}
