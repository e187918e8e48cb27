"""Problems of a protocol for all stage counts and work tiles that are possible.

A case is a composition; it is analyzed for deadlocks and races for every number of work tiles.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from pipelink_rules.check.protocol import cases
from pipelink_rules.check.protocol.async_groups import in_flight
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.event_graph import EventGraph
from pipelink_rules.check.protocol.liveness import order_of
from pipelink_rules.check.protocol.model import Composition, Kind, Process, unroll
from pipelink_rules.check.protocol.phase_counts import count_errors, missing_arrivals
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.check.protocol.protocol_problems import (
    AccumulatorsInFlight,
    Deadlock,
    MmaNotAwaited,
    PendingProblem,
    Problem,
    StoreNotAwaited,
    TensorAccessNotAwaited,
    TensorLoadInFlight,
    UnwrittenRead,
    WrongArrivals,
    WrongThreads,
)
from pipelink_rules.check.protocol.races import aliases, overruns, races, recycled
from pipelink_rules.check.protocol.vector_clocks import VectorClocks

P = TypeVar("P", bound=Problem, covariant=True)
# With one of these, order cannot be analyzed.
_NO_ORDER = (WrongArrivals, WrongThreads, UnwrittenRead)
# kind of group -> problem where it is pending when registers are used, and at the end of a role
TOUCHED: dict[str, type[PendingProblem]] = {
    Kind.MMA: AccumulatorsInFlight,
    Kind.TENSOR_LOAD: TensorLoadInFlight,
}
NOT_AWAITED: dict[str, type[PendingProblem]] = {
    Kind.MMA: MmaNotAwaited,
    Kind.STORE: StoreNotAwaited,
    Kind.TENSOR_LOAD: TensorAccessNotAwaited,
    Kind.TENSOR_STORE: TensorAccessNotAwaited,
}


def analyze_case(composition: Composition) -> tuple[Problem, ...]:
    """Return all problems of a composition; order is analyzed only if the counts are right.

    A periodic composition is analyzed for all numbers of periods; a finite one is one run.
    """
    counted = missing_arrivals if composition.finite else count_errors
    problems = list(counted(composition))
    for process in composition.processes:
        problems += _groups(process, composition.finite)
    if any(isinstance(problem, _NO_ORDER) for problem in problems):
        return tuple(problems)
    graph = EventGraph(composition)
    verdict = order_of(graph)
    if verdict.cycle:
        events = [graph.event_of[node] for node, _, _ in verdict.cycle if node in graph.event_of]
        targets = tuple(sorted({event.target for event in events}))
        return (*problems, Deadlock(targets[0] if targets else "", targets, verdict.cycle))
    clocks = VectorClocks(graph, verdict.order)
    problems += aliases(graph, clocks)
    problems += overruns(graph, clocks)
    problems += recycled(graph, clocks)
    problems += races(graph, clocks)
    return tuple(problems)


def _groups(process: Process, finite: bool) -> Iterator[Problem]:
    touched, left = in_flight(process.period, 1 if finite else 2)
    for place, kind, pending in touched:
        action = process.period[place]
        yield TOUCHED[kind](action.target, action, pending)
    if not finite:
        return
    for kind, pending in left.items():
        if pending:
            last = [action for action in process.period if action.kind == kind][-1]
            yield NOT_AWAITED[kind](last.target, last, pending)


@dataclass(frozen=True)
class Found(Generic[P]):
    """A problem, and the case in which it was found first."""

    problem: P
    composition: Composition
    stages: cases.Stages
    work: list[cases.Item]


def find_problems(
    protocol: ProtocolIndex, stages: Mapping[str, int] | None = None
) -> list[Found[Problem]]:
    """Return every kind of problem once per target and pair of clauses, the smallest case first.

    `stages`: analyze only these counts (of a placement) instead of all that it may choose.
    Raise TooManyOperations.
    """
    program = protocol.program
    choices = cases.stage_choices(program) if stages is None else [dict(stages)]
    fields, loops = cases.ranges(program), cases.looping(program)
    found: dict[tuple[object, ...], Found[Problem]] = {}
    for number, choice in enumerate(choices):
        counts = {choice[name] for name in loops}
        tiles = list(cases.sequences(fields, counts, short=number > 0))
        tiles += [] if number else cases.kinds(program, fields, counts)
        for place, work in enumerate(tiles):
            last = place % 2 == 1  # adjacent trip counts, in both orders
            composition, problems = compose(protocol, choice, work, self_last=last)
            problems = problems or list(analyze_case(composition))
            if not problems and ((not number and len(work) != 1) or not fields):
                run = composition
                if protocol.ctas > 1:  # outside of its work tiles a CTA uses only its own objects
                    run, _ = compose(protocol, choice, work, alone=True)
                for periods in (0, 3):  # with prologue and epilogue
                    problems += analyze_case(unroll(run, periods))
            for problem in problems:
                found.setdefault(problem.key, Found(problem, composition, choice, work))
    return list(found.values())


def is_live(protocol: ProtocolIndex, stages: Mapping[str, int], work: list[cases.Item]) -> bool:
    """Return whether these stage counts run without a deadlock."""
    composition, problems = compose(protocol, stages, work)
    return not problems and not any(
        isinstance(problem, Deadlock) for problem in analyze_case(composition)
    )
