"""Backward search: the shortest run to an action, from the actions that it requires.

There is no choice: a wait requires all arrivals of its phase, an action those before it in its
process.  So this is fast for any number of processes.  It does not look for faults on the way: if
there are some, the forward search of counterexample.py has to find a run.
"""

from collections import defaultdict
from collections.abc import Iterator

from pipelink_rules.check.protocol.model import WRITES, Action, Kind, Origin
from pipelink_rules.check.protocol.transition_system import (
    Fault,
    Place,
    RunState,
    RunStep,
    TransitionSystem,
)

MOST_PAIRS = 16


class BackwardSearch:
    """A run that is extended until the requested action is reached."""

    def __init__(self, system: TransitionSystem):
        self.system = system
        self.state: RunState = system.start()
        self.steps: list[RunStep] = []
        self._barred: dict[int, int] = {}  # process -> position that it may not go beyond
        self._held: Place | None = None  # a copy that does not land
        self._requested: list[int] = []
        self._givers: dict[tuple[str, str, int], list[Place]] = defaultdict(list)
        for index, program in enumerate(system.programs):
            for position, action in enumerate(program):
                if action.kind in (Kind.ARRIVE, Kind.SIGNAL):
                    kind = Kind.WAIT if action.kind == Kind.ARRIVE else Kind.MEET
                    self._givers[kind, action.target, action.item].append((index, position))
                elif action.kind == Kind.COPY:
                    self._givers[Kind.WAIT, action.barrier, action.item].append((index, position))

    def reach(
        self, place: Place, barred: dict[int, int] | None = None, held: Place | None = None
    ) -> bool:
        """Continue until a process is about to perform an action; return whether it can.

        barred: how far other processes may go.  held: a copy that does not complete.
        """
        self._barred, self._held, self._requested = barred or {}, held, []
        return self._reach(*place)

    def _reach(self, index: int, position: int) -> bool:
        if index in self._requested:
            return False  # it waits for itself
        self._requested.append(index)
        done = True
        while done and self.state.positions[index] < position:
            done = self._step(index)
        self._requested.pop()
        return done and self.state.positions[index] == position

    def _step(self, index: int) -> bool:
        at = self.state.positions[index]
        if at >= self._barred.get(index, at + 1):
            return False
        after, _ = self.system.act(self.state, index)
        if after is None:
            action = self.system.programs[index][at]
            if action.kind not in (Kind.WAIT, Kind.MEET) or not self._supply(action):
                return False
            after, _ = self.system.act(self.state, index)
            if after is None:
                return False
        self.steps.append(RunStep(index, at))
        self.state = after
        return True

    def _supply(self, action: Action) -> bool:
        """Perform all actions that a wait waits for."""
        for index, position in self._givers[action.kind, action.target, action.item]:
            if self.state.positions[index] <= position and not self._reach(index, position + 1):
                return False
            if (index, position) in self.state.flying:
                if (index, position) == self._held:
                    return False
                self.steps.append(RunStep(index, position, True))
                self.state = self.system.land(self.state, (index, position))
        return True

    def act(self, place: Place) -> Fault | None:
        """Perform the action that was reached and return its fault."""
        index, position = place
        after, fault = self.system.act(self.state, index)
        self.steps.append(RunStep(index, position))
        if after is not None:
            self.state = after
        return fault


def meetings(
    system: TransitionSystem, first: Origin, second: Origin
) -> Iterator[tuple[tuple[RunStep, ...], Fault]]:
    """Yield runs in which two accesses of a stage conflict, for the first of their pairs."""
    at: dict[tuple[str, int], list[Place]] = defaultdict(list)  # memory, item
    for y in _places(system, second):
        at[system.at(y).target, system.at(y).item].append(y)
    pairs = []
    for x in _places(system, first):
        _, target, item, *_ = system.at(x)
        stages = system.run.memories[target].stages
        for y in (*at[target, item], *at[target, item + stages]):
            if _ordered(system, x, y):
                pairs.append((system.at(y).item, item, x, y))
    for _, _, x, y in sorted(pairs)[:MOST_PAIRS]:
        for search, fault in _meet(system, x, y):
            yield tuple(search.steps), fault


def _ordered(system: TransitionSystem, x: Place, y: Place) -> bool:
    """Return whether one must follow the other: data and readers, a stage and its next use."""
    first, second = system.at(x), system.at(y)
    if first.item == second.item:
        return first.kind in WRITES and second.kind not in WRITES
    return second.kind in WRITES


def _places(system: TransitionSystem, origin: Origin) -> list[Place]:
    return [
        (index, position)
        for index, program in enumerate(system.programs)
        for position, action in enumerate(program)
        if action.origin == origin
    ]


def _meet(system: TransitionSystem, x: Place, y: Place) -> Iterator[tuple[BackwardSearch, Fault]]:
    kind = system.at(x).kind
    # The second while the first has started but is not complete.
    search = BackwardSearch(system)
    if search.reach((x[0], x[1] + 1)):
        barred = {x[0]: _over(system, x)} if kind in (Kind.MMA, Kind.STORE) else {}
        if search.reach(y, barred, x if kind == Kind.COPY else None):
            fault = search.act(y)
            if fault:
                yield search, fault
    # The second before the first; the fault is at the second, or at the first later.
    search = BackwardSearch(system)
    if x[0] != y[0] and search.reach(y, {x[0]: x[1]}):
        before = search.state
        fault = search.act(y)
        if fault:
            yield search, fault
        elif search.state is not before and search.reach(x, held=y):
            fault = search.act(x)
            if fault:
                yield search, fault


def _over(system: TransitionSystem, group: Place) -> int:
    """Return the position of the await of a group."""
    index, position = group
    pending = system.pending[index]
    while position + 1 < len(pending) and group in pending[position + 1]:
        position += 1
    return position
