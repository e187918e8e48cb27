"""What do the work items of one counter do to it and to scratch memory, and in which order?

A group is the items that have one value of the field that counters are indexed by.  Every role of
every item is a line: its steps in program order, done by `warps` warps that do not wait for each
other.  A counter only grows, so the state that a group reaches when nobody is held up any more
does not depend on who runs first: what must have happened is decided by holding one warp up.

    item 0   write part 0   signal
    item 1   write part 1   signal
    item 2   until 2 signals   read all parts
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pipelink_rules.check.protocol.model import Origin

SIGNAL = "signal"  # each warp counts the counter one up
UNTIL = "until"  # until the counter stands at `amount` arrivals
READ = "read"  # of `piece` of a scratch memory
WRITE = "write"
FENCE = "fence"  # between generic and asynchronous accesses to global memory
COMPLETE = "complete"  # at most `amount` bulk stores may still be incomplete
SYNC = "sync"  # a named barrier

ALL = -1  # every piece


class GroupOp(NamedTuple):
    """One operation of a line."""

    kind: str
    target: str = ""  # counter or memory
    amount: int = 0
    piece: int = ALL
    asynchronous: bool = False  # READ, WRITE: by a bulk copy
    origin: Origin = Origin()


class OpSequence(NamedTuple):
    """What one role does in one work item."""

    item: int  # ordinal in the group
    warps: int
    steps: tuple[GroupOp, ...]
    together: bool = False  # its warps use the same bytes of a piece


Group = tuple[OpSequence, ...]
Held = tuple[int, int] | None  # line, step that one of its warps does not finish


def reachable_state(group: Group, held: Held = None) -> list[int]:
    """Per line the step that its fastest warp stands at when nobody gets further."""
    strands = list(_strands(group, held))
    counts: dict[str, int] = {}
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
    """(line, warps, step it cannot finish): the warp that is held up is a strand of its own."""
    for number, line in enumerate(group):
        end = len(line.steps)
        if held is None or held[0] != number:
            yield number, line.warps, end
            continue
        yield number, 1, held[1]
        if line.warps > 1:
            yield number, line.warps - 1, end


class Order:
    """Which step of a group comes before which; every warp is held up at every step once."""

    def __init__(self, group: Group):
        self.group = group
        self._reached: dict[Held, list[int]] = {}

    def before(self, first: tuple[int, int], second: tuple[int, int]) -> bool:
        """Whether a step of one line is over in every warp before one of another line begins."""
        if first not in self._reached:
            self._reached[first] = reachable_state(self.group, first)
        return self._reached[first][second[0]] < second[1]


def end_of(line: OpSequence, number: int) -> int | None:
    """The step that ends an access: itself, or the one that has it complete; None: no step.

    When a bulk copy has read its source only the reader of the ring knows.
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
    """Whether a proxy fence lies between an access and its line's next signal, or between the
    last `until` of the other line and its access."""
    after = _until(group[first[0]].steps[first[1] + 1 :], SIGNAL)
    before = _until(group[second[0]].steps[: second[1]][::-1], UNTIL)
    return any(step.kind == FENCE for step in (*after, *before))


def _until(steps: tuple[GroupOp, ...], kind: str) -> tuple[GroupOp, ...]:
    for place, step in enumerate(steps):
        if step.kind == kind:
            return steps[:place]
    return steps
