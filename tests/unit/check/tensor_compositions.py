"""Pipelines through tensor memory, right and wrong, for the comparison of graph and executor."""

from __future__ import annotations

import random

from unit.check.compositions import act

from pipelink_rules.check.protocol.model import (
    Action,
    Barrier,
    Composition,
    Kind,
    Memory,
    Named,
    Process,
)


def accumulators(
    stages: int = 2,
    trip: int = 2,
    accumulators: int = 2,
    loads: int = 1,
    committed: bool = True,
    acquired: bool = True,
    awaited: bool = True,
    before: bool = True,
    after: tuple[bool, bool] = (True, True),
) -> Composition:
    """load -> mma -> drain: a ring into a ring in tensor memory; the flags leave something out."""
    load: list[Action] = []
    mma = [act(Kind.WAIT, "ce", -accumulators)] if acquired else []
    mma += [act(Kind.AFTER)] if after[0] else []
    for x in range(trip):
        load += [
            act(Kind.WAIT, "e", x - stages),
            act(Kind.ARRIVE, "f", x, 1, 64),
            act(Kind.COPY, "A", x, 1, 64, "f"),
        ]
        mma += [act(Kind.WAIT, "f", x), act(Kind.TENSOR_MMA, "A", x), act(Kind.ACCUMULATE, "C", 0)]
        mma.append(act(Kind.TENSOR_COMMIT, "e", x))
    mma.append(act(Kind.TENSOR_COMMIT if committed else Kind.ARRIVE, "cf", 0))
    drain = [act(Kind.WAIT, "cf", 0)] + ([act(Kind.AFTER)] if after[1] else [])
    drain += [act(Kind.TENSOR_LOAD, "C", 0)] * loads
    drain += [act(Kind.AWAIT, Kind.TENSOR_LOAD, 0, 0)] if awaited else []
    drain += [act(Kind.BEFORE)] if before else []
    drain.append(act(Kind.ARRIVE, "ce", 0))
    return pipeline(stages, accumulators, trip, {"load": load, "mma": mma, "drain": drain})


def pipeline(
    stages: int, accumulators: int, trip: int, programs: dict[str, list[Action]], readers: int = 1
) -> Composition:
    """A ring A with barriers e, f; a ring C in tensor memory with barriers ce, cf."""
    return Composition(
        {
            "f": Barrier(stages, 1, trip),
            "e": Barrier(stages, 1, trip),
            "cf": Barrier(accumulators, 1, 1),
            "ce": Barrier(accumulators, readers, 1),
        },
        {"A": Memory(stages, trip), "C": Memory(accumulators, 1)},
        {},
        tuple(Process(name, tuple(actions)) for name, actions in programs.items()),
    )


def _maybe(rng: random.Random, chance: float, *actions: Action) -> list[Action]:
    return list(actions) if rng.random() < chance else []


def tensor(rng: random.Random) -> Composition:
    """load -> mma -> one or two readers, with random mistakes and random fences."""
    stages, accumulators, trip = rng.randint(1, 2), rng.randint(1, 2), rng.choice((1, 1, 2))
    readers = rng.choice((1, 1, 2))
    likely = rng.choice((0.8, 1.0))  # of each fence and await
    load: list[Action] = []
    mma = [
        *_maybe(rng, 0.97, act(Kind.WAIT, "ce", -accumulators)),
        *_maybe(rng, likely, act(Kind.AFTER)),
    ]
    if rng.random() < 0.1:
        mma.reverse()
    inner = rng.random() < 0.1  # the fence inside of the loop as well
    for x in range(trip):
        load += [
            act(Kind.WAIT, "e", x - stages),
            act(Kind.ARRIVE, "f", x, 1, 64),
            act(Kind.COPY, "A", x, 1, 64, "f"),
        ]
        mma += [act(Kind.WAIT, "f", x)] + ([act(Kind.AFTER)] if inner else [])
        step = [act(Kind.TENSOR_MMA, "A", x), act(Kind.ACCUMULATE, "C", 0)]
        release = act(Kind.ARRIVE if rng.random() < 0.08 else Kind.TENSOR_COMMIT, "e", x)
        if rng.random() < 0.05:
            mma += [release, *step]
        else:
            mma += [*step, release]
    given = act(Kind.ARRIVE if rng.random() < 0.1 else Kind.TENSOR_COMMIT, "cf", 0)
    mma.insert(len(mma) - (rng.randint(1, 4) if rng.random() < 0.1 else 0), given)
    programs = {"load": load, "mma": mma}
    for reader in range(readers):
        drain = [act(Kind.WAIT, "cf", 0), *_maybe(rng, likely, act(Kind.AFTER))]
        for _ in range(rng.choice((1, 1, 2))):
            drain += [act(Kind.TENSOR_LOAD, "C", 0)]
            drain += _maybe(rng, likely, act(Kind.AWAIT, Kind.TENSOR_LOAD, 0, 0))
        end = [*_maybe(rng, likely, act(Kind.BEFORE)), act(Kind.ARRIVE, "ce", 0)]
        if rng.random() < 0.1:
            end.reverse()
        drain += end
        if rng.random() < 0.08:
            rng.shuffle(drain)
        programs[f"drain{reader}"] = drain
    return pipeline(stages, accumulators, trip, programs, readers)


def stored(rng: random.Random) -> Composition:
    """A role fills tensor memory with stores, another one loads it, in part by turns."""
    stages = rng.randint(1, 2)
    likely = rng.choice((0.8, 1.0))
    write = [
        act(Kind.WAIT, "ce", -stages),
        *_maybe(rng, likely, act(Kind.AFTER)),
        act(Kind.TENSOR_STORE, "C", 0),
        *_maybe(rng, likely, act(Kind.AWAIT, Kind.TENSOR_STORE, 0, 0)),
        *_maybe(rng, likely, act(Kind.BEFORE)),
        act(Kind.ARRIVE, "cf", 0),
    ]
    read = [
        act(Kind.WAIT, "cf", 0),
        *_maybe(rng, likely, act(Kind.AFTER)),
        act(Kind.TENSOR_LOAD, "C", 0),
        *_maybe(rng, likely, act(Kind.AWAIT, Kind.TENSOR_LOAD, 0, 0)),
        *_maybe(rng, likely, act(Kind.BEFORE)),
        act(Kind.ARRIVE, "ce", 0),
    ]
    for program in (write, read):
        if rng.random() < 0.15:
            a, b = rng.sample(range(len(program)), 2)
            program[a], program[b] = program[b], program[a]
    named = {}
    if rng.random() < 0.4:  # a named barrier on top, which may order them as well
        named["b"] = Named(64, 1)
        for program in (write, read):
            place = rng.randint(0, len(program))
            program[place:place] = [act(Kind.SIGNAL, "b", 0, 32), act(Kind.MEET, "b", 0)]
    return Composition(
        {"cf": Barrier(stages, 1, 1), "ce": Barrier(stages, 1, 1)},
        {"C": Memory(stages, 1)},
        named,
        (Process("write", tuple(write)), Process("read", tuple(read))),
    )
