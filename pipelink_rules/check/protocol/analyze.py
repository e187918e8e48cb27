"""Which problems does the protocol of a program have, for all stages and work items it may get?

One case is a composition: it is free of deadlock and races for every number of work items, or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pipelink_rules.check.protocol.async_groups import in_flight
from pipelink_rules.check.protocol.cases import (
    Item,
    Stages,
    looping,
    ranges,
    sequences,
    stage_choices,
)
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.event_graph import Graph
from pipelink_rules.check.protocol.liveness import order_of
from pipelink_rules.check.protocol.model import (
    MMA,
    STORE,
    TENSOR_LOAD,
    TENSOR_STORE,
    Composition,
    Process,
    unroll,
)
from pipelink_rules.check.protocol.phase_counts import count_errors, missing_arrivals
from pipelink_rules.check.protocol.problem import Problem
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
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


class Found(NamedTuple):
    """A problem, and where it was met first."""

    problem: Problem
    composition: Composition
    stages: Stages
    work: list[Item]


def find_problems(blueprint: ProtocolIndex, stages: Mapping[str, int] | None = None) -> list[Found]:
    """Every kind of problem once per target and pair of clauses, the smallest case first.

    `stages`: judge only these counts (a placement's); without it all that a placement may choose.
    Raises TooLong.
    """
    program = blueprint.program
    choices = stage_choices(program) if stages is None else [dict(stages)]
    fields, loops = ranges(program), looping(program)
    found: dict[tuple[object, ...], Found] = {}
    for number, choice in enumerate(choices):
        counts = {choice[name] for name in loops}
        for place, work in enumerate(sequences(fields, counts, short=number > 0)):
            last = place % 2 == 1  # trip counts that are neighbours, in both orders
            composition, problems = compose(blueprint, choice, work, own_last=last)
            problems = problems or list(analyze_case(composition))
            if (not number and len(work) != 1) or not fields:
                run = composition
                if blueprint.ctas > 1:  # before and after its items a CTA is alone with itself
                    run, _ = compose(blueprint, choice, work, alone=True)
                problems += _whole_runs(run, problems)
            for problem in problems:
                found.setdefault(_key(problem), Found(problem, composition, choice, work))
    return list(found.values())


def _whole_runs(composition: Composition, known: list[Problem]) -> list[Problem]:
    """Runs of no and of a few periods, with all that happens before and after them."""
    if known:
        return []
    return [problem for periods in (0, 3) for problem in analyze_case(unroll(composition, periods))]


def _key(problem: Problem) -> tuple[object, ...]:
    clauses = [action.origin if action else None for action in (problem.first, problem.second)]
    return problem.kind, problem.target, *clauses


def is_live(blueprint: ProtocolIndex, stages: Mapping[str, int], work: list[Item]) -> bool:
    """Whether these stage counts run without a deadlock."""
    composition, problems = compose(blueprint, stages, work)
    return not problems and all(problem.kind != "deadlock" for problem in analyze_case(composition))
