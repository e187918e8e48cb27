"""The checks of order and liveness: found by the protocol, reported one per connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from pipelink_rules.check.program_index import Check, ProgramIndex
from pipelink_rules.check.protocol.analyze import Found, find_problems
from pipelink_rules.check.protocol.counterexample import MOST_TRIES, find_counterexample
from pipelink_rules.check.protocol.messages_async import (
    in_flight,
    loading,
    no_fence,
    overlapping,
    storing,
)
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
from pipelink_rules.check.protocol.messages_order import alias, recycle, stale, unfenced, unordered
from pipelink_rules.check.protocol.process_builder import MOST_ACTIONS
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex, TooManyOperations
from pipelink_rules.check.protocol.render_counterexample import lines
from pipelink_rules.check.wording import labels
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
CODES = (
    "PL0201",
    "PL0202",
    "PL0203",
    "PL0209",
    "PL0302",
    "PL0303",
    "PL0401",
    "PL0402",
    "PL0501",
    "PL0502",
    "PL0503",
    "PL0504",
    "PL0505",
    "PL0509",
    "PL1002",
)


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


def check_protocol(
    resolved: ProgramIndex, stages: Mapping[str, int] | None = None
) -> Iterator[Diagnostic]:
    """What the protocol of the program gets wrong, for all stage counts or for these."""
    try:
        found = find_problems(resolved.blueprint, stages)
    except TooManyOperations as long:
        yield _too_long(long)
        return
    yield from to_diagnostic(resolved, resolved.blueprint, found)


def _too_long(long: TooManyOperations) -> Diagnostic:
    origin = long.origin
    return Diagnostic(
        "PL0402",
        f"role `{origin.owner}` has more than {MOST_ACTIONS} operations per work item",
        labels((origin.span, "repeated too often to be judged")),
        expected=f"at most {MOST_ACTIONS} operations per work item",
        helps=(
            "make the count of the repeat a field of the work item: loops are judged for small "
            "counts and for those around the stage counts",
        ),
        subject=origin.owner,
    )


CHECKS = (Check(CODES, check_protocol),)
