"""Which problems does the protocol of a program have, for all stages and work items it may get?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pipelink_rules.check.protocol.analyze_case import analyze_case
from pipelink_rules.check.protocol.cases import (
    Item,
    Stages,
    looping,
    ranges,
    sequences,
    stage_choices,
)
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.model import Composition, unroll
from pipelink_rules.check.protocol.problem import Problem
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex


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
