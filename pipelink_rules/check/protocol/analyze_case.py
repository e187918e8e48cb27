"""Is a composition free of deadlock and races for every number of work items?"""

from __future__ import annotations

from collections.abc import Iterator

from pipelink_rules.check.protocol.async_groups import in_flight
from pipelink_rules.check.protocol.event_graph import Graph
from pipelink_rules.check.protocol.liveness import order_of
from pipelink_rules.check.protocol.model import (
    MMA,
    STORE,
    TENSOR_LOAD,
    TENSOR_STORE,
    Composition,
    Process,
)
from pipelink_rules.check.protocol.phase_counts import count_errors, missing_arrivals
from pipelink_rules.check.protocol.problem import Problem
from pipelink_rules.check.protocol.races import aliases, overruns, races, recycled
from pipelink_rules.check.protocol.vector_clocks import Clocks

# kind of group -> problem where it is pending too long
UNDRAINED = {
    MMA: "in flight",
    STORE: "storing",
    TENSOR_LOAD: "loading",
    TENSOR_STORE: "loading",
}


def analyze_case(composition: Composition) -> tuple[Problem, ...]:
    """Every problem of a composition; order is judged only where the counts are right.

    A periodic composition is judged for all numbers of periods; a finite one is one run.
    """
    problems = list(
        missing_arrivals(composition) if composition.finite else count_errors(composition)
    )
    for process in composition.processes:
        problems += _groups(process, composition.finite)
    if any(problem.kind in ("arrivals", "threads", "unwritten") for problem in problems):
        return tuple(problems)
    graph = Graph(composition)
    verdict = order_of(graph)
    if verdict.cycle:
        return (*problems, deadlock(graph, verdict.cycle))
    clocks = Clocks(graph, verdict.order)
    problems += aliases(graph, clocks)
    problems += overruns(graph, clocks)
    problems += recycled(graph, clocks)
    problems += races(graph, clocks)
    return tuple(problems)


def deadlock(graph: Graph, cycle: tuple[tuple[int, int, int], ...]) -> Problem:
    """The cycle as a problem of the barriers it passes."""
    targets = sorted(
        {graph.event_of[node].target for node, _, _ in cycle if node in graph.event_of}
    )
    return Problem("deadlock", " ".join(targets), None, None, (sum(e[2] for e in cycle),), cycle)


def _groups(process: Process, finite: bool) -> Iterator[Problem]:
    touched, left = in_flight(process.period, 1 if finite else 2)
    for place, kind, pending in touched:
        action = process.period[place]
        yield Problem(UNDRAINED[kind], action.target, None, action, (pending,))
    if not finite:
        return
    for kind, pending in left.items():
        if pending:
            last = [action for action in process.period if action.kind == kind][-1]
            yield Problem(UNDRAINED[kind], last.target, last, None, (pending,))
