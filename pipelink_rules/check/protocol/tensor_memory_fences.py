"""Which fences of tensor memory stand before or after an action?  (PTX ISA, tcgen05.fence.)"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from pipelink_rules.check.protocol.model import AFTER, BEFORE, Action, Position


def fences_after(
    actions: Sequence[Action], process: int, ends: Sequence[Position], finite: bool
) -> tuple[Position, ...]:
    """For each end the first fence::before_thread_sync that follows it in its process."""
    places = [at for at, action in enumerate(actions) if action.kind == BEFORE]
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
    """(position, periods ago) of the last fence::after_thread_sync in front of an action."""
    places = [at for at, action in enumerate(actions) if action.kind == AFTER]
    number = bisect_right(places, position)
    if number:
        return places[number - 1], 0
    return (places[-1], 1) if places and not finite else None
