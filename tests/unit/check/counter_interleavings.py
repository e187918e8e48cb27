"""What can happen to counters and scratch memory?  Every interleaving of every warp, tried.

Items are taken by CTAs as in the kernel (CTA c takes c, c + grid, ...); every warp of every role
runs for itself.  Accesses take time: they begin and end, and two of them that conflict and overlap
in some interleaving are a race.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pipelink_rules.check.counters.analyze_group import (
    ALL,
    READ,
    SIGNAL,
    UNTIL,
    WRITE,
    Group,
    GroupOp,
    OpSequence,
)


class Moment(NamedTuple):
    """One atomic step of a warp."""

    kind: str  # signal, until, begin, end
    step: GroupOp


class Seen(NamedTuple):
    """What some interleaving did."""

    deadlock: bool
    race: bool
    unwritten: bool


def explore(group: Group, grid: int, roles: int = 1) -> Seen:
    """All interleavings of the group's items on `grid` CTAs; lines are item-major, role-minor."""
    strands = [
        tuple(_moments(group[item * roles + role] for item in items))
        for items in (range(cta, len(group) // roles, grid) for cta in range(grid))
        for role in range(roles)
        for _ in range(group[role].warps)
    ]
    start = tuple([0] * len(strands))
    known, todo = {(start, frozenset())}, [(start, frozenset())]
    deadlock = race = unwritten = False
    while todo:
        places, written = todo.pop()
        open_ = [
            strand[place - 1].step
            for strand, place in zip(strands, places, strict=True)
            if place and strand[place - 1].kind == "begin"
        ]
        race = race or any(_conflict(a, b) for n, a in enumerate(open_) for b in open_[n + 1 :])
        counts: dict[str, int] = {}
        for strand, place in zip(strands, places, strict=True):
            for moment in strand[:place]:
                if moment.kind == SIGNAL:
                    counts[moment.step.target] = counts.get(moment.step.target, 0) + 1
        moved = False
        for number, (strand, place) in enumerate(zip(strands, places, strict=True)):
            if place == len(strand):
                continue
            kind, step = strand[place]
            if kind == UNTIL and counts.get(step.target, 0) < step.amount:
                continue
            moved = True
            after = written
            if kind == "end" and step.kind == WRITE:
                after = written | {step.piece}
            if kind == "begin" and step.kind == READ:
                unwritten = unwritten or not _there(group, step, written)
            state = ((*places[:number], place + 1, *places[number + 1 :]), after)
            if state not in known:
                known.add(state)
                todo.append(state)
        deadlock = deadlock or not (
            moved or all(p == len(s) for p, s in zip(places, strands, strict=True))
        )
    return Seen(deadlock, race, unwritten)


def _moments(lines: Iterator[OpSequence]) -> Iterator[Moment]:
    for line in lines:
        for step in line.steps:
            if step.kind in (SIGNAL, UNTIL):
                yield Moment(step.kind, step)
            else:
                yield Moment("begin", step)
                yield Moment("end", step)


def _conflict(a: GroupOp, b: GroupOp) -> bool:
    """Warps that do one operation of one item share it: each has its part."""
    if a.origin == b.origin:
        return False
    return (a.piece == b.piece or ALL in (a.piece, b.piece)) and WRITE in (a.kind, b.kind)


def _there(group: Group, read: GroupOp, written: frozenset[int]) -> bool:
    """Whether every piece that is read, and that anybody writes, was written."""
    wanted = {
        step.piece
        for line in group
        for step in line.steps
        if step.kind == WRITE and (step.piece == read.piece or ALL in (step.piece, read.piece))
    }
    if read.piece != ALL:
        wanted = {read.piece}
    return bool(wanted) and (wanted <= written or ALL in written)
