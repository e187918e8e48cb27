"""Counterexamples: the shortest run into a problem, if a bounded search finds one.

A run from the backward search is used if there is one.  Otherwise runs are searched breadth-first,
with a limit that is the same on every machine.  Waits, reads and awaits are merged with the action
that follows: they enable no other process, and a fault at them can also occur later.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from pipelink_rules.check.protocol import protocol_problems as problems
from pipelink_rules.check.protocol.backward_search import BackwardSearch, meetings
from pipelink_rules.check.protocol.event_graph import EventGraph
from pipelink_rules.check.protocol.model import WAITS, Composition, Kind, Origin, unroll
from pipelink_rules.check.protocol.transition_system import (
    ORDER,
    PHASE,
    PROXY,
    ROUND,
    Fault,
    RunState,
    RunStep,
    TransitionSystem,
)

MOST_ACTIONS = 4_000  # of a run
MOST_TRIES = 8_000  # of a process in a state
_FOLLOW = (Kind.READ, Kind.MMA, Kind.STORE, Kind.AWAIT, Kind.TOUCH)
# problem -> what happens where it shows
FAULTS: dict[type[problems.Problem], str] = {
    problems.NoOrder: ORDER,
    problems.ReversedOrder: ORDER,
    problems.MmaStillReads: ORDER,
    problems.StoreStillReads: ORDER,
    problems.NoProxyFence: PROXY,
    problems.PhaseAliasing: PHASE,
    problems.MixedGenerations: ROUND,
}


# steps, the state after them (None: there is none), the fault of the last one
Move = tuple[tuple[RunStep, ...], RunState | None, Fault | None]


class Counterexample(NamedTuple):
    """A run into a problem.  `fault`: that of its last step; None: `stuck` wait forever."""

    run: Composition
    steps: tuple[RunStep, ...]
    fault: Fault | None
    stuck: tuple[tuple[int, int], ...] = ()  # process, position of the wait


def find_counterexample(
    composition: Composition,
    problem: problems.Problem,
    limit: int = MOST_TRIES,
    straight: bool = True,
) -> tuple[Counterexample | None, int]:
    """Return the counterexample, if one is found within `limit` tries, and the tries left.

    straight=False: by forward search alone.
    """
    periods = _periods(composition)
    if periods * sum(len(process.period) for process in composition.processes) > MOST_ACTIONS:
        return None, limit
    if isinstance(problem, (problems.Deadlock, problems.StarvedWait)):
        waits = _waits(composition, problem)
        for count in (1, 2, 3):
            search = _Search(unroll(composition, count), limit, waits=waits)
            found = (search.end() if straight else None) or search.search()
            limit = search.left
            if found:
                return found, limit
        return None, limit
    kind = FAULTS.get(type(problem))
    clauses = [origin for origin in problem.origins if origin]
    if kind is None:
        return None, limit
    search = _Search(unroll(composition, periods), limit)
    search.wanted = lambda fault: fault.kind == kind and search.between(fault, clauses)
    met = search.meeting(clauses) if straight and kind in (ORDER, PROXY) else None
    return met or search.search(), search.left


def _periods(composition: Composition) -> int:
    """Enough to use every stage twice."""
    rounds = [-(-2 * m.stages // m.items) for m in composition.memories.values() if m.items]
    return min(1 + max(rounds, default=1), 5)


def _waits(
    composition: Composition, problem: problems.Deadlock | problems.StarvedWait
) -> dict[int, set[Origin]]:
    """Return the processes that block each other, and the clauses they wait at."""
    if isinstance(problem, problems.StarvedWait):
        clause = problem.action.origin
        return {
            index: {clause}
            for index, process in enumerate(composition.processes)
            if any(a.origin == clause for a in (*process.period, *process.epilogue))
        }
    graph = EventGraph(composition)
    found: dict[int, set[Origin]] = {}
    for node, _, _ in problem.cycle:
        action = graph.actions[node]
        if action is not None and action.kind in WAITS:
            found.setdefault(graph.owner[node], set()).add(action.origin)
    return found


class _Search:
    def __init__(self, run: Composition, limit: int, waits: dict[int, set[Origin]] | None = None):
        self.system = TransitionSystem(run)
        self.run, self.left, self.waits = run, limit, waits or {}
        self.wanted: Callable[[Fault], bool] = lambda fault: False
        self.came: dict[RunState, tuple[RunState, tuple[RunStep, ...]] | None] = {}

    def between(self, fault: Fault, clauses: list[Origin]) -> bool:
        """Return whether a fault is about these clauses."""
        clause = self.system.at(fault.place).origin
        if len(clauses) == 1 or fault.kind == ROUND:
            return clause in clauses
        others = {self.system.at(place).origin for place in fault.others}
        first, second = clauses
        return (clause == first and second in others) or (clause == second and first in others)

    def meeting(self, clauses: list[Origin]) -> Counterexample | None:
        """Return the shortest run of the backward search to two clauses, if there is one."""
        if not self.system.usable:
            return None
        found = [
            Counterexample(self.run, steps, fault)
            for steps, fault in meetings(self.system, *clauses)
            if self.wanted(fault)
        ]
        return min(found, key=lambda run: len(run.steps), default=None)

    def end(self) -> Counterexample | None:
        """Return the run of the backward search to where processes wait forever, if any."""
        if not self.system.usable:
            return None
        stuck = self._stuck(self._onward(self.system.start()))
        search = BackwardSearch(self.system)
        if not stuck or not all(search.reach(place) for place in stuck):
            return None
        if self._stuck(search.state) != stuck:
            return None
        return Counterexample(self.run, tuple(search.steps), None, stuck)

    def search(self) -> Counterexample | None:
        """Return the counterexample with the fewest steps."""
        if not self.system.usable:
            return None
        start = self.system.start()
        self.came[start] = None
        level, queues = 0, {0: [start]}
        done: set[RunState] = set()
        while queues:
            for state in queues.pop(level, ()):
                if state in done:
                    continue
                done.add(state)
                self.left -= len(self.run.processes)
                if self.left < 0:
                    return None
                stuck = self._stuck(state)
                if stuck:
                    passed = [
                        RunStep(index, place)
                        for index, position in stuck
                        for place in range(state.positions[index], position)
                    ]
                    return Counterexample(self.run, (*self._steps(state), *passed), None, stuck)
                for steps, after, fault in self._next(state):
                    if fault is not None and self.wanted(fault):
                        return Counterexample(self.run, (*self._steps(state), *steps), fault)
                    if after is not None and after not in self.came:
                        self.came[after] = (state, steps)
                        queues.setdefault(level + len(steps), []).append(after)
            level += 1
            if level > 10_000:
                return None
        return None

    def _next(self, state: RunState) -> Iterator[Move]:
        for index in range(len(self.run.processes)):
            yield from self._block(state, index)
        for place in sorted(state.flying):
            yield (RunStep(*place, True),), self.system.land(state, place), None

    def _block(self, state: RunState, index: int) -> Iterator[Move]:
        """Yield the actions up to the next one that another process may observe."""
        steps: list[RunStep] = []
        now, before = state, str(Kind.WAIT)
        while (action := self.system.action(now, index)) is not None:
            if action.kind in WAITS and before not in WAITS:
                break
            step = RunStep(index, now.positions[index])
            after, fault = self.system.act(now, index)
            if fault is not None:
                yield (*steps, step), None, fault
            if after is None:
                return
            steps.append(step)
            now, before = after, action.kind
            if before not in WAITS and before not in _FOLLOW:
                break
        if steps:
            yield tuple(steps), now, None

    def _stuck(self, state: RunState) -> tuple[tuple[int, int], ...]:
        """Return the waits of the processes that block each other, if they wait forever."""
        if not self.waits:
            return ()
        found = []
        for index, origins in self.waits.items():
            place = self._waiting(state, index)
            if place is None or self.system.at(place).origin not in origins:
                return ()
            found.append(place)
        last = self._onward(state)
        return tuple(found) if all(self._waiting(last, p) == (p, at) for p, at in found) else ()

    def _waiting(self, state: RunState, index: int) -> tuple[int, int] | None:
        """Return the next wait of a process, if it cannot pass it."""
        program = self.system.programs[index]
        for position in range(state.positions[index], len(program)):
            if program[position].kind not in WAITS:
                return None
            if not self.system.passes(state, program[position]):
                return index, position
        return None

    def _onward(self, state: RunState) -> RunState:
        """Return the state after all actions that are still possible."""
        moved = True
        while moved:
            moved = False
            for place in sorted(state.flying):
                state, moved = self.system.land(state, place), True
            for index in range(len(self.run.processes)):
                for _, after, _ in self._block(state, index):
                    if after is not None:
                        state, moved = after, True
        return state

    def _steps(self, state: RunState) -> tuple[RunStep, ...]:
        parts: list[tuple[RunStep, ...]] = []
        while (came := self.came[state]) is not None:
            state, steps = came
            parts.append(steps)
        return tuple(step for steps in reversed(parts) for step in steps)
