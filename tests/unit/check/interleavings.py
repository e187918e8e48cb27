"""Every interleaving of a finite composition, with the exact state of the hardware's barriers.

mbarrier: phase, pending arrivals, pending bytes (PTX ISA, mbarrier: a phase completes when both are
zero; a wait by parity passes iff the parity of the current phase differs).  Named barriers: threads
that came, processes that wait.  Copies arrive at any time after their issue; wgmma and store groups
read until they are awaited.  Fences do nothing here: proxies have no state that could be explored.
"""

from __future__ import annotations

from collections import defaultdict

from pipelink_rules.check.protocol.model import (
    ARRIVE,
    AWAIT,
    COPY,
    FENCE,
    MEET,
    MMA,
    READ,
    SIGNAL,
    STORE,
    TOUCH,
    WAIT,
    WRITE,
    Composition,
)

OK, RACE, DEADLOCK, ALIAS, LIMIT = "ok", "race", "deadlock", "alias", "limit"


class _Bad(Exception):
    pass


def explore(composition: Composition, limit: int = 200_000) -> str:
    """The verdict over all interleavings of a finite composition."""
    assert composition.finite
    machine = _Machine(composition)
    start = machine.start()
    seen, todo = {start}, [start]
    try:
        while todo:
            state = todo.pop()
            found = machine.steps(state)
            if not found and not machine.over(state):
                return DEADLOCK
            for following in found:
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
            if len(seen) > limit:
                return LIMIT
    except _Bad as bad:
        return str(bad)
    return OK


class _Machine:
    def __init__(self, composition: Composition):
        self.composition = composition
        self.programs = [
            [action for action in process.period if action.kind not in (FENCE, TOUCH)]
            for process in composition.processes
        ]
        self.barrier = {
            key: index
            for index, key in enumerate(
                (name, stage)
                for name, barrier in composition.barriers.items()
                for stage in range(barrier.stages)
            )
        }
        self.counts = [composition.barriers[name].arrivals for name, _ in self.barrier]
        self.slot = {
            key: index
            for index, key in enumerate(
                (name, stage)
                for name, memory in composition.memories.items()
                for stage in range(memory.stages)
            )
        }
        self.named = {name: index for index, name in enumerate(composition.named)}
        self.threads = [named.threads for named in composition.named.values()]
        self.parts: dict[tuple[str, int], int] = defaultdict(int)  # writes that make up an item
        for program in self.programs:
            for action in program:
                if action.kind in (COPY, WRITE):
                    self.parts[action.target, action.item] += 1

    def start(self) -> tuple:
        return (
            (0,) * len(self.programs),
            tuple((0, count, 0) for count in self.counts),
            ((None, 0),) * len(self.slot),
            (),  # copies in flight: (slot, item, barrier, bytes)
            ((),) * len(self.programs),  # pending groups: (kind, slot)
            (0,) * len(self.threads),  # threads that came, over all generations
        )

    def over(self, state: tuple) -> bool:
        return all(at == len(p) for at, p in zip(state[0], self.programs, strict=True))

    def steps(self, state: tuple) -> list[tuple]:
        positions, barriers, slots, flying, groups, named = state
        found = []
        for index, program in enumerate(self.programs):
            if positions[index] < len(program):
                following = self._act(state, index, program[positions[index]])
                if following is not None:
                    found.append(following)
        for copy in set(flying):
            slot, item, barrier, size = copy
            left = list(flying)
            left.remove(copy)
            phase, pending, tx = barriers[barrier]
            found.append(
                (
                    positions,
                    self._settle(barriers, barrier, (phase, pending, tx - size)),
                    _put(slots, slot, self._written(slots[slot], item)),
                    tuple(left),
                    groups,
                    named,
                )
            )
        return found

    def _settle(self, barriers: tuple, index: int, value: tuple[int, int, int]) -> tuple:
        phase, pending, tx = value
        while pending <= 0 and tx == 0:
            phase, pending = phase + 1, pending + self.counts[index]
        return _put(barriers, index, (phase, pending, tx))

    def _written(self, content: tuple, item: int) -> tuple:
        return (item, content[1] + 1) if content[0] == item else (item, 1)

    def _act(self, state: tuple, index: int, action) -> tuple | None:
        positions, barriers, slots, flying, groups, named = state
        kind, target, item = action.kind, action.target, action.item
        moved = _put(positions, index, positions[index] + 1)
        if kind == WAIT:
            stages = self.composition.barriers[target].stages
            phase = barriers[self.barrier[target, item % stages]][0]
            wanted = item // stages
            passes = (phase & 1) != (wanted & 1)
            if phase > wanted + 1 or (phase < wanted and passes):
                raise _Bad(ALIAS)
            return (moved, *state[1:]) if passes else None
        if kind == ARRIVE:
            place = self.barrier[target, item % self.composition.barriers[target].stages]
            phase, pending, tx = barriers[place]
            value = (phase, pending - action.amount, tx + action.bytes)
            return (moved, self._settle(barriers, place, value), *state[2:])
        if kind in (COPY, WRITE, READ, MMA, STORE):
            place = self.slot[target, item % self.composition.memories[target].stages]
            if any(copy[0] == place and (copy[1] != item or kind != COPY) for copy in flying):
                raise _Bad(RACE)
            if kind in (COPY, WRITE):
                if any(slot == place for pending in groups for _, slot in pending):
                    raise _Bad(RACE)
            elif slots[place] != (item, self.parts[target, item]):
                raise _Bad(RACE)
        if kind == COPY:
            stages = self.composition.barriers[action.barrier].stages
            barrier = self.barrier[action.barrier, item % stages]
            copy = (place, item, barrier, action.bytes)
            return (moved, barriers, slots, tuple(sorted((*flying, copy))), groups, named)
        if kind == WRITE:
            written = _put(slots, place, self._written(slots[place], item))
            return (moved, barriers, written, *state[3:])
        if kind in (MMA, STORE):
            pending = _put(groups, index, (*groups[index], (kind, place)))
            return (moved, barriers, slots, flying, pending, named)
        if kind == AWAIT:
            mine = [group for group in groups[index] if group[0] == target]
            over = len(mine) - action.amount
            kept = []
            for group in groups[index]:
                if group[0] == target and over > 0:
                    over -= 1
                else:
                    kept.append(group)
            return (moved, barriers, slots, flying, _put(groups, index, tuple(kept)), named)
        if kind == SIGNAL:
            place = self.named[target]
            if named[place] // self.threads[place] != item:
                raise _Bad(ALIAS)  # counted for another generation
            came = _put(named, place, named[place] + action.amount)
            return (moved, barriers, slots, flying, groups, came)
        if kind == MEET:
            place = self.named[target]
            return (moved, *state[1:]) if named[place] >= (item + 1) * self.threads[place] else None
        assert kind == READ
        return (moved, *state[1:])


def _put(values: tuple, index: int, value: object) -> tuple:
    return (*values[:index], value, *values[index + 1 :])
