"""Audit of a role with raw ports: every lane separately, with waits that fail and that succeed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipelink_rules.audit.compare import Difference, StageRotation
from pipelink_rules.audit.execution_log import Event, ExecutionLog
from pipelink_rules.audit.expected_trace import ExpectedTile
from pipelink_rules.audit.input_cases import RoleRun
from pipelink_rules.audit.interpreter import WARP, Interpreter
from pipelink_rules.audit.lanes import (
    DivergedError,
    Lanes,
    Value,
    VariesError,
    WarpsDifferError,
    at,
)
from pipelink_rules.audit.machine_state import InconclusiveError, RestrictionError
from pipelink_rules.audit.raw_merge import WAITS, Lane, LaneMerger, without_marks
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.expression.expression import evaluate


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

    def logs(self, lane: Lane, *, first_try: bool = False) -> list[ExecutionLog]:
        """Return one lane's logs of the work tiles."""
        warp, number = lane
        shuffles = self.shuffles if number else []
        machine = self.run.lane(
            32 * warp + number, self.like, shuffles=shuffles, first_try=first_try
        )
        self.like = self.like or machine
        logs = [self.run.tile(machine, fields) for fields in self.run.case.tiles]
        if number == 0:
            self.shuffles = machine.shuffles
        return logs


def compare_lanes(
    run: RoleRun, expected: list[ExpectedTile], done: set[tuple[str, str]], like: Interpreter
) -> Iterator[LocatedDifference]:
    """Yield differences of a role with raw ports; performed accesses are added to `done`."""
    runs = _LaneRuns(run, like)
    logs: dict[Lane, list[ExecutionLog]] = {}
    convergence = _Convergence(run, like)
    for warp in range(evaluate(run.role.warps, {})):
        for lanes in convergence.alike(warp):
            found = runs.logs((warp, lanes[0]))
            logs |= dict.fromkeys(((warp, lane) for lane in lanes), found)
            done |= {
                item
                for log in found
                for accesses in log.accesses
                for access in accesses
                for item in access.performed
            }
    logs = dict(sorted(logs.items()))
    yield from _merge_differences(run, expected, logs)
    lead = max(logs, key=lambda lane: sum(len(log.events) for log in logs[lane]))
    yield from _first_try_differences(runs, logs[lead], lead)
    if convergence.diverged is not None:
        difference = diverged_difference(convergence.diverged, run.role.name)
        yield LocatedDifference(difference, warp=convergence.warp)


class _Convergence:
    """Which lanes of a warp run alike, and where a warp diverges that must not.

    All threads are interpreted together: lanes that no branch, predicate or operand of a barrier or
    copy instruction separates are alike, whether waits fail once or succeed immediately.
    """

    def __init__(self, run: RoleRun, like: Interpreter) -> None:
        self.diverged: DivergedError | None = None
        self.warp = 0
        self._run, self._like = run, like
        self._conditions: dict[int, list[tuple[int, Lanes]]] = defaultdict(list)
        self._separate: set[int] = set()  # warps whose lanes are interpreted one by one
        for first_try in (False, True):
            self._interpret(tuple(range(evaluate(run.role.warps, {}))), first_try)

    def alike(self, warp: int) -> list[tuple[int, ...]]:
        """Return the classes of lanes of a warp."""
        if warp in self._separate:
            return [(lane,) for lane in range(WARP)]
        classes: dict[tuple[Value, ...], list[int]] = {}
        for lane in range(WARP):
            found = [at(cell, first + lane) for first, cell in self._conditions[warp]]
            classes.setdefault(tuple(found), []).append(lane)
        return [tuple(lanes) for lanes in classes.values()]

    def _interpret(self, warps: tuple[int, ...], first_try: bool) -> None:
        machine = self._run.group(warps, self._like)
        machine.first_try, machine.state.lenient = first_try, True
        try:
            for fields in self._run.case.tiles:
                self._run.tile(machine, fields)
        except WarpsDifferError as found:
            for part in found.parts:
                self._interpret(tuple(warps[number] for number in part), first_try)
            return
        except DivergedError as why:
            if self.diverged is None:
                self.diverged, self.warp = why, warps[0]
            self._separate |= set(warps)
        except (VariesError, InconclusiveError, RestrictionError):
            self._separate |= set(warps)  # the lanes report it, one by one
        for number, warp in enumerate(warps):
            self._conditions[warp] += [(number * WARP, cell) for cell in machine.separated]


def diverged_difference(why: DivergedError, role: str) -> Difference:
    """Return the difference for what a part of a warp executes alone."""
    shown = ", ".join(map(str, why.lanes[:4])) + (", ..." if len(why.lanes) > 4 else "")
    found = f"{plural(len(why.lanes), 'lane')} of a warp ({shown})"
    what = f"performs `{why.what}` while its warp is diverged"
    wanted = "all lanes of the warp, or of the mask, at one place"
    return Difference(why.code, what, None, role, wanted, found)


def _merge_differences(
    run: RoleRun, expected: list[ExpectedTile], logs: dict[Lane, list[ExecutionLog]]
) -> Iterator[LocatedDifference]:
    """Yield the first difference of all lanes, merged."""
    contract, raw = run.variant.contract, run.case.names.raw
    stages = StageRotation(contract)
    for number, fields in enumerate(run.case.tiles):
        present = {lane: found[number] for lane, found in logs.items()}
        found = LaneMerger(expected[number], contract, raw).compare(present)
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
    runs.logs((lead[0], 0), first_try=True)  # lane 0's shuffles for its warp
    first_tries = runs.logs(lead, first_try=True)
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
