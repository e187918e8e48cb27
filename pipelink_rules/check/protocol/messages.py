"""How is a problem of a protocol told?  Found -> Diagnostic: both ends and the smallest fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.protocol.counterexample import MOST_TRIES, find_counterexample
from pipelink_rules.check.protocol.find_problems import Found
from pipelink_rules.check.protocol.messages_counts import (
    arrivals,
    barrier_bytes,
    not_acquired,
    rate,
    threads,
    unequal_barrier_use,
    unwritten,
)
from pipelink_rules.check.protocol.messages_deadlock import deadlock, starved
from pipelink_rules.check.protocol.messages_groups import in_flight, storing
from pipelink_rules.check.protocol.messages_order import alias, recycle, stale, unfenced, unordered
from pipelink_rules.check.protocol.messages_tensor import loading, no_fence, overlapping
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.check.protocol.render_counterexample import lines
from pipelink_rules.diagnostics.diagnostic import Diagnostic

Tell = Callable[[ProgramIndex, ProtocolIndex, Found], Diagnostic]

# kind -> (rank, how it is told).  Kinds of one tens digit are consequences of each other: of these
# a connection gets the one with the lowest rank only.
KINDS: dict[str, tuple[int, Tell]] = {
    "not held": (0, not_acquired),
    "rate": (1, rate),
    "arrivals": (2, arrivals),
    "bytes": (10, barrier_bytes),
    "threads": (20, threads),
    "turns": (21, unequal_barrier_use),
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


def to_diagnostic(
    resolved: ProgramIndex, blueprint: ProtocolIndex, found: list[Found]
) -> list[Diagnostic]:
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
        schedule, left = find_counterexample(item.composition, item.problem, left)
        found.append(replace(finding, schedule=lines(schedule)) if schedule else finding)
    return found
