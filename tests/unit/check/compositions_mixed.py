"""Compositions of both proxies: those of `compositions.py` with other accesses and with fences."""

from __future__ import annotations

import random
from dataclasses import replace

from unit.check.compositions import act, chain, crowd, proxied

from pipelink_rules.check.protocol.model import Action, Composition, Kind, Memory, Named, Process

BYTES = 64


def mixed(rng: random.Random) -> Composition:
    """Writers and readers of one ring by either proxy, with fences where they may be missing."""
    composition = crowd(rng)
    copied, stored = rng.random() < 0.4, rng.random() < 0.6
    processes = []
    for process in composition.processes:
        period = list(process.period)
        if copied and rng.random() < 0.7:
            period = _copying(period)
        if stored and rng.random() < 0.8:
            period = _storing(rng, period)
        processes.append(Process(process.name, tuple(_fenced(rng, period))))
    return replace(composition, processes=tuple(processes))


def fenced_chain(rng: random.Random) -> Composition:
    """load -> mma -> epilogue with a bulk store at its end, and fences in places of all kinds."""
    composition = chain(rng)
    load, mma, epi = composition.processes
    stored = _storing(rng, list(epi.period)) if rng.random() < 0.7 else list(epi.period)
    return replace(
        composition,
        processes=(
            load._replace(period=tuple(_fenced(rng, list(load.period)))),
            mma._replace(period=tuple(_fenced(rng, list(mma.period)))),
            epi._replace(period=tuple(_fenced(rng, stored))),
        ),
    )


def edited(rng: random.Random) -> Composition:
    """One of the others with one or two small edits: swapped, left out, doubled, moved, shifted."""
    make = rng.choice((crowd, mixed, chain, fenced_chain, proxied))
    composition = make(rng)
    processes = list(composition.processes)
    for _ in range(rng.choice((1, 1, 2))):
        place = rng.randrange(len(processes))
        period = list(processes[place].period)
        if period:
            _edit(rng, period)
        processes[place] = processes[place]._replace(period=tuple(period))
    return replace(composition, processes=tuple(processes))


def pending(rng: random.Random) -> Composition:
    """Two or three processes that meet in turn, some of them once before or after all periods."""
    count, rounds = rng.choice((2, 2, 3)), rng.choice((1, 1, 2))
    early = [int(rng.random() < 0.3) for _ in range(count)]
    if rng.random() < 0.5:
        early = [early[0]] * count
    late = rng.random() < 0.5
    processes = []
    for index in range(count):
        period: list[Action] = []
        for turn in range(rounds):
            period += [
                act(Kind.SIGNAL, "b", turn + early[index], 32),
                act(Kind.MEET, "b", turn + early[index]),
            ]
            if index == turn % count:
                period.append(act(Kind.WRITE, "M", turn))
            elif rng.random() < 0.8:  # what was written a round before
                item = turn - (rng.random() < 0.95)
                period += [act(Kind.READ, "M", item)] if item >= 0 else []
        if rng.random() < 0.3 and len(period) > 3:
            del period[rng.randrange(2, len(period))]
        before = [act(Kind.SIGNAL, "b", 0, 32), act(Kind.MEET, "b", 0)] if early[index] else []
        after = (
            []
            if early[index] == max(early) or not late
            else [
                act(Kind.SIGNAL, "b", rounds, 32),
                act(Kind.MEET, "b", rounds),
            ]
        )
        processes.append(Process(f"p{index}", tuple(period), tuple(before), tuple(after)))
    return Composition(
        {},
        {"M": Memory(rng.choice((1, 2, 2, 3)), rounds)},
        {"b": Named(32 * count, rounds)},
        tuple(processes),
    )


def _edit(rng: random.Random, period: list[Action]) -> None:
    place, kind = rng.randrange(len(period)), rng.random()
    action = period[place]
    again = action._replace(origin=action.origin._replace(text=f"{action.origin.text} again"))
    if kind < 0.35:
        other = min(max(place + rng.choice((-2, -1, 1, 2)), 0), len(period) - 1)
        period[place], period[other] = period[other], period[place]
    elif kind < 0.5:
        del period[place]
    elif kind < 0.6:
        period.insert(rng.randrange(len(period)), again)
    elif kind < 0.75:
        item = action.item + rng.choice((-1, 1))
        # Cursors begin at 0: nothing but a wait is ever about an item before.
        if action.kind != Kind.COPY and (
            item >= 0 or action.kind in (Kind.READ, Kind.STORE, Kind.WAIT)
        ):
            period[place] = action._replace(item=item)
    elif kind < 0.8:
        arrivals = [k for k, other in enumerate(period) if other.kind == Kind.ARRIVE]
        first, second = rng.choice(arrivals or [place]), rng.choice(arrivals or [place])
        items = period[first].item, period[second].item
        period[first] = period[first]._replace(item=items[1])
        period[second] = period[second]._replace(item=items[0])
    elif kind < 0.88:
        del period[place]
        period.insert(rng.randint(0, len(period)), action)
    else:
        period.insert(rng.randint(0, len(period)), act(Kind.FENCE))


def _copying(period: list[Action]) -> list[Action]:
    """Writes become copies that the arrival after them announces before them."""
    found: list[Action] = []
    for action in period:
        if action.kind == Kind.ARRIVE and found and found[-1].kind == Kind.WRITE:
            write = found.pop()
            found.append(action._replace(bytes=BYTES))
            copy = act(Kind.COPY, write.target, write.item, 1, BYTES, action.target)
            found.append(copy)
        else:
            found.append(action)
    return found


def _storing(rng: random.Random, period: list[Action]) -> list[Action]:
    """Reads become bulk stores, awaited at once as a rule."""
    found: list[Action] = []
    for action in period:
        if action.kind != Kind.READ:
            found.append(action)
            continue
        found.append(act(Kind.STORE, action.target, action.item))
        if rng.random() < 0.97:
            found.append(act(Kind.AWAIT, "store", 0, 0))
    return found


def _fenced(rng: random.Random, period: list[Action]) -> list[Action]:
    """A fence after generic accesses, before asynchronous ones, or anywhere; some are missing."""
    after, before = rng.choice(((0.95, 0), (0.95, 0), (0.5, 0.1), (0, 0.9), (0, 0)))
    found: list[Action] = []
    for action in period:
        if action.kind in (Kind.COPY, Kind.STORE) and rng.random() < before:
            found.append(act(Kind.FENCE))
        found.append(action)
        if action.kind in (Kind.READ, Kind.WRITE) and rng.random() < after:
            found.append(act(Kind.FENCE))
    if rng.random() < 0.1:
        found.insert(rng.randint(0, len(found)), act(Kind.FENCE))
    return found
