"""Compositions of two CTAs that copy for each other, right and wrong, for the oracle."""

from __future__ import annotations

import random

from unit.check.compositions import act

from pipelink_rules.check.protocol.model import Action, Barrier, Composition, Kind, Memory, Process

CTAS = (0, 1)


def cluster(rng: random.Random) -> Composition:
    """load -> mma in both CTAs of a cluster; half of an item comes from the other one.

    Random, often wrong: who is copied to, who is released to, the counts, the order.
    """
    stages, trip = 2 if rng.random() < 0.04 else 1, rng.choice((1, 1, 2))  # two: many states
    generic = rng.random() < 0.3  # the consumer reads with plain loads

    def wrong(chance: float = 0.06) -> bool:
        return rng.random() < chance

    counts = [max(1, 2 + rng.choice((-1, 1)) * wrong()) for _ in CTAS]
    releases = [[] if wrong(0.04) else [0, 1] for _ in CTAS]
    for cta in CTAS:
        if wrong():  # to itself only, counted so: it looks right from inside
            releases[cta] = [cta]
    if wrong(0.3):
        counts = [sum(cta in reached for reached in releases) or 1 for cta in CTAS]
    announce = [sum(32 for _ in CTAS) for _ in CTAS]
    processes = []
    for cta in CTAS:
        load: list[Action] = []
        mma: list[Action] = []
        group = [cta] if wrong(0.04) else [0, 1]
        early = int(wrong(0.04))
        held: list[Action] = []
        for x in range(trip):
            step = [
                act(Kind.WAIT, f"e{cta}", x - stages + stages * early),
                act(Kind.ARRIVE, f"f{cta}", x, 1, announce[cta]),
                *(act(Kind.COPY, f"A{to}", x, 1, 32, f"f{to}") for to in group),
            ]
            if wrong(0.04):
                step = [*step[1:], step[0]]
            load += step
            use = [act(Kind.READ, f"A{cta}", x)] + ([] if wrong(0.2) else [act(Kind.FENCE)])
            if not generic:
                use = [act(Kind.MMA, f"A{cta}", x), act(Kind.AWAIT, "mma", 0, int(wrong()))]
            mma += [act(Kind.WAIT, f"f{cta}", x), *use]
            gives = [act(Kind.ARRIVE, f"e{to}", x) for to in releases[cta]]
            if wrong(0.1):  # late: behind the next wait
                held += gives
            else:
                mma += [*held, *gives]
                held = []
        processes += [Process(f"load{cta}", tuple(load)), Process(f"mma{cta}", (*mma, *held))]
    barriers = {}
    for cta in CTAS:
        barriers[f"f{cta}"] = Barrier(stages, 1, trip)
        barriers[f"e{cta}"] = Barrier(stages, counts[cta], trip)
    return Composition(
        barriers, {f"A{cta}": Memory(stages, trip) for cta in CTAS}, {}, tuple(processes)
    )
