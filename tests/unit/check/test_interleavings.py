"""The graph against every interleaving: what passes runs well, what runs well passes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from compositions import chain, crowd, epilogue, gemm, ping_pong, proxied
from compositions_found import FOUND
from interleavings import ALIAS, DEADLOCK, LIMIT, OK, PROXY, RACE, explore
from mutations import mutated, with_known_bytes
from oracle_comparison import agree, kinds_found, periods
from programs import program

from pipelink_rules.check.protocol.analyze import analyze_case
from pipelink_rules.check.protocol.cases import ranges
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.model import Composition, unroll
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.check.protocol.protocol_problems import (
    AccumulatorsInFlight,
    Deadlock,
    MmaStillReads,
    NoProxyFence,
    PhaseAliasing,
    StoreStillReads,
    WrongArrivals,
    WrongBytes,
)
from pipelink_rules.model.program import Program

HANDOVER = [
    [
        '"store.acc": "mma.acc"},',
        '"store.acc": "mma.acc"},\n    transfers={"store.acc": "handover"},',
    ]
]

SCENARIOS = {
    "correct": (gemm(), None, OK),
    "producer starts with the consumer's parity": (gemm(empty_shift=4), Deadlock, DEADLOCK),
    "consumer starts with the producer's parity": (gemm(full_shift=-4), PhaseAliasing, RACE),
    "empty counts twice the arrivals": (gemm(empty=16), WrongArrivals, DEADLOCK),
    "empty counts half the arrivals": (gemm(empty=4), WrongArrivals, ALIAS),
    "half of the bytes announced": (gemm(announce=32), WrongBytes, DEADLOCK),
    "one stage and a lag": (gemm(1), Deadlock, DEADLOCK),
    "released in flight": (gemm(2, lag=0), MmaStillReads, RACE),
    "last item not flushed": (gemm(flush=False), WrongArrivals, DEADLOCK),
    "epilogue": (epilogue(), None, OK),
    "epilogue without a fence": (epilogue(fence=False), NoProxyFence, PROXY),
    "epilogue, store in flight": (epilogue(drained=False), StoreStillReads, RACE),
    "ping-pong": (ping_pong(), None, OK),
    "ping-pong without a first turn": (ping_pong(False), Deadlock, DEADLOCK),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    composition, kind, verdict = SCENARIOS[name]
    assert {type(problem) for problem in analyze_case(composition)} >= ({kind} if kind else set())
    assert bool(analyze_case(composition)) is bool(kind)
    assert explore(unroll(composition, 4)) == verdict


@pytest.mark.parametrize("name", FOUND)
def test_earlier_disagreements(name: str) -> None:
    composition, kind, verdict = FOUND[name]
    kinds = kinds_found(composition)
    assert kind in kinds if kind else not kinds
    assert explore(unroll(composition, 4)) == verdict


def test_no_items_are_no_problem() -> None:
    assert not analyze_case(gemm(trip=0))
    assert not analyze_case(unroll(gemm(), 0))
    assert explore(unroll(gemm(trip=0), 3)) == OK


@pytest.mark.parametrize("make", [chain, crowd, proxied])
def test_graph_and_oracle_agree(make: Callable[[random.Random], Composition]) -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        composition = make(random.Random(f"{make.__name__} {seed}"))
        found = {type(problem) for problem in analyze_case(composition)}
        verdict = explore(unroll(composition, periods(composition)), 60_000)
        seen[verdict] += 1
        assert verdict == LIMIT or agree(found, verdict), (seed, found, verdict)
    assert seen[OK] > 80 and not seen[LIMIT]
    assert len(seen) >= (2 if make is proxied else 3)


@pytest.mark.parametrize("make", [chain, crowd, proxied])
def test_blocks_lose_no_verdict(make: Callable[[random.Random], Composition]) -> None:
    for seed in range(1000, 1080):
        composition = make(random.Random(f"{make.__name__} {seed}"))
        run = unroll(composition, periods(composition))
        assert explore(run) == explore(run, atomic=False), seed


@pytest.fixture(scope="module")
def bases() -> dict[str, Program]:
    return {
        "gemm": program("gemm"),
        "stream": program("stream"),
        "join": program("join"),
        "handover": program("gemm", SConscript=HANDOVER),
    }


def test_mutated_contracts_agree_with_their_execution(bases: dict[str, Program]) -> None:
    """A contract with an operation too many, too few or elsewhere passes only if it runs well."""
    seen: Counter[str] = Counter()
    for seed in range(220):
        rng = random.Random(f"mutation {seed}")
        name = rng.choice(sorted(bases))
        protocol = ProtocolIndex(mutated(rng, bases[name]))
        channels = protocol.program.channels
        stages = {c.name: rng.choice((c.minimum, max(1, c.minimum - 1))) for c in channels}
        trip = rng.choice((1, 2, 3))
        work = {field: values.clip(trip) for field, values in ranges(protocol.program).items()}
        composition, problems = compose(protocol, stages, [work])
        if problems:  # it takes what is not there: nothing to run
            seen["refused"] += 1
            continue
        kinds = {
            type(problem)
            for problem in analyze_case(composition)
            if not isinstance(problem, AccumulatorsInFlight)
        }
        run = unroll(with_known_bytes(composition), 3 if name == "handover" else 4)
        verdict = explore(run, 60_000)
        seen[verdict] += 1
        if verdict == LIMIT:
            continue
        assert kinds or verdict == OK, (seed, name, verdict)
        if verdict == OK:  # two releases of one stage may stand for each other
            assert kinds <= {WrongArrivals}, (seed, name, kinds)
        elif verdict == PROXY:
            assert kinds & {NoProxyFence, WrongArrivals}, (seed, name, kinds)
    assert min(seen[OK], seen[DEADLOCK], seen[RACE], seen["refused"]) > 10
