"""Every interleaving of a finite composition, by an executor that knows nothing of the graph.

A state is one number: a field for the position of every process, one for every barrier and piece
of memory (`machine.py`), one bit for everything in flight.  What actions do to them is a table
(`machine_actions.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import unit.check.machine_actions  # fills the table
import unit.check.machine_tensor  # noqa: F401  likewise
from unit.check.machine import Bad, Machine

from pipelink_rules.check.protocol.model import Composition

OK, DEADLOCK, LIMIT = "ok", "deadlock", "limit"
RACE, ALIAS = "race", "alias"  # raised by actions
PROXY = "proxy"  # an access that the other proxy need not see, and nothing worse


class Step(NamedTuple):
    """The next action of a process, or what one of its actions left in flight arrives."""

    process: int
    position: int
    arrival: bool = False


def explore(composition: Composition, limit: int = 200_000, atomic: bool = True) -> str:
    """The verdict over all interleavings of a finite composition.

    `atomic`: of blocks of actions that nothing need interrupt (see Machine).
    """
    assert composition.finite
    machine = Machine(composition, atomic)
    places, programs, flying = machine.places, machine.programs, machine.flying
    arrivals, end = machine.arrivals, machine.end
    seen, todo = {machine.start}, [machine.start]
    try:
        while todo:
            state = todo.pop()
            stuck = True
            for shift, mask, program in zip(*places, programs, strict=True):
                following = program[state >> shift & mask](state)
                if following != state:
                    stuck = False
                    if following not in seen:
                        seen.add(following)
                        todo.append(following)
            left = state & flying
            while left:
                bit = left & -left
                left ^= bit
                following = arrivals[bit](state)
                if following != state:
                    stuck = False
                    if following not in seen:
                        seen.add(following)
                        todo.append(following)
            if stuck:
                if state & end.mask != end.value:
                    return DEADLOCK
                machine.ended(state)
            if len(seen) > limit:
                return LIMIT
    except Bad as bad:
        return str(bad)
    finally:
        machine.close()
    return PROXY if machine.crossed else OK


def replay(composition: Composition, schedule: Iterable[Step]) -> str:
    """The verdict over one interleaving; LIMIT where one of its steps is not possible."""
    machine = Machine(composition)
    try:
        state = _run(machine, schedule)
        if state is None:
            return LIMIT
        if machine.over(state):
            machine.ended(state)
    except Bad as bad:
        return str(bad)
    if machine.crossed:
        return PROXY
    return DEADLOCK if machine.stuck(state) else OK


def hangs(
    composition: Composition, schedule: Iterable[Step], waits: Iterable[tuple[int, int]]
) -> bool:
    """Whether these processes wait at these positions whatever is done after the schedule."""
    machine = Machine(composition)
    state = _run(machine, schedule)
    while state is not None:
        if any(machine.position(state, index) != position for index, position in waits):
            return False
        following = None
        for step in machine.choices(state):
            try:
                after = step(state)
            except Bad:  # another failure, of another process
                continue
            if after != state:
                following = after
                break
        if following is None:
            return True
        state = following
    return False


def _run(machine: Machine, schedule: Iterable[Step]) -> int | None:
    bits = {source: bit for bit, source in machine.sources.items()}
    state = machine.start
    for index, position, arrival in schedule:
        if arrival:
            bit = bits[index, position]
            following = machine.arrivals[bit](state) if state & bit else state
        elif machine.composition.processes[index].period[position].kind in machine.idle:
            continue
        elif machine.position(state, index) == position:
            following = machine.programs[index][position](state)
        else:
            return None
        if following == state:
            return None
        state = following
    return state
