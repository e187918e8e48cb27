"""How many bytes are alive in a phase?  The lower bound of every layout, and its certificate.

No layout can be lower than the bytes alive in one phase, whatever the offsets.  So a phase over
the limit refuses without a solver, and a height equal to the bound is proved by one addition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipelink_rules.model.placement import PlacementProblem
from pipelink_rules.place.allocation_sizes import MBARRIER_BYTES, Rectangle


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
    for phase in range(max(1, len(problem.phases))):
        constant = MBARRIER_BYTES * problem.mbarriers_fixed
        coefficients = {name: MBARRIER_BYTES * n for name, n in problem.mbarriers_per_stage}
        for item in problem.items:
            if not item.phases >> phase & 1:
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
        mask, phase = rectangle.phases, 0
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
