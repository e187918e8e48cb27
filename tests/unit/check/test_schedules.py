"""Every schedule that a finding shows runs, in the executor of the tests, into the same failure."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from compositions import chain, gemm
from compositions_found import FOUND
from compositions_mixed import edited, mixed
from programs import findings
from unit.check.interleavings import ALIAS, PROXY, RACE, Step, hangs, replay
from unit.check.oracle_comparison import MAKERS
from unit.check.tensor_compositions import stored, tensor

from pipelink_rules.check.protocol.analyze import analyze_case
from pipelink_rules.check.protocol.counterexample import (
    FAULTS,
    MOST_TRIES,
    Counterexample,
    find_counterexample,
)
from pipelink_rules.check.protocol.model import Composition
from pipelink_rules.check.protocol.protocol_problems import (
    Deadlock,
    MmaStillReads,
    Problem,
    StarvedWait,
)
from pipelink_rules.check.protocol.render_counterexample import MOST_LINES, lines

FAILURES = {"order": RACE, "proxy": PROXY, "phase": ALIAS, "round": ALIAS}


def replays(schedule: Counterexample) -> bool:
    """Whether the other executor runs the steps into the same failure."""
    steps = [Step(*step) for step in schedule.steps]
    if schedule.fault is None:
        return bool(schedule.stuck) and hangs(schedule.run, steps, schedule.stuck)
    return replay(schedule.run, steps) == FAILURES[schedule.fault.kind]


def schedules(composition: Composition) -> list[tuple[Problem, Counterexample | None]]:
    """The problems of a composition that a run can show."""
    return [
        (problem, find_counterexample(composition, problem)[0])
        for problem in analyze_case(composition)
        if isinstance(problem, (Deadlock, StarvedWait)) or type(problem) in FAULTS
    ]


@pytest.mark.parametrize("make", MAKERS)
def test_schedules_replay(make: Callable[[random.Random], Composition]) -> None:
    shown = silent = 0
    for seed in range(80):
        for problem, schedule in schedules(make(random.Random(f"{make.__name__} {seed}"))):
            if schedule is None:
                silent += 1
                continue
            shown += 1
            assert replays(schedule), (seed, problem)
            assert 0 < len(lines(schedule)) <= MOST_LINES
    if make in (tensor, stored):
        assert not shown, "tensor memory is not run: then nothing is shown"
    else:
        assert shown > silent


@pytest.mark.parametrize("name", [name for name, case in FOUND.items() if case[1]])
def test_no_step_can_be_left_out(name: str) -> None:
    reported = [schedule for _, schedule in schedules(FOUND[name][0]) if schedule]
    for schedule in reported:
        for place in range(len(schedule.steps) - 1):
            steps = (*schedule.steps[:place], *schedule.steps[place + 1 :])
            assert not replays(schedule._replace(steps=steps)), place


def test_a_search_that_takes_too_long_shows_nothing() -> None:
    composition, kind, _ = FOUND["two arrivals of a fast reader"]
    problem = next(item for item in analyze_case(composition) if type(item) is kind)
    schedule, left = find_counterexample(composition, problem, 8_000)
    assert schedule and left > 0
    assert find_counterexample(composition, problem, 8_000 - left)[0] == schedule
    assert find_counterexample(composition, problem, 8_000 - left - 1)[0] is None


def test_very_long_work_tiles_show_nothing() -> None:
    composition = gemm(2, trip=500, lag=0)
    problem = next(item for item in analyze_case(composition) if isinstance(item, MmaStillReads))
    assert find_counterexample(composition, problem) == (None, MOST_TRIES)


@pytest.mark.parametrize("make", [chain, mixed, edited])
def test_straight_runs_are_as_short_as_searched_ones(
    make: Callable[[random.Random], Composition],
) -> None:
    compared = 0
    for seed in range(40):
        for problem, schedule in schedules(make(random.Random(f"{make.__name__} {seed}"))):
            composition = make(random.Random(f"{make.__name__} {seed}"))
            searched, _ = find_counterexample(composition, problem, straight=False)
            if schedule and searched and type(problem) in FAULTS:
                compared += 1
                assert len(schedule.steps) <= len(searched.steps), (seed, problem)
    assert compared > 10


def test_the_lines_say_who_does_what_with_which_item() -> None:
    """Two stages, released while the tensor core still reads: the third copy comes too early."""
    early = [["release ab lag 1", "release ab lag 0"]]
    last = [["      - await mma 0\n      - release ab lag 0\n", "      - await mma 0\n"]]
    (finding,) = findings("gemm", mma=early + last)
    assert finding.code == "PL0504"
    assert finding.counterexample == (
        "1 load.load: acquire ab, expect ab, copy A -> ab.A, copy B -> ab.B: items 0 to 1",
        "2 mma.mma: wait ab, mma ab, await mma 1, release ab lag 0: item 0, stage 0",
        "3 load.load: acquire ab, expect ab: item 2, stage 0",
        "4 load.load: copy A -> ab.A: item 2, stage 0; `mma ab` of `mma.mma` is still "
        "reading item 0 there",
    )
