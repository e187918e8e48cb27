"""When is a wgmma or bulk store group over, and how many are in flight at an action?

`await N` waits until at most N of the latest groups of its kind are pending (PTX ISA,
wgmma.wait_group and cp.async.bulk.wait_group); groups complete in the order they were committed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from pipelink_rules.check.protocol.model import AWAIT, MMA, STORE, TOUCH, Action

GROUPS = {"mma": MMA, "store": STORE}


def completions(actions: Sequence[Action], finite: bool) -> dict[int, int]:
    """Position of a group -> position of the await that proves it over.

    Positions of later periods go on counting (period * length + position); groups that no await
    ever covers are left out.
    """
    over: dict[int, int] = {}
    for name, kind in GROUPS.items():
        places = [place for place, action in enumerate(actions) if action.kind == kind]
        if not places:
            continue
        waits = {
            place: action.amount
            for place, action in enumerate(actions)
            if action.kind == AWAIT and action.target == name
        }
        if not waits:
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


def in_flight(actions: Sequence[Action], rounds: int = 2) -> tuple[list[tuple[int, int]], int, int]:
    """What may be pending too long: (touches, wgmma groups and store groups at the end).

    touches: (position, wgmma groups that may be pending there) where that is more than allowed, in
    one of the first `rounds` periods.
    """
    pending = {"mma": 0, "store": 0}
    touched: dict[int, int] = {}
    for _ in range(rounds):
        for place, action in enumerate(actions):
            if action.kind in GROUPS:
                pending[action.kind] += 1
            elif action.kind == AWAIT:
                pending[action.target] = min(pending[action.target], action.amount)
            elif action.kind == TOUCH and pending["mma"] > action.amount:
                touched.setdefault(place, pending["mma"])
    return sorted(touched.items()), pending["mma"], pending["store"]
