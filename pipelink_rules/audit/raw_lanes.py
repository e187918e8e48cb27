"""Audit of a role with raw ports: every lane separately, with waits that fail and that succeed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pipelink_rules.audit.compare import Difference, StageRotation
from pipelink_rules.audit.decode_ptx import Value
from pipelink_rules.audit.execution_log import Event, ExecutionLog
from pipelink_rules.audit.expected_trace import ExpectedTile, expected_tiles
from pipelink_rules.audit.input_cases import RoleRun, input_case
from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.raw_merge import WAITS, Lane, LaneMerger, without_marks
from pipelink_rules.expression.expression import evaluate

_FEW_TILES = 3  # work tiles of lanes outside of the first warp
_OTHER_STAGES = 3  # a number that a source with a fixed count of stages does not have


@dataclass(frozen=True)
class LocatedDifference:
    """A difference with its work tile and warp."""

    difference: Difference
    fields: dict[str, int] = field(default_factory=dict)
    warp: int = 0
    log: ExecutionLog | None = None  # None: not in a single work tile


@dataclass
class _LaneRuns:
    """The lanes of a role on one series of work tiles."""

    run: RoleRun
    like: Interpreter | None = None  # any lane, for its decoded functions
    shuffles: list[Value] = field(default_factory=list)  # of lane 0 of the warp

    def logs(self, lane: Lane, tiles: int, *, first_try: bool = False) -> list[ExecutionLog]:
        """Return one lane's logs of the first work tiles."""
        warp, number = lane
        shuffles = self.shuffles if number else []
        machine = self.run.lane(
            32 * warp + number, self.like, shuffles=shuffles, first_try=first_try
        )
        self.like = self.like or machine
        logs = [self.run.tile(machine, fields) for fields in self.run.case.tiles[:tiles]]
        if number == 0:
            self.shuffles = machine.shuffles
        return logs


def compare_lanes(
    run: RoleRun, expected: list[ExpectedTile], done: set[tuple[str, str]]
) -> Iterator[LocatedDifference]:
    """Yield differences of a role with raw ports; performed accesses are added to `done`."""
    runs = _LaneRuns(run)
    lanes = [(warp, lane) for warp in range(evaluate(run.role.warps, {})) for lane in range(32)]
    logs: dict[Lane, list[ExecutionLog]] = {}
    for lane in lanes:
        logs[lane] = runs.logs(lane, _FEW_TILES if lane[0] else len(expected))
        done |= {
            (access.kind, access.target)
            for log in logs[lane]
            for found in log.accesses
            for access in found
        }
    yield from _merge_differences(run, expected, logs)
    lead = max(logs, key=lambda lane: sum(len(log.events) for log in logs[lane]))
    yield from _first_try_differences(runs, logs[lead], lead)
    other = replace(run, case=input_case(run.variant.contract, run.role, _OTHER_STAGES))
    again, tiles = _LaneRuns(other, runs.like), len(other.case.tiles)
    warp = {lane: again.logs(lane, tiles) for lane in lanes if lane[0] == lead[0]}
    yield from _merge_differences(
        other, expected_tiles(other.case), warp, whole=len(lanes) == len(warp)
    )


def _merge_differences(
    run: RoleRun,
    expected: list[ExpectedTile],
    logs: dict[Lane, list[ExecutionLog]],
    *,
    whole: bool = True,
) -> Iterator[LocatedDifference]:
    """Yield the first difference of merged lanes; whole: these are all lanes of the role."""
    contract, raw = run.variant.contract, run.case.names.raw
    stages = StageRotation(contract)
    for number, fields in enumerate(run.case.tiles):
        present = {lane: found[number] for lane, found in logs.items() if number < len(found)}
        if len(present) < len(logs):
            return  # the other warps were interpreted for fewer tiles
        found = LaneMerger(expected[number], contract, raw).compare(present, whole=whole)
        if found is None:
            lane = max(present, key=lambda lane: len(present[lane].events))
            difference = stages.check(without_marks(present[lane]))
        else:
            lane, difference = found
        if difference is not None:
            yield LocatedDifference(difference, fields, lane[0], without_marks(present[lane]))
            return


def _first_try_differences(
    runs: _LaneRuns, patient: list[ExecutionLog], lead: Lane
) -> Iterator[LocatedDifference]:
    """Yield the differences of one lane between waits that fail once and waits that do not."""
    runs.logs((lead[0], 0), len(patient), first_try=True)  # lane 0's shuffles for its warp
    first_tries = runs.logs(lead, len(patient), first_try=True)
    for fields, before, after in zip(runs.run.case.tiles, patient, first_tries, strict=False):
        difference = first_try_difference(before.events, after.events)
        if difference is not None:
            yield LocatedDifference(difference, fields, lead[0], without_marks(after))
            return


def first_try_difference(patient: Sequence[Event], first_try: Sequence[Event]) -> Difference | None:
    """Return a difference unless only waits that succeed immediately have moved forward."""
    first, second = _split_waits(patient), _split_waits(first_try)
    for position, pair in enumerate(zip(first[0], second[0], strict=False)):
        if pair[0] != pair[1]:
            return _first_try_error(pair[0], pair[1], position)
    if len(first[0]) != len(second[0]):
        longer = max(first[0], second[0], key=len)
        position = min(len(first[0]), len(second[0]))
        return _first_try_error(longer[position], None, position)
    for key, places in first[1].items():
        others = second[1].get(key, [])
        if len(places) != len(others) or any(b > a for a, b in zip(places, others, strict=True)):
            return _first_try_error(Event(*key), None, places[0])
    return None


def _split_waits(
    events: Sequence[Event],
) -> tuple[list[Event], dict[tuple[str, str, int | None], list[int]]]:
    """Return the operations, and the positions among them at which each wait succeeds."""
    done: list[Event] = []
    waits: dict[tuple[str, str, int | None], list[int]] = defaultdict(list)
    for event in events:
        if event.verb in WAITS:
            waits[event.verb, event.target, event.item].append(len(done))
        elif event.verb != "syncwarp":
            done.append(event)
    return done, waits


def _first_try_error(wanted: Event, found: Event | None, position: int) -> Difference:
    what, actual = "depends on whether a wait succeeds at its first try", "the end of the work tile"
    actual = str(found) if found else actual
    return Difference("PL0934", what, None, wanted.target, str(wanted), actual, position)
