"""20,400 compositions, judged by the graph and run in every interleaving: they agree.

benchmarks/validation/interleavings.py runs the same seeds and writes docs/validation.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unit.check import oracle_comparison
from unit.check.oracle_comparison import MAKERS, SEEDS, compare

from pipelink_rules.check.protocol import analyze, event_graph, races, vector_clocks
from pipelink_rules.check.protocol.model import Kind
from pipelink_rules.check.protocol.protocol_problems import (
    Deadlock,
    NoProxyFence,
    Problem,
    WrongArrivals,
    WrongBytes,
)

RESULTS = Path(__file__).resolve().parents[3] / "benchmarks/results/validation/oracle.json"
CHUNK = 100  # seeds of one test: workers share them
QUICK = 300  # seeds of the quick subset
CHUNKS = [
    pytest.param(first, marks=() if first < QUICK else pytest.mark.slow)
    for first in range(0, SEEDS, CHUNK)
]


@pytest.mark.parametrize("first", CHUNKS)
def test_the_graph_agrees_with_every_interleaving(first: int) -> None:
    found = compare(range(first, min(first + CHUNK, SEEDS)))
    assert not found.missed and not found.alarms
    assert len(found.verdicts) == 5, "a chunk without one of the verdicts proves little"


def test_twenty_thousand_are_compared() -> None:
    assert SEEDS * len(MAKERS) >= 20_000


def test_the_full_run_agreed() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert results["compositions"] >= 20_000 and results["valid_programs"] >= 500
    assert not results["missed"] and not results["alarms"]
    assert not results["alarms_at_valid_programs"]
    assert results["verdicts"]["ok"] >= 5_000 and results["verdicts"]["proxy"] >= 2_000


def _never_fenced(real: Any) -> Any:
    def passed(self: Any, row: Any, ends: Any, periods: int, fenced: bool = False) -> bool:
        return not fenced and real(self, row, ends, periods, fenced)

    return passed


def _always_fenced(real: Any) -> Any:
    return lambda self, row, ends, periods, fenced=False: real(self, row, ends, periods)


def _one_period_late(real: Any) -> Any:
    return lambda self, row, ends, periods, fenced=False: real(self, row, ends, periods + 1, fenced)


def _reads_without_fence(real: Any) -> Any:
    def broken(clocks: Any, first: Any, *others: Any) -> Any:
        found = real(clocks, first, *others)
        return None if found is NoProxyFence and not first.writes else found

    return broken


def _complete_immediately(real: Any) -> Any:
    return lambda actions, finite: {
        place: place
        for place, action in enumerate(actions)
        if action.kind in (Kind.MMA, Kind.STORE)
    }


def _only(keep: Callable[[Any], bool]) -> Callable[[Any], Any]:
    return lambda real: lambda *given: [problem for problem in real(*given) if keep(problem)]


def _without(kind: type[Problem]) -> Callable[[Any], Any]:
    return _only(lambda p: not isinstance(p, kind))


# What the graph does not know -> the function that knows it, and what it becomes.
BROKEN: dict[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "that fences help": (vector_clocks.VectorClocks, "passed", _never_fenced),
    "that fences are needed": (vector_clocks.VectorClocks, "passed", _always_fenced),
    "that reads need a fence": (races, "_in_shared_memory", _reads_without_fence),
    "when a period is over": (vector_clocks.VectorClocks, "passed", _one_period_late),
    "when groups are over": (event_graph, "completions", _complete_immediately),
    "that stages are used again": (analyze, "races", _only(lambda p: p.distance == 0)),
    "that data come first": (analyze, "races", _only(lambda p: p.distance != 0)),
    "that waits take one phase for another": (analyze, "aliases", _only(lambda _: False)),
    "that arrivals come too early": (analyze, "overruns", _only(lambda _: False)),
    "that named barriers mix rounds": (analyze, "recycled", _only(lambda _: False)),
    "that arrivals count": (analyze, "count_errors", _without(WrongArrivals)),
    "that bytes count": (analyze, "count_errors", _without(WrongBytes)),
    "that data must have been written": (
        analyze,
        "count_errors",
        _only(lambda p: isinstance(p, WrongBytes)),
    ),
    "that the last wait may be in vain": (analyze, "missing_arrivals", _only(lambda _: False)),
    "that cycles block": (oracle_comparison, "analyze_case", _without(Deadlock)),
}


@pytest.mark.parametrize("lesson", BROKEN)
def test_a_graph_that_does_not_know(lesson: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: any part of the graph that is left out is missed by it."""
    module, name, change = BROKEN[lesson]
    monkeypatch.setattr(module, name, change(getattr(module, name)))
    for first in range(0, 400, 10):
        found = compare(range(first, first + 10))
        if found.missed or found.alarms:
            return
    pytest.fail("no disagreement in 2,400 compositions")
