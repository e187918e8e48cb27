"""Analysis of one counter group: the order of its operations on a counter and scratch memory.

A counter group is the work tiles with one value of the field that indexes counters.  Every role of
every tile is a sequence of operations in program order, performed by `warps` independent warps.
Counters only grow, so the state in which no warp can continue does not depend on the interleaving.
Whether an operation must precede another is decided by holding up one warp at it.

    item 0   write part 0   signal
    item 1   write part 1   signal
    item 2   wait_until 2      read all parts
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from pipelink_rules.check.protocol.model import Origin

SIGNAL = "signal"  # each warp increments the counter
UNTIL = "wait_until"  # until the counter has `amount` arrivals
READ = "read"  # of a slice of scratch memory
WRITE = "write"
FENCE = "fence"  # between generic and asynchronous accesses to global memory
COMPLETE = "complete"  # at most `amount` bulk stores may still be incomplete
SYNC = "sync"  # a named barrier
ALL = -1  # every slice
Held = tuple[int, int] | None  # sequence, operation that one of its warps does not complete
Place = tuple[int, int]  # line, step


class GroupOp(NamedTuple):
    """One operation of a sequence."""

    kind: str
    target: str = ""  # counter or memory
    amount: int = 0
    piece: int = ALL
    asynchronous: bool = False  # READ, WRITE: by a bulk copy
    origin: Origin = Origin()


class OpSequence(NamedTuple):
    """The operations of one role in one work tile."""

    item: int  # ordinal in the group
    warps: int
    steps: tuple[GroupOp, ...]
    together: bool = False  # its warps use the same bytes of a slice


Group = tuple[OpSequence, ...]


def reachable_state(
    group: Group, held: Held = None, counts: Mapping[str, int] | None = None
) -> list[int]:
    """Return per sequence the position of its fastest warp when no warp can continue.

    counts: arrivals performed before, by counter.
    """
    strands = list(_strands(group, held))
    counts = dict(counts or {})
    places = [0] * len(strands)
    moved = True
    while moved:
        moved = False
        for number, (line, warps, stop) in enumerate(strands):
            steps = group[line].steps
            while places[number] < stop:
                step = steps[places[number]]
                if step.kind == UNTIL and counts.get(step.target, 0) < step.amount:
                    break
                if step.kind == SIGNAL:
                    counts[step.target] = counts.get(step.target, 0) + warps
                places[number] += 1
                moved = True
    found = [0] * len(group)
    for (line, _, _), place in zip(strands, places, strict=True):
        found[line] = max(found[line], place)
    return found


def _strands(group: Group, held: Held) -> Iterator[tuple[int, int, int]]:
    """Yield (sequence, warps, operation they cannot complete); the held warp comes separately."""
    for number, line in enumerate(group):
        end = len(line.steps)
        if held is None or held[0] != number:
            yield number, line.warps, end
            continue
        yield number, 1, held[1]
        if line.warps > 1:
            yield number, line.warps - 1, end


class Order:
    """The order of the operations of a group, found by holding up a warp at each of them."""

    def __init__(self, group: Group):
        self.group = group
        self._reached: dict[Held, list[int]] = {}

    def before(self, first: tuple[int, int], second: tuple[int, int]) -> bool:
        """Return whether all warps complete an operation before another sequence starts one."""
        if first not in self._reached:
            self._reached[first] = reachable_state(self.group, first)
        return self._reached[first][second[0]] < second[1]


def end_of(line: OpSequence, number: int) -> int | None:
    """Return the operation that completes an access: itself or an await; None if there is none.

    Only the consumer of a ring knows when a bulk copy has read its source.
    """
    step = line.steps[number]
    if not step.asynchronous:
        return number
    if step.kind == READ:
        return None
    later = 0
    for place in range(number + 1, len(line.steps)):
        other = line.steps[place]
        later += other.kind == WRITE and other.asynchronous
        if other.kind == COMPLETE and later >= other.amount:
            return place
    return None


def has_proxy_fence(group: Group, first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Return whether a proxy fence orders two accesses.

    It is between the first access and the next signal, or between the last wait_until of the other
    sequence and its access.
    """
    after = _until(group[first[0]].steps[first[1] + 1 :], SIGNAL)
    before = _until(group[second[0]].steps[: second[1]][::-1], UNTIL)
    return any(step.kind == FENCE for step in (*after, *before))


def _until(steps: tuple[GroupOp, ...], kind: str) -> tuple[GroupOp, ...]:
    for place, step in enumerate(steps):
        if step.kind == kind:
            return steps[:place]
    return steps


@dataclass(frozen=True)
class GroupProblem:
    """One defect of a counter group; `first` is its first clause."""

    first: GroupOp


@dataclass(frozen=True)
class WaitProblem(GroupProblem):
    """A wait_until for more arrivals than are performed."""

    expected: int
    made: int
    item: int


class EndlessWait(WaitProblem):
    """PL0403: all tiles together perform fewer arrivals."""


class WaitForLaterItem(WaitProblem):
    """PL0401: the tiles before it perform fewer arrivals."""


@dataclass(frozen=True)
class WaitForSameTile(WaitProblem):
    """PL0401: a signal of the same tile is needed that can only be performed after the wait."""

    signal: Origin


@dataclass(frozen=True)
class AccessProblem(GroupProblem):
    """Two accesses of one slice of scratch memory, and their tiles."""

    second: GroupOp
    items: tuple[int, int]


class UnorderedAccesses(AccessProblem):
    """PL0507: they are not ordered."""


class UnfencedAccesses(AccessProblem):
    """PL0502: a generic access, then an asynchronous one without a proxy fence."""


class IncompleteStore(AccessProblem):
    """PL0505: a bulk store may be incomplete when the other access starts."""


@dataclass(frozen=True)
class UnwrittenScratch(GroupProblem):
    """PL0508: a read of uninitialized data."""

    item: int


def analyze(group: Group, cleared: Collection[str] = ()) -> Iterator[GroupProblem]:
    """Yield every problem once per pair of clauses.  `cleared`: memories zeroed before launch."""
    reported: set[tuple[object, ...]] = set()
    for problem in (*_waits(group), *_accesses(group, cleared)):
        second = problem.second.origin if isinstance(problem, AccessProblem) else None
        key = (type(problem), problem.first.origin, second)
        if key not in reported:
            reported.add(key)
            yield problem


def performed(lines: Iterable[OpSequence]) -> dict[str, int]:
    """Return the arrivals that sequences perform, by counter."""
    made: dict[str, int] = {}
    for line in lines:
        for step in line.steps:
            if step.kind == SIGNAL:
                made[step.target] = made.get(step.target, 0) + line.warps
    return made


def _waits(group: Group) -> Iterator[WaitProblem]:
    """Check that a tile waits only for signals of tiles with lower numbers, or of the same one.

    Then every wait completes: all roles process tiles in order, so all tiles below the lowest one
    that still waits have completed, whichever CTAs they run on.  Signals of the same tile must not
    depend on the wait; what else makes them depend on it is analyzed in same_tile.py.
    """
    total = performed(group)
    for item in sorted({line.item for line in group}):
        lines = tuple(line for line in group if line.item == item)
        lower, here = performed(line for line in group if line.item < item), performed(lines)
        places = reachable_state(lines, counts=lower)
        for line, place in zip(lines, places, strict=True):
            for number, step in enumerate(line.steps):
                if step.kind != UNTIL:
                    continue
                before = lower.get(step.target, 0)
                if step.amount > total.get(step.target, 0):
                    yield EndlessWait(step, step.amount, total.get(step.target, 0), item)
                elif step.amount > before + here.get(step.target, 0):
                    yield WaitForLaterItem(step, step.amount, before, item)
                elif number == place:
                    signal = _left(lines, places, step.target)
                    yield WaitForSameTile(step, step.amount, before, item, signal)


def _left(lines: Group, places: list[int], target: str) -> Origin:
    """Return the first signal that is not reached."""
    return next(
        step.origin
        for line, place in zip(lines, places, strict=True)
        for step in line.steps[place:]
        if step.kind == SIGNAL and step.target == target
    )


def _accesses(group: Group, cleared: Collection[str]) -> Iterator[GroupProblem]:
    order = Order(group)
    places = [
        (number, position)
        for number, line in enumerate(group)
        for position, step in enumerate(line.steps)
        if step.kind in (READ, WRITE)
    ]
    for one, other in combinations(places, 2):
        a, b = _step(group, one), _step(group, other)
        if _same(a, b) and WRITE in (a.kind, b.kind):
            yield from _pair(order, one, other)
    for place in places:
        step = _step(group, place)
        if step.kind == READ and step.target not in cleared:
            yield from _unwritten(order, place, places)


def _step(group: Group, place: Place) -> GroupOp:
    return group[place[0]].steps[place[1]]


def _same(a: GroupOp, b: GroupOp) -> bool:
    return a.target == b.target and (a.piece == b.piece or ALL in (a.piece, b.piece))


def _pair(order: Order, one: Place, other: Place) -> Iterator[AccessProblem]:
    group = order.group
    if one[0] == other[0]:
        line = group[one[0]]
        between = line.steps[one[1] : other[1]]
        if line.together and line.warps > 1 and not any(step.kind == SYNC for step in between):
            items = (line.item, line.item)
            yield UnorderedAccesses(_step(group, one), _step(group, other), items)
        return
    first, second = one, other
    kind = _order(order, one, other)
    if kind is UnorderedAccesses:
        back = _order(order, other, one)
        if back is not UnorderedAccesses:
            first, second, kind = other, one, back
    if kind:
        items = (group[first[0]].item, group[second[0]].item)
        yield kind(_step(group, first), _step(group, second), items)


def _order(order: Order, first: Place, second: Place) -> type[AccessProblem] | None:
    """Return how an access can be incomplete when another one starts; None if it cannot."""
    group = order.group
    if not order.before(first, second):
        return UnorderedAccesses
    end = end_of(group[first[0]], first[1])
    if end is None or not order.before((first[0], end), second):
        return IncompleteStore
    a, b = _step(group, first), _step(group, second)
    if b.asynchronous and not a.asynchronous and not has_proxy_fence(group, first, second):
        return UnfencedAccesses
    return None


def _unwritten(order: Order, read: Place, places: list[Place]) -> Iterator[UnwrittenScratch]:
    """Check that every slice that is read, of those that are written at all, is written before."""
    group = order.group
    step = _step(group, read)
    same = [place for place in places if _same(_step(group, place), step)]
    writes = [place for place in same if _step(group, place).kind == WRITE]
    others = [place for place in writes if place[0] != read[0]]
    if any(not order.before(one, read) and not order.before(read, one) for one in others):
        return  # reported as a data race
    wanted = {_step(group, place).piece for place in writes}
    if step.piece != ALL:
        wanted = {step.piece}
    given = {
        _step(group, place).piece
        for place in writes
        if (place[0] == read[0] and place[1] < read[1])
        or (place[0] != read[0] and order.before(place, read))
    }
    if not wanted or not (wanted <= given or ALL in given):
        yield UnwrittenScratch(step, group[read[0]].item)
