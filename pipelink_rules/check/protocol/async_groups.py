"""Completion of async groups, and the number of groups that are pending at an action.

`await N` waits until at most N of the latest groups of its kind are pending (PTX ISA,
wgmma.wait_group and cp.async.bulk.wait_group); groups complete in the order they were committed.
`await tensor load` and `await tensor store` wait for all of them (tcgen05.wait).
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

from pipelink_rules.check.protocol.model import SOME, Action, Kind, Position, positions_of

# what completes in groups, and what an await may wait for
GROUPS: tuple[str, ...] = (Kind.MMA, Kind.STORE, Kind.TENSOR_LOAD, Kind.TENSOR_STORE)


def completions(actions: Sequence[Action], finite: bool) -> dict[int, int]:
    """Return position of a group -> position of the await after which it is complete.

    Positions of later periods continue to count (period * length + position).  Groups that no await
    covers are omitted.
    """
    over: dict[int, int] = {}
    for kind in GROUPS:
        places = positions_of(actions, kind)
        waits = {
            place: action.amount
            for place, action in enumerate(actions)
            if action.kind == Kind.AWAIT and action.target == kind
        }
        if not places or not waits:
            continue
        rounds = 1 if finite else 3 + min(waits.values()) // len(places)
        marks = sorted([*places, *waits])
        pending: deque[tuple[int, int]] = deque()
        for turn in range(rounds):
            for place in marks:
                if place not in waits:
                    pending.append((turn, place))
                    continue
                while len(pending) > waits[place]:
                    born, group = pending.popleft()
                    if born == 0:
                        over[group] = turn * len(actions) + place
    return over


def in_flight(
    actions: Sequence[Action], rounds: int = 2
) -> tuple[list[tuple[int, str, int]], dict[str, int]]:
    """Return what may be pending too long: (touches, groups of each kind at the end).

    touches: (position, kind, groups that may be pending there) where that is more than allowed, in
    one of the first `rounds` periods: wgmma groups write registers, and so do tensor loads.  While
    later loads are pending, written data is assumed to come from loads awaited before.
    """
    pending = dict.fromkeys(GROUPS, 0)
    loaded: tuple[int, bool] = (-1, False)  # item of the last load; some of its loads are over
    touched: dict[int, tuple[str, int]] = {}
    for _ in range(rounds):
        for place, action in enumerate(actions):
            if action.kind in GROUPS:
                pending[action.kind] += 1
                if action.kind == Kind.TENSOR_LOAD and action.item != loaded[0]:
                    loaded = (action.item, False)
            elif action.kind == Kind.AWAIT:
                if action.target == Kind.TENSOR_LOAD:
                    loaded = (loaded[0], True)
                pending[action.target] = min(pending[action.target], action.amount)
            elif action.kind == Kind.TOUCH and pending[Kind.MMA] > action.amount:
                touched.setdefault(place, (Kind.MMA, pending[Kind.MMA]))
            elif pending[Kind.TENSOR_LOAD] and action.kind in (Kind.TOUCH, Kind.WRITE):
                if loaded[1] and (action.kind == Kind.WRITE or action.amount == SOME):
                    continue
                touched.setdefault(place, (Kind.TENSOR_LOAD, pending[Kind.TENSOR_LOAD]))
    return [(place, *what) for place, what in sorted(touched.items())], pending


def fences_after(
    actions: Sequence[Action], process: int, ends: Sequence[Position], finite: bool
) -> tuple[Position, ...]:
    """Return for each end the first fence::before_thread_sync that follows it in its process."""
    places = positions_of(actions, Kind.BEFORE)
    found = []
    for _, end in ends:
        period, place = divmod(end, len(actions))
        number = bisect_right(places, place)
        if number < len(places):
            found.append((process, period * len(actions) + places[number]))
        elif places and not finite:
            found.append((process, (period + 1) * len(actions) + places[0]))
    return tuple(found)


def fence_of(actions: Sequence[Action], position: int, finite: bool) -> tuple[int, int] | None:
    """Return (position, periods ago) of the last fence::after_thread_sync before an action."""
    places = positions_of(actions, Kind.AFTER)
    number = bisect_right(places, position)
    if number:
        return places[number - 1], 0
    return (places[-1], 1) if places and not finite else None
