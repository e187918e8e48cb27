"""Tensor memory: the graph against an executor that runs every operation as early as it may be."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from types import ModuleType

import pytest
from mutations import mutated, with_known_bytes
from programs import program
from unit.check.interleavings import DEADLOCK, LIMIT, OK, RACE, explore
from unit.check.oracle_comparison import REGISTERS, agree, compare, periods
from unit.check.tensor_compositions import accumulators, stored, tensor

from pipelink_rules.check.protocol import event_graph, races
from pipelink_rules.check.protocol.analyze import analyze_case
from pipelink_rules.check.protocol.cases import ranges
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.model import Composition, Kind, unroll
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.check.protocol.protocol_problems import (
    NoOrder,
    NoTensorFence,
    TensorMemoryOverlap,
    WrongArrivals,
)

SCENARIOS = {
    "correct": (accumulators(), None, OK),
    "one accumulator": (accumulators(accumulators=1), None, OK),
    "two loads": (accumulators(loads=2), None, OK),
    "accumulators not acquired": (accumulators(acquired=False), NoOrder, RACE),
    "plain arrival in place of a commit": (
        accumulators(committed=False),
        TensorMemoryOverlap,
        RACE,
    ),
    "loads not awaited": (accumulators(awaited=False), TensorMemoryOverlap, RACE),
    "no fence before": (accumulators(before=False), NoTensorFence, RACE),
    "no fence after at the mma": (accumulators(after=(False, True)), NoTensorFence, RACE),
    "no fence after at the loads": (accumulators(after=(True, False)), NoTensorFence, RACE),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    composition, kind, verdict = SCENARIOS[name]
    found = {type(problem) for problem in analyze_case(composition)} - REGISTERS
    assert (kind in found) if kind else not found
    assert explore(unroll(composition, 4)) == verdict


@pytest.mark.parametrize("make", [tensor, stored])
def test_graph_and_executor_agree(make: Callable[[random.Random], Composition]) -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        composition = make(random.Random(f"{make.__name__} {seed}"))
        found = {type(problem) for problem in analyze_case(composition)} - REGISTERS
        verdict = explore(unroll(composition, periods(composition)), 60_000)
        seen[verdict] += 1
        assert verdict == LIMIT or agree(found, verdict), (seed, found, verdict)
    assert seen[OK] > 80 and seen[RACE] > 80 and not seen[LIMIT]


def test_mutated_tensor_contracts_agree_with_their_execution() -> None:
    """An operation too many, too few or elsewhere passes only if it runs well."""
    base = program("tensor")
    seen: Counter[str] = Counter()
    for seed in range(150):
        rng = random.Random(f"tensor mutation {seed}")
        protocol = ProtocolIndex(mutated(rng, base))
        stages = {c.name: c.minimum for c in protocol.program.channels}
        trip = rng.choice((1, 2))
        work = {field: values.clip(trip) for field, values in ranges(protocol.program).items()}
        composition, problems = compose(protocol, stages, [work])
        if problems:
            seen["refused"] += 1
            continue
        kinds = {type(problem) for problem in analyze_case(composition)} - REGISTERS
        verdict = explore(unroll(with_known_bytes(composition), 4), 60_000)
        seen[verdict] += 1
        if verdict != LIMIT:
            # two releases of one stage may stand for each other
            assert agree(kinds - ({WrongArrivals} if verdict == OK else set()), verdict), (
                seed,
                kinds,
                verdict,
            )
    assert min(seen[OK], seen[RACE], seen["refused"]) > 10 and seen[DEADLOCK] > 3


WEAKER = {
    "any fence before": lambda actions, process, ends, finite: tuple(ends),
    "any fence after": lambda actions, position, finite: (position, 0),
}


@pytest.mark.parametrize(
    ("module", "name", "rule"),
    [(event_graph, "fences_after", "any fence before"), (races, "fence_of", "any fence after")],
)
def test_the_executor_sees_a_graph_that_is_too_weak(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, rule: str
) -> None:
    monkeypatch.setattr(module, name, WEAKER[rule])
    assert compare(range(60)).missed


@pytest.mark.parametrize("kind", [Kind.AFTER, Kind.BEFORE, Kind.AWAIT, Kind.TENSOR_COMMIT])
def test_every_operation_of_a_right_pipeline_is_needed(kind: str) -> None:
    """Left out one by one: the graph and the executor both find each of them missing."""
    right = accumulators(accumulators=1)
    for number, process in enumerate(right.processes):
        for place, action in enumerate(process.period):
            if action.kind != kind:
                continue
            fewer = process.period[:place] + process.period[place + 1 :]
            processes = list(right.processes)
            processes[number] = process._replace(period=fewer)
            wrong = Composition(right.barriers, right.memories, right.named, tuple(processes))
            assert analyze_case(wrong), (process.name, place)
            assert explore(unroll(wrong, 4)) != OK, (process.name, place)
