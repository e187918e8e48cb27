"""What every kind of action does to the state of a machine: the table that new kinds join.

mbarrier: phase, pending arrivals, pending bytes (PTX ISA, mbarrier: a phase completes when both are
zero; a wait by parity passes iff the parity of the current phase differs).  Named barriers: threads
that came.  Copies arrive at any time after their issue; wgmma and store groups read until they are
awaited.

Proxies (PTX ISA, memory consistency model; cp.async.bulk and wgmma, async proxy): a generic access
reaches the asynchronous proxy at any time after it, and for certain only through a proxy fence on
the way.  So it is kept as unseen until a fence runs; an asynchronous access that meets one has read
old data, or has overtaken it.  The way back needs no fence: completion brings one along.  A fence
of a thread that is not ordered between the two helps in some interleavings only, and all are tried.
"""

from __future__ import annotations

from collections.abc import Callable

from unit.check.machine import FOLLOWS, KINDS, WAITS, Bad, Cell, Machine, Semantics, Transition

from pipelink_rules.check.protocol.model import Action, Kind

Phase = tuple[int, int, int]  # number, pending arrivals, pending bytes


def _wait(machine: Machine, index: int, position: int, action: Action) -> Callable[[], Transition]:
    stages = machine.composition.barriers[action.target].stages
    wanted = action.item // stages

    def rule(now: Phase) -> Phase | None:
        passes = (now[0] & 1) != (wanted & 1)
        if now[0] > wanted + 1 or (now[0] < wanted and passes):
            raise Bad("alias")
        return now if passes else None

    cell = _barrier(machine, action.target, action.item)
    return lambda: cell.moved(rule, machine.one(index, position))


def _arrive(
    machine: Machine, index: int, position: int, action: Action
) -> Callable[[], Transition]:
    cell = _barrier(machine, action.target, action.item)
    settled = _settled(machine, action.target, action.amount, action.bytes)
    wanted = action.item // machine.composition.barriers[action.target].stages

    def rule(now: Phase) -> Phase:
        if now[0] != wanted:
            raise Bad("alias")  # counted for another phase
        return settled(now)

    return lambda: cell.moved(rule, machine.one(index, position))


def _barrier(machine: Machine, name: str, item: int) -> Cell:
    stages, arrivals, _ = machine.composition.barriers[name]
    return machine.cell((name, item % stages), (0, arrivals, 0))


def _settled(machine: Machine, name: str, came: int, size: int) -> Callable[[Phase], Phase]:
    arrivals = machine.composition.barriers[name].arrivals

    def rule(now: Phase) -> Phase:
        phase, pending, tx = now[0], now[1] - came, now[2] + size
        while pending <= 0 and tx == 0:
            phase, pending = phase + 1, pending + arrivals
        return phase, pending, tx

    return rule


def _copy(machine: Machine, index: int, position: int, action: Action) -> Callable[[], Transition]:
    target, item = action.target, action.item
    place = target, item % machine.composition.memories[target].stages
    bit = machine.flight(index, position)
    copies = machine.copies[place]
    copies[item] = copies.get(item, 0) | bit
    content = _slot(machine, place)
    barrier = _barrier(machine, action.barrier, action.item)
    landed = content.moved(lambda now: _written(now, item))
    delivered = barrier.moved(_settled(machine, action.barrier, 0, -action.bytes), -bit)
    machine.arrivals[bit] = lambda state: landed(delivered(state))

    def make() -> Transition:
        racing = machine.groups[place] | _of_others(copies, item)
        unseen = _of_others(machine.generic[place], item)
        further = machine.one(index, position) + bit

        def transition(state: int) -> int:
            if state & racing:
                raise Bad("race")
            if state & unseen:
                machine.crossed = True
            return state + further

        return transition

    return make


def _of_others(bits: dict[int, int], item: int) -> int:
    found = 0
    for other, mask in bits.items():
        if other != item:
            found |= mask
    return found


def _slot(machine: Machine, place: tuple[str, int]) -> Cell:
    return machine.cell(("content", *place), (None, 0))


def _written(now: tuple[int | None, int], item: int) -> tuple[int | None, int]:
    if now[0] is not None and now[0] > item:
        raise Bad("race")  # it wipes out a later item
    return (item, now[1] + 1) if now[0] == item else (item, 1)


def _unseen(machine: Machine, place: tuple[str, int], kind: str, item: int) -> int:
    """The bit of a generic access that the asynchronous proxy may not have seen yet."""
    if place[0] not in machine.asynchronous:
        return 0
    bit = machine.bit((kind, *place, item))
    machine.fenced |= bit
    generic = machine.generic[place]
    generic[item] = generic.get(item, 0) | bit
    return bit


def _write(machine: Machine, index: int, position: int, action: Action) -> Callable[[], Transition]:
    target, item = action.target, action.item
    place = target, item % machine.composition.memories[target].stages
    content = _slot(machine, place)
    bit = _unseen(machine, place, Kind.WRITE, item)
    moved = content.moved(lambda now: _written(now, item), machine.one(index, position))

    def make() -> Transition:
        racing = machine.groups[place] | _of_others(machine.copies[place], -1)

        def transition(state: int) -> int:
            if state & racing:
                raise Bad("race")
            return moved(state) | bit

        return transition

    return make


def _read(machine: Machine, index: int, position: int, action: Action) -> Callable[[], Transition]:
    target, item = action.target, action.item
    place = target, item % machine.composition.memories[target].stages
    whole = item, machine.parts[target, item]
    content = _slot(machine, place)
    if action.kind == Kind.READ:
        bit = _unseen(machine, place, Kind.READ, item)
    else:
        bit = machine.bit((index, position))
        machine.groups[place] |= bit
        machine.pending[index].append((action.kind, bit))

    def rule(now: tuple[int | None, int]) -> tuple[int | None, int]:
        if now != whole:
            raise Bad("race")
        return now

    def make() -> Transition:
        racing = _of_others(machine.copies[place], -1)
        moved = content.moved(rule, machine.one(index, position))
        unseen = 0
        if action.kind != Kind.READ:
            for other in machine.generic[place]:
                unseen |= machine.bits.get((Kind.WRITE, *place, other), 0)

        def transition(state: int) -> int:
            if state & racing:
                raise Bad("race")
            after = moved(state) | bit
            if state & unseen:
                machine.crossed = True
            return after

        return transition

    return make


def _await(machine: Machine, index: int, position: int, action: Action) -> Callable[[], Transition]:
    pending = machine.pending[index]
    mine = [bit for kind, bit in pending if kind == action.target]
    over = sum(mine[: max(len(mine) - action.amount, 0)])
    keep = ~over
    one = machine.one(index, position)
    return lambda: lambda state: (state & keep) + one


def _fence(machine: Machine, index: int, position: int, action: Action) -> Callable[[], Transition]:
    def make() -> Transition:
        keep, one = ~machine.fenced, machine.one(index, position)
        return lambda state: (state & keep) + one

    return make


def _signal(
    machine: Machine, index: int, position: int, action: Action
) -> Callable[[], Transition]:
    threads = machine.composition.named[action.target].threads

    def rule(came: int) -> int:
        if came // threads != action.item:
            raise Bad("alias")  # counted for another generation
        return came + action.amount

    return lambda: machine.cell(action.target, 0).moved(rule, machine.one(index, position))


def _meet(machine: Machine, index: int, position: int, action: Action) -> Callable[[], Transition]:
    enough = (action.item + 1) * machine.composition.named[action.target].threads

    def rule(came: int) -> int | None:
        return came if came >= enough else None

    return lambda: machine.cell(action.target, 0).moved(rule, machine.one(index, position))


KINDS.update(
    {
        Kind.WAIT: Semantics(_wait, WAITS),
        Kind.MEET: Semantics(_meet, WAITS),
        Kind.READ: Semantics(_read, FOLLOWS),
        Kind.MMA: Semantics(_read, FOLLOWS),
        Kind.STORE: Semantics(_read, FOLLOWS),
        Kind.AWAIT: Semantics(_await, FOLLOWS),
        Kind.TOUCH: Semantics(_fence, FOLLOWS),  # never executed: processes pass over it
        Kind.ARRIVE: Semantics(_arrive),
        Kind.COPY: Semantics(_copy),
        Kind.WRITE: Semantics(_write),
        Kind.FENCE: Semantics(_fence),
        Kind.SIGNAL: Semantics(_signal),
    }
)
