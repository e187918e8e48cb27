"""The graph against the executor, many times: disagreements, and alarms about what runs well."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from unit.check.compositions import chain, crowd
from unit.check.interleavings import LIMIT, OK, explore

from pipelink_rules.check.protocol.examine import examine
from pipelink_rules.check.protocol.model import Composition, unroll

MAKERS: tuple[Callable[[random.Random], Composition], ...] = (chain, crowd)
STATES = 60_000


class Comparison(NamedTuple):
    """Verdicts of the executor, and the seeds at which the graph says otherwise."""

    verdicts: Counter[str]
    missed: list[str]  # the graph finds nothing, the executor does
    alarms: list[str]  # the graph finds something in what runs well


def compare(seeds: Iterable[int]) -> Comparison:
    """One composition of each kind per seed."""
    result = Comparison(Counter(), [], [])
    for seed in seeds:
        for make in MAKERS:
            name = f"{make.__name__} {seed}"
            composition = make(random.Random(name))
            found = [item.kind for item in examine(composition) if item.kind != "unfenced"]
            verdict = explore(unroll(composition, periods(composition)), STATES)
            result.verdicts[verdict] += 1
            if verdict == LIMIT:
                continue
            if found and verdict == OK:
                result.alarms.append(f"{name}: {', '.join(found)}")
            elif not found and verdict != OK:
                result.missed.append(f"{name}: {verdict}")
    return result


def periods(composition: Composition) -> int:
    """Enough to use every stage twice."""
    rounds = [-(-2 * m.stages // m.items) for m in composition.memories.values() if m.items]
    return min(2 + max(rounds, default=1), 6)
