"""How is a problem of a protocol told?  Found -> Diagnostic: both ends and the smallest fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pipelink_rules.check.protocol.blueprint import Blueprint
from pipelink_rules.check.protocol.shortest import MOST_TRIES, shortest
from pipelink_rules.check.protocol.verify import Found
from pipelink_rules.check.protocol.words_counts import (
    arrivals,
    barrier_bytes,
    not_held,
    rate,
    threads,
    turns,
    unwritten,
)
from pipelink_rules.check.protocol.words_deadlock import deadlock, starved
from pipelink_rules.check.protocol.words_groups import in_flight, storing
from pipelink_rules.check.protocol.words_order import alias, recycle, stale, unfenced, unordered
from pipelink_rules.check.protocol.words_schedule import lines
from pipelink_rules.check.protocol.words_tensor import loading, no_fence, overlapping
from pipelink_rules.check.resolved import Resolved
from pipelink_rules.diagnostics.diagnostic import Diagnostic

Tell = Callable[[Resolved, Blueprint, Found], Diagnostic]

# kind -> (rank, how it is told).  Kinds of one tens digit are consequences of each other: of these
# a connection gets the one with the lowest rank only.
KINDS: dict[str, tuple[int, Tell]] = {
    "not held": (0, not_held),
    "rate": (1, rate),
    "arrivals": (2, arrivals),
    "bytes": (10, barrier_bytes),
    "threads": (20, threads),
    "turns": (21, turns),
    "recycle": (22, recycle),
    "deadlock": (30, deadlock),
    "starved": (31, starved),
    "in flight": (40, in_flight),
    "storing": (41, storing),
    "overlapping": (41, overlapping),
    "loading": (41, loading),
    "unwritten": (42, unwritten),
    "alias": (43, alias),
    "stale": (44, stale),
    "unordered": (45, unordered),
    "unfenced": (46, unfenced),
    "no fence": (46, no_fence),
}


def tell(resolved: Resolved, blueprint: Blueprint, found: list[Found]) -> list[Diagnostic]:
    """One diagnostic per group of kinds and subject."""
    told: dict[tuple[int, str], tuple[Diagnostic, Found]] = {}
    for item in sorted(found, key=lambda item: KINDS[item.problem.kind][0]):
        rank, words = KINDS[item.problem.kind]
        finding = words(resolved, blueprint, item)
        told.setdefault((rank // 10, finding.subject), (finding, item))
    return _with_schedules(told.values())


def _with_schedules(told: Iterable[tuple[Diagnostic, Found]]) -> list[Diagnostic]:
    """The findings with shortest runs into them, as far as a bounded search finds some."""
    found, left = [], MOST_TRIES
    for finding, item in told:
        schedule, left = shortest(item.composition, item.problem, left)
        found.append(replace(finding, schedule=lines(schedule)) if schedule else finding)
    return found
