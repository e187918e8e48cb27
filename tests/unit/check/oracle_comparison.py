"""The graph against the executor, many times: disagreements, and alarms about what runs well."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from unit.check.cluster_compositions import cluster
from unit.check.compositions import chain, crowd, proxied
from unit.check.compositions_mixed import edited, fenced_chain, mixed, pending
from unit.check.interleavings import LIMIT, OK, PROXY, explore
from unit.check.tensor_compositions import stored, tensor

from pipelink_rules.check.protocol.analyze import analyze_case
from pipelink_rules.check.protocol.model import Composition, unroll
from pipelink_rules.check.protocol.protocol_problems import (
    NoProxyFence,
    Problem,
    TensorAccessNotAwaited,
    TensorLoadInFlight,
)

Kind = type[Problem]

MAKERS: tuple[Callable[[random.Random], Composition], ...] = (
    chain,
    crowd,
    proxied,
    mixed,
    fenced_chain,
    edited,
    pending,
    tensor,
    stored,
    cluster,
)
SEEDS = 2_000  # of the full comparison
STATES = 60_000
# The executor has no registers: what loads fill is analyzed only by the graph.
REGISTERS: set[Kind] = {TensorLoadInFlight, TensorAccessNotAwaited}


class Comparison(NamedTuple):
    """Verdicts of the executor, and the seeds at which the graph says otherwise."""

    verdicts: Counter[str]
    missed: list[str]  # the graph finds nothing, the executor does
    alarms: list[str]  # the graph finds something in what runs well, or something else


def compare(seeds: Iterable[int]) -> Comparison:
    """One composition of each kind per seed."""
    result = Comparison(Counter(), [], [])
    for seed in seeds:
        for make in MAKERS:
            name = f"{make.__name__} {seed}"
            composition = make(random.Random(name))
            found = kinds_found(composition)
            verdict = explore(unroll(composition, periods(composition)), STATES)
            result.verdicts[verdict] += 1
            if verdict == LIMIT or agree(found, verdict):
                continue
            names = ", ".join(sorted(kind.__name__ for kind in found))
            line = f"{name}: {verdict}, {names or 'nothing'} found"
            (result.alarms if verdict == OK or found else result.missed).append(line)
    return result


def kinds_found(composition: Composition) -> set[Kind]:
    """The kinds of problems that the graph finds, in the steady state and in whole runs."""
    found = {type(item) for item in analyze_case(composition)}
    if not found - {NoProxyFence}:
        for count in (0, 3):
            found |= {type(item) for item in analyze_case(unroll(composition, count))}
    return found - REGISTERS


def agree(found: set[Kind], verdict: str) -> bool:
    """Whether the kinds of problems fit the verdict: nothing, only fences, or more."""
    if verdict in (OK, PROXY):
        return found == ({NoProxyFence} if verdict == PROXY else set())
    return bool(found - {NoProxyFence})


def periods(composition: Composition) -> int:
    """Enough to use every stage twice."""
    rounds = [-(-2 * m.stages // m.items) for m in composition.memories.values() if m.items]
    return min(2 + max(rounds, default=1), 6)
