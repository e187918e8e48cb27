"""Transition system of a finite composition: a state -> the states that can follow.

A state is the position of every process, the counts of barriers, the contents of memories, the
pending copies, and the generic accesses that the asynchronous proxy may not have observed.  It is
used to show a run into a fault, never to decide whether there is one.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from pipelink_rules.check.protocol.model import (
    IN_TENSOR_MEMORY,
    UNKNOWN,
    WAITS,
    Action,
    Barrier,
    Composition,
    Kind,
    Memory,
)

T = TypeVar("T")

# Kinds without a transition: there are no counterexamples of tensor memory.
TCGEN05 = {*IN_TENSOR_MEMORY, Kind.TENSOR_MMA, Kind.TENSOR_COMMIT, Kind.BEFORE, Kind.AFTER}
Place = tuple[int, int]  # process, position
Slot = tuple[str, int]  # memory, stage

ORDER = "order"  # data is read before it is written, or overwritten before it is read
PROXY = "proxy"  # an access that the other proxy may not have observed
PHASE = "phase"  # a wait or an arrival is about another phase than intended
ROUND = "round"  # an arrival at a named barrier counts for another generation


class Fault(NamedTuple):
    """The fault when `place` is executed; `others` are involved."""

    kind: str
    place: Place
    others: tuple[Place, ...] = ()


class RunStep(NamedTuple):
    """The next action of a process, or the completion of its copy (`lands`)."""

    process: int
    position: int
    lands: bool = False


class RunState(NamedTuple):
    """Everything that decides what can happen next."""

    positions: tuple[int, ...]
    phases: tuple[tuple[int, int, int], ...]  # per mbarrier: phase, arrivals and bytes missing
    contents: tuple[tuple[int, int], ...]  # per slot: item, pieces of it
    rounds: tuple[int, ...]  # per named barrier: threads that came
    flying: frozenset[Place]  # copies
    unseen: frozenset[Place]  # generic accesses


class TransitionSystem:
    """The transitions of a run.  `usable`: no action is of a kind that is not known here."""

    def __init__(self, run: Composition):
        self.programs = [process.period for process in run.processes]
        self.usable = not any(action.kind in TCGEN05 for action in run.actions())
        self.run = run
        self.mbarriers = _numbered(run.barriers)
        self.slots = _numbered(run.memories)
        self.named = {name: index for index, name in enumerate(run.named)}
        self.writes: dict[tuple[str, int], list[Place]] = defaultdict(list)  # memory, item
        self.bytes: dict[Place, int] = {}
        self._measure()
        self.pending = [list(_pending(index, p)) for index, p in enumerate(self.programs)]

    def _measure(self) -> None:
        """Divide the expected bytes among copies whose size depends on the work tile."""
        announced: dict[tuple[str, int], int] = defaultdict(int)
        copies: dict[tuple[str, int], list[Place]] = defaultdict(list)
        for index, program in enumerate(self.programs):
            for position, action in enumerate(program):
                if action.kind in (Kind.COPY, Kind.WRITE):
                    self.writes[action.target, action.item].append((index, position))
                if action.kind == Kind.ARRIVE:
                    announced[action.target, action.item] += action.bytes
                elif action.kind == Kind.COPY and action.bytes == UNKNOWN:
                    copies[action.barrier, action.item].append((index, position))
                elif action.kind == Kind.COPY:
                    self.bytes[index, position] = action.bytes
        for phase, places in copies.items():
            for place in places:
                self.bytes[place] = announced[phase] // len(places)

    def start(self) -> RunState:
        """Return the initial state."""
        phases = tuple((0, self.run.barriers[name].arrivals, 0) for name, _ in self.mbarriers)
        positions, contents = (0,) * len(self.programs), ((-1, 0),) * len(self.slots)
        rounds = (0,) * len(self.named)
        return RunState(positions, phases, contents, rounds, frozenset(), frozenset())

    def action(self, state: RunState, index: int) -> Action | None:
        """Return the next action of a process."""
        position = state.positions[index]
        return self.programs[index][position] if position < len(self.programs[index]) else None

    def passes(self, state: RunState, action: Action) -> bool | None:
        """Return whether a wait passes now; None at phase aliasing."""
        if action.kind == Kind.MEET:
            wanted = (action.item + 1) * self.run.named[action.target].threads
            return state.rounds[self.named[action.target]] >= wanted
        number, at = self._phase(action.target, action.item)
        ahead = state.phases[at][0] - number
        return None if ahead > 1 or (ahead < 0 and ahead % 2 == 1) else ahead == 1

    def _phase(self, barrier: str, item: int) -> tuple[int, int]:
        stages = self.run.barriers[barrier].stages
        return item // stages, self.mbarriers[barrier, item % stages]

    def act(self, state: RunState, index: int) -> tuple[RunState | None, Fault | None]:
        """Return the state after the next action of a process (None: it waits) and the fault."""
        position = state.positions[index]
        action, place = self.programs[index][position], (index, position)
        moved = state._replace(positions=_put(state.positions, index, position + 1))
        kind = action.kind
        if kind in WAITS:
            passed = self.passes(state, action)
            if passed is None:
                return None, Fault(PHASE, place)
            return (moved if passed else None), None
        if kind == Kind.ARRIVE:
            number, at = self._phase(action.target, action.item)
            if state.phases[at][0] != number:
                return None, Fault(PHASE, place)
            return self._counted(moved, at, action.target, action.amount, action.bytes), None
        if kind == Kind.SIGNAL:
            at = self.named[action.target]
            came = state.rounds[at]
            if came // self.run.named[action.target].threads != action.item:
                return None, Fault(ROUND, place)
            return moved._replace(rounds=_put(state.rounds, at, came + action.amount)), None
        if kind == Kind.FENCE:
            return moved._replace(unseen=frozenset()) if state.unseen else moved, None
        if kind in (Kind.COPY, Kind.WRITE, Kind.READ, Kind.MMA, Kind.STORE):
            return self._access(state, moved, place, action)
        return moved, None  # awaits and touches: what is pending depends on the position alone

    def _counted(self, state: RunState, at: int, name: str, came: int, size: int) -> RunState:
        phase, missing, left = state.phases[at]
        missing, left = missing - came, left + size
        while missing <= 0 and left == 0:
            phase, missing = phase + 1, missing + self.run.barriers[name].arrivals
        return state._replace(phases=_put(state.phases, at, (phase, missing, left)))

    def _access(
        self, state: RunState, moved: RunState, place: Place, action: Action
    ) -> tuple[RunState | None, Fault | None]:
        target, item, kind = action.target, action.item, action.kind
        stages = self.run.memories[target].stages
        slot = target, item % stages
        at = self.slots[slot]
        wrong = [
            other
            for other in state.flying
            if self.slot(other) == slot and (kind != Kind.COPY or self.at(other).item != item)
        ]
        holds, pieces = state.contents[at]
        if kind in (Kind.COPY, Kind.WRITE):
            for index, position in enumerate(state.positions):
                reading = self.pending[index][position]
                wrong += [other for other in reading if self.slot(other) == slot]
            if holds > item:
                wrong += self.writes[target, holds]
        elif (holds, pieces) != (item, len(self.writes[target, item])):
            wrong += self.writes[target, item]
            wrong += self.writes[target, holds] if holds != item else []
        if wrong:
            return None, Fault(ORDER, place, tuple(wrong))
        fault = self._crossing(state, place, action, slot)
        if kind == Kind.COPY:
            return moved._replace(flying=moved.flying | {place}), fault
        if kind == Kind.WRITE:
            moved = moved._replace(contents=_put(state.contents, at, _more(holds, pieces, item)))
        if kind in (Kind.READ, Kind.WRITE):
            moved = moved._replace(unseen=moved.unseen | {place})
        return moved, fault

    def _crossing(self, state: RunState, place: Place, action: Action, slot: Slot) -> Fault | None:
        if action.kind in (Kind.READ, Kind.WRITE) or not state.unseen:
            return None
        met = [other for other in state.unseen if self.slot(other) == slot]
        if action.kind == Kind.COPY:
            met = [other for other in met if self.at(other).item != action.item]
        else:
            met = [other for other in met if self.at(other).kind == Kind.WRITE]
        return Fault(PROXY, place, tuple(met)) if met else None

    def land(self, state: RunState, place: Place) -> RunState:
        """Complete a copy: its data is visible and its bytes are counted."""
        action = self.at(place)
        at = self.slots[self.slot(place)]
        holds, pieces = state.contents[at]
        landed = state._replace(
            flying=state.flying - {place},
            contents=_put(state.contents, at, _more(holds, pieces, action.item)),
        )
        _, barrier = self._phase(action.barrier, action.item)
        return self._counted(landed, barrier, action.barrier, 0, -self.bytes[place])

    def at(self, place: Place) -> Action:
        """Return the action there."""
        return self.programs[place[0]][place[1]]

    def slot(self, place: Place) -> Slot:
        """Return the slot of an access."""
        action = self.at(place)
        return action.target, action.item % self.run.memories[action.target].stages


def _numbered(objects: dict[str, Barrier] | dict[str, Memory]) -> dict[tuple[str, int], int]:
    keys = [(name, stage) for name, found in objects.items() for stage in range(found.stages)]
    return {key: index for index, key in enumerate(keys)}


def _pending(index: int, program: tuple[Action, ...]) -> Iterator[tuple[Place, ...]]:
    """Yield the pending groups before every action, and at the end."""
    groups: deque[tuple[str, Place]] = deque()
    for position, action in enumerate(program):
        yield tuple(place for _, place in groups)
        if action.kind in (Kind.MMA, Kind.STORE):
            groups.append((action.kind, (index, position)))
        elif action.kind == Kind.AWAIT:
            mine = [group for group in groups if group[0] == action.target]
            for group in mine[: max(len(mine) - action.amount, 0)]:
                groups.remove(group)
    yield tuple(place for _, place in groups)


def _more(holds: int, pieces: int, item: int) -> tuple[int, int]:
    return (item, pieces + 1) if holds == item else (item, 1)


def _put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])
