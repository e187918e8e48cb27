"""What operations on tensor memory do to the state of a machine (PTX ISA, tcgen05 consistency).

An operation is in flight for other threads from the last fence::after_thread_sync in front of it,
because it may be executed that early, until it is exported: a load or store that is awaited by the
next fence::before_thread_sync, an mma by the commit after it.  For its own thread a load or store
is in flight from its place in the program until it is awaited.  What is in flight overlaps; a load
finds its item complete as early as it may be executed, or it has read something else.

A commit arrives at any time after it is issued; with it all mma in front of it are over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from unit.check.machine import FOLLOWS, KINDS, Bad, Machine, Semantics, Transition
from unit.check.machine_actions import _barrier, _read, _settled, _slot, _written

from pipelink_rules.check.protocol.model import IN_TENSOR_MEMORY, Action, Kind

PLAIN_AWAIT = KINDS[Kind.AWAIT].make


class Access(NamedTuple):
    """One operation on tensor memory."""

    index: int
    position: int
    kind: str
    place: tuple[str, int]
    item: int
    early: int  # the fence from which on it may be executed; -1: the start of its process


def _accesses(machine: Machine, index: int | None = None) -> Iterator[Access]:
    for number, process in enumerate(machine.composition.processes):
        if index is not None and number != index:
            continue
        fence = -1
        for position, action in enumerate(process.period):
            if action.kind == Kind.AFTER:
                fence = position
            elif action.kind in IN_TENSOR_MEMORY:
                stages = machine.composition.memories[action.target].stages
                place = action.target, action.item % stages
                yield Access(number, position, action.kind, place, action.item, fence)


def _seen(machine: Machine, access: Access) -> int:
    """The bit that is set while other threads may meet it."""
    return machine.bit(("seen", access.index, access.position))


def _thread_bit(machine: Machine, access: Access) -> int:
    """The bit that is set while its own thread may meet it."""
    return machine.bit(("own", access.index, access.position))


def _here(machine: Machine, index: int, position: int) -> Access:
    return next(a for a in _accesses(machine, index) if a.position == position)


def _after(machine: Machine, index: int, position: int, action: Action) -> Callable[[], Transition]:
    early = [access for access in _accesses(machine, index) if access.early == position]

    def make() -> Transition:
        started = [(a, _rivals(machine, a), _seen(machine, a)) for a in early]
        one = machine.one(index, position)

        def transition(state: int) -> int:
            for access, rivals, bit in started:
                if state & rivals:
                    raise Bad("race")
                if access.kind == Kind.TENSOR_LOAD:
                    _complete(machine, access, state)
                state |= bit
            return state + one

        return transition

    return make


def _rivals(machine: Machine, access: Access) -> int:
    """What of other threads must not be in flight; mma of its own that a load does not wait for."""
    found = 0
    for other in _accesses(machine):
        if other.place != access.place:
            continue
        if other.index == access.index:
            earlier = other.kind == Kind.ACCUMULATE and other.position < access.position
            if access.kind == Kind.TENSOR_LOAD and earlier:
                found |= _seen(machine, other)
        elif access.kind == Kind.TENSOR_LOAD:
            found |= 0 if other.kind == Kind.TENSOR_LOAD else _seen(machine, other)
        elif other.kind != access.kind or other.item != access.item:
            found |= _seen(machine, other)
    return found


def _complete(machine: Machine, access: Access, state: int) -> None:
    cell = _slot(machine, access.place)
    content = cell.values[state >> cell.shift & (1 << 12) - 1]
    if content != (access.item, machine.parts[access.place[0], access.item]):
        raise Bad("race")


def _issue(machine: Machine, index: int, position: int, action: Action) -> Callable[[], Transition]:
    access = _here(machine, index, position)
    bit = 0
    if access.kind != Kind.ACCUMULATE:
        bit = _thread_bit(machine, access)
        machine.pending[index].append((access.kind, bit))
    if access.early < 0:
        machine.start |= _seen(machine, access)

    def make() -> Transition:
        bits = 0
        for other in _accesses(machine, index):
            earlier = other.place == access.place and other.position < position
            if earlier and other.kind not in (Kind.ACCUMULATE, access.kind):
                bits |= _thread_bit(machine, other)
        one = machine.one(index, position)

        def transition(state: int) -> int:
            if state & bits or (access.early < 0 and access.kind == Kind.TENSOR_LOAD):
                raise Bad("race")
            return (state | bit) + one

        return transition

    return make


def _await(machine: Machine, index: int, position: int, action: Action) -> Callable[[], Transition]:
    plain = PLAIN_AWAIT(machine, index, position, action)
    if action.target != Kind.TENSOR_STORE:
        return plain
    period = machine.composition.processes[index].period
    before = max(
        (at for at in range(position) if period[at][:2] == (Kind.AWAIT, Kind.TENSOR_STORE)),
        default=-1,
    )
    stored = [
        _slot(machine, access.place).moved(lambda now, item=access.item: _written(now, item))
        for access in _accesses(machine, index)
        if access.kind == Kind.TENSOR_STORE and before < access.position < position
    ]

    def make() -> Transition:
        waited = plain()

        def transition(state: int) -> int:
            for written in stored:
                state = written(state)
            return waited(state)

        return transition

    return make


def _before(
    machine: Machine, index: int, position: int, action: Action
) -> Callable[[], Transition]:
    period = machine.composition.processes[index].period
    over = [
        access
        for access in _accesses(machine, index)
        if access.kind != Kind.ACCUMULATE
        and any(
            period[at][:2] == (Kind.AWAIT, access.kind) for at in range(access.position, position)
        )
    ]

    def make() -> Transition:
        keep, one = ~sum({_seen(machine, access) for access in over}), machine.one(index, position)
        return lambda state: (state & keep) + one

    return make


def _commit(
    machine: Machine, index: int, position: int, action: Action
) -> Callable[[], Transition]:
    bit = machine.flight(index, position)
    barrier = _barrier(machine, action.target, action.item)
    arrived = barrier.moved(_settled(machine, action.target, action.amount, 0), -bit)
    added = [
        (
            _seen(machine, access),
            _slot(machine, access.place).moved(lambda now, item=access.item: _written(now, item)),
        )
        for access in _accesses(machine, index)
        if access.kind == Kind.ACCUMULATE and access.position < position
    ]
    period = machine.composition.processes[index].period
    read = 0
    for at in range(position):
        if period[at].kind == Kind.TENSOR_MMA:
            read |= machine.bit((index, at))

    def arrive(state: int) -> int:
        state &= ~read
        for seen, written in added:
            if state & seen:
                state = written(state & ~seen)
        return arrived(state)

    machine.arrivals[bit] = arrive
    return lambda: lambda state: state + machine.one(index, position) + bit


KINDS.update(
    {
        Kind.TENSOR_MMA: Semantics(_read, FOLLOWS),
        Kind.ACCUMULATE: Semantics(_issue, FOLLOWS),
        Kind.TENSOR_LOAD: Semantics(_issue, FOLLOWS),
        Kind.TENSOR_STORE: Semantics(_issue, FOLLOWS),
        Kind.AWAIT: Semantics(_await, FOLLOWS),
        Kind.AFTER: Semantics(_after),
        Kind.BEFORE: Semantics(_before),
        Kind.TENSOR_COMMIT: Semantics(_commit),
    }
)
