"""Small compositions, right and wrong, for the comparison of the graph with its oracle."""

from __future__ import annotations

import random

from pipelink_rules.check.protocol.model import (
    Action,
    Barrier,
    Composition,
    Kind,
    Memory,
    Named,
    Origin,
    Process,
)


def act(
    kind: str, target: str = "", item: int = 0, count: int = 1, bytes: int = 0, barrier: str = ""
) -> Action:
    """An action with a separate origin, so that problems can be distinguished."""
    return Action(kind, target, item, count, bytes, barrier, Origin("", "", f"{kind} {target}"))


def gemm(
    stages: int = 4,
    trip: int = 3,
    lag: int = 1,
    depth: int = 1,
    empty: int = 8,
    arrive: int = 8,
    announce: int = 64,
    flush: bool = True,
    empty_shift: int = 0,
    full_shift: int = 0,
) -> Composition:
    """load -> mma over a ring; one work tile has `trip` items.  Shifts make a wrong parity."""
    load, mma = [], []
    for x in range(trip):
        load += [
            act(Kind.WAIT, "empty", x - stages + empty_shift),
            act(Kind.ARRIVE, "full", x, 1, announce),
            act(Kind.COPY, "ab", x, 1, 64, "full"),
        ]
        mma += [
            act(Kind.WAIT, "full", x + full_shift),
            act(Kind.MMA, "ab", x),
            act(Kind.AWAIT, "mma", 0, depth),
        ]
        if x >= lag:
            mma.append(act(Kind.ARRIVE, "empty", x - lag, arrive))
    if flush:
        mma.append(act(Kind.AWAIT, "mma", 0, 0))
        mma += [act(Kind.ARRIVE, "empty", x, arrive) for x in range(max(trip - lag, 0), trip)]
    return Composition(
        {"full": Barrier(stages, 1, trip), "empty": Barrier(stages, empty, trip)},
        {"ab": Memory(stages, trip)},
        {},
        (Process("load", tuple(load)), Process("mma", tuple(mma))),
    )


def epilogue(fence: bool = True, drained: bool = True) -> Composition:
    """One role writes C, another stores it; two named barriers order them."""
    write = [*_meet("free", 0, 128), act(Kind.WRITE, "C", 0)]
    write += ([act(Kind.FENCE)] if fence else []) + _meet("full", 0, 128)
    store = [*_meet("free", 0, 32), *_meet("full", 0, 32), act(Kind.STORE, "C", 0)]
    store.append(act(Kind.AWAIT, "store", 0, 0 if drained else 1))
    named = {"free": Named(160, 1), "full": Named(160, 1)}
    return Composition(
        {},
        {"C": Memory(1, 1)},
        named,
        (Process("write", tuple(write)), Process("store", tuple(store))),
    )


def _meet(name: str, item: int, threads: int) -> list[Action]:
    return [act(Kind.SIGNAL, name, item, threads), act(Kind.MEET, name, item)]


def ping_pong(first: bool = True) -> Composition:
    """Two warpgroups that take turns on the tensor core; `first`: the prologue gives a turn."""

    def warpgroup(mine: str, other: str, ahead: int) -> tuple[Action, ...]:
        return (
            *_meet(mine, 0, 128),
            act(Kind.WAIT, "full", 0),
            act(Kind.MMA, "KV", 0),
            act(Kind.SIGNAL, other, ahead, 128),
            act(Kind.AWAIT, "mma", 0, 0),
            act(Kind.ARRIVE, "empty", 0),
        )

    load = (
        act(Kind.WAIT, "empty", -2),
        act(Kind.ARRIVE, "full", 0, 1, 64),
        act(Kind.COPY, "KV", 0, 1, 64, "full"),
    )
    prologue = (act(Kind.SIGNAL, "turn0", 0, 128),) if first else ()
    return Composition(
        {"full": Barrier(2, 1, 1), "empty": Barrier(2, 2, 1)},
        {"KV": Memory(2, 1)},
        {"turn0": Named(256, 1), "turn1": Named(256, 1)},
        (
            Process("load", load),
            Process("wg0", warpgroup("turn0", "turn1", 0)),
            Process("wg1", warpgroup("turn1", "turn0", int(first)), prologue),
        ),
    )


def chain(rng: random.Random) -> Composition:
    """load -> mma -> epilogue with random, often wrong terms."""
    one, two, trip = rng.randint(1, 3), rng.randint(1, 2), rng.choice((1, 1, 2, 3))
    depth, lag = rng.choice((0, 0, 1)), rng.choice((0, 1, 1, 2))

    def wrong() -> bool:
        return rng.random() < 0.1

    def off(count: int) -> int:
        return max(1, count + rng.choice((-1, 1))) if wrong() else count

    early, late = int(wrong()), int(wrong())
    load, mma, epi = [], [], []
    for x in range(trip):
        load += [
            act(Kind.WAIT, "e", x - one + one * early),
            act(Kind.ARRIVE, "f", x, 1, 64),
            act(Kind.COPY, "A", x, 1, 32 if rng.random() < 0.03 else 64, "f"),
        ]
        step = [act(Kind.WAIT, "f", x - one * late), act(Kind.MMA, "A", x)]
        if rng.random() < 0.05:
            step.reverse()
        mma += [*step, act(Kind.AWAIT, "mma", 0, depth)]
        if x >= lag:
            mma.append(act(Kind.ARRIVE, "e", x - lag, 2))
    if rng.random() < 0.95:
        mma.append(act(Kind.AWAIT, "mma", 0, 0))
    if rng.random() < 0.95:
        mma += [act(Kind.ARRIVE, "e", x, 2) for x in range(max(trip - lag, 0), trip)]
    hand = [act(Kind.WAIT, "ce", -two), act(Kind.WRITE, "C", 0), act(Kind.ARRIVE, "cf", 0)]
    if rng.random() < 0.1:
        rng.shuffle(hand)
    if rng.random() < 0.3:
        mma = hand + mma
    else:
        mma += hand
    epi = [
        act(Kind.WAIT, "cf", -two if wrong() else 0),
        act(Kind.READ, "C", 0),
        act(Kind.ARRIVE, "ce", 0),
    ]
    if rng.random() < 0.2:
        epi[1:2] = [act(Kind.STORE, "C", 0), act(Kind.AWAIT, "store", 0, rng.choice((0, 0, 1)))]
    if rng.random() < 0.1:
        rng.shuffle(epi)
    return Composition(
        {
            "f": Barrier(one, 1, trip),
            "e": Barrier(one, off(2), trip),
            "cf": Barrier(two, off(1), 1),
            "ce": Barrier(two, 1, 1),
        },
        {"A": Memory(one, trip), "C": Memory(two, 1)},
        {},
        (Process("load", tuple(load)), Process("mma", tuple(mma)), Process("epi", tuple(epi))),
    )


def crowd(rng: random.Random) -> Composition:
    """Two writers and up to two readers of one ring, items dealt in a random way, and a barrier."""
    stages, items = rng.randint(1, 3), rng.choice((2, 2, 3))
    readers = rng.choice((1, 1, 2))
    owner = [rng.randint(0, 1) for _ in range(items)]
    dealt = rng.random() < 0.4 and readers == 2
    processes: list[list[list[Action]]] = []  # per process, steps of actions
    for writer in (0, 1):
        mine = [x for x in range(items) if owner[x] == writer]
        processes.append(
            [
                [act(Kind.WAIT, "e", x - stages), act(Kind.WRITE, "R", x), act(Kind.ARRIVE, "f", x)]
                for x in mine
            ]
        )
    for reader in range(readers):
        mine = [x for x in range(items) if not dealt or x % 2 == reader]
        processes.append(
            [
                [act(Kind.WAIT, "f", x), act(Kind.READ, "R", x), act(Kind.ARRIVE, "e", x)]
                for x in mine
            ]
        )
    named = {}
    if rng.random() < 0.5:
        times = rng.choice((1, 1, 2))
        named["b"] = Named(64, times)
        for position, index in enumerate(rng.sample(range(len(processes)), 2)):
            places = sorted(rng.randint(0, len(processes[index])) for _ in range(times))
            for time in reversed(range(times)):
                syncs = position == 0 or rng.random() < 0.6
                step = [act(Kind.SIGNAL, "b", time, 32)] + (
                    [act(Kind.MEET, "b", time)] if syncs else []
                )
                processes[index].insert(places[time], step)
    return Composition(
        {"f": Barrier(stages, 1, items), "e": Barrier(stages, 1 if dealt else readers, items)},
        {"R": Memory(stages, items)},
        named,
        tuple(
            Process(f"p{index}", tuple(action for step in steps for action in step))
            for index, steps in enumerate(processes)
        ),
    )


def proxied(rng: random.Random) -> Composition:
    """copy -> generic read and write -> bulk store, with fences in random places."""
    one, two = rng.randint(1, 2), rng.randint(1, 2)
    load = [
        act(Kind.WAIT, "xe", -one),
        act(Kind.ARRIVE, "xf", 0, 1, 64),
        act(Kind.COPY, "X", 0, 1, 64, "xf"),
    ]
    work = [
        act(Kind.WAIT, "xf", 0),
        act(Kind.READ, "X", 0),
        act(Kind.WAIT, "ye", -two),
        act(Kind.WRITE, "Y", 0),
        act(Kind.ARRIVE, "xe", 0),
        act(Kind.ARRIVE, "yf", 0),
    ]
    put = [
        act(Kind.WAIT, "yf", 0),
        act(Kind.STORE, "Y", 0),
        act(Kind.AWAIT, "store", 0, 0),
        act(Kind.ARRIVE, "ye", 0),
    ]
    if rng.random() < 0.3:
        put[1:3] = [act(Kind.READ, "Y", 0)]
    for program, chance in ((load, 0.2), (work, 0.6), (work, 0.4), (put, 0.3)):
        if rng.random() < chance:
            program.insert(rng.randint(0, len(program)), act(Kind.FENCE))
    names = (("xe", one), ("xf", one), ("ye", two), ("yf", two))
    return Composition(
        {name: Barrier(stages, 1, 1) for name, stages in names},
        {"X": Memory(one, 1), "Y": Memory(two, 1)},
        {},
        (Process("load", tuple(load)), Process("work", tuple(work)), Process("put", tuple(put))),
    )
