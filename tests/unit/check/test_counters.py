"""The rule about counters agrees with every interleaving of small groups of work tiles."""

from __future__ import annotations

import random

import pytest
from counter_interleavings import explore

from pipelink_rules.check.counters.analyze_group import (
    ALL,
    READ,
    SIGNAL,
    UNTIL,
    WRITE,
    EndlessWait,
    Group,
    GroupOp,
    GroupProblem,
    OpSequence,
    UnorderedAccesses,
    UnwrittenScratch,
    WaitForLaterItem,
    WaitForSameTile,
    analyze,
    reachable_state,
)
from pipelink_rules.check.protocol.model import Origin

CASES = 400


def step(kind: str, number: int, value: int = 0, piece: int = ALL) -> GroupOp:
    """A step with an origin of its own."""
    target = "counter" if kind in (SIGNAL, UNTIL) else "memory"
    return GroupOp(kind, target, value, piece, origin=Origin(text=f"{kind} {number}"))


def drawn(random_: random.Random, roles: int, waits_first: bool) -> Group:
    """A small group; `waits_first`: an item signals only after all it waits for."""
    items = random_.choice((1, 2, 2, 3, 3) if roles == 1 else (1, 2))
    warps = random_.choice((1, 1, 2)) if items < 3 and roles == 1 else 1
    lines = []
    for item in range(items):
        for role in range(roles):
            steps = []
            for position in range(random_.randint(1, 4 if items < 3 else 3)):
                kind = random_.choice((SIGNAL, UNTIL, READ, WRITE))
                amount = warps * random_.choice((0, 1, 1, item, item, item + 1))
                piece = random_.choice((ALL, 0, item))
                number = (item * roles + role) * 10 + position
                steps.append(step(kind, number, amount if kind == UNTIL else 0, piece))
            if waits_first:
                steps.sort(key=lambda one: one.kind == SIGNAL)
            lines.append(OpSequence(item, warps, tuple(steps), together=True))
    return tuple(lines)


def problems_of(group: Group) -> set[type[GroupProblem]]:
    return {type(problem) for problem in analyze(group)}


@pytest.mark.parametrize("seed", range(4))
def test_every_interleaving_agrees(seed: int) -> None:
    """One role whose items signal last: the rule is exact."""
    random_ = random.Random(seed)
    kinds: dict[str, int] = {}
    for _ in range(CASES // 4):
        group = drawn(random_, 1, waits_first=True)
        found = problems_of(group)
        runs = [explore(group, grid) for grid in range(1, len(group) + 1)]
        stuck = bool(found & {EndlessWait, WaitForLaterItem, WaitForSameTile})
        assert any(run.deadlock for run in runs) == stuck, group
        if stuck:
            kinds["deadlock"] = kinds.get("deadlock", 0) + 1
            continue
        assert runs[-1].race == (UnorderedAccesses in found), group
        if not runs[-1].race:
            assert runs[-1].unwritten == (UnwrittenScratch in found), group
        verdict = "race" if runs[-1].race else "unwritten" if runs[-1].unwritten else "right"
        kinds[verdict] = kinds.get(verdict, 0) + 1
    assert set(kinds) == {"deadlock", "race", "unwritten", "right"}, kinds


@pytest.mark.parametrize("seed", range(4, 8))
@pytest.mark.parametrize("roles", [1, 2])
def test_what_is_accepted_runs(seed: int, roles: int) -> None:
    """Signals anywhere, several roles: nothing that hangs, races or reads stale data passes."""
    random_ = random.Random(seed)
    right = 0
    for _ in range(CASES):
        group = drawn(random_, roles, waits_first=False)
        if problems_of(group):
            continue
        right += 1
        for grid in range(1, len(group) // roles + 1):
            assert explore(group, grid, roles) == (False, False, False), group
    assert right >= 10


def test_one_warp_that_is_late_counts() -> None:
    """Two signals of a fast warp stand for one of a slow warp: the wait is passed too early."""
    write, first, second = step(WRITE, 0, piece=0), step(SIGNAL, 1), step(SIGNAL, 2)
    waits, read = step(UNTIL, 3, 2), step(READ, 4, piece=0)
    group = (OpSequence(0, 2, (write, first, second)), OpSequence(1, 2, (waits, read)))
    assert problems_of(group) == {UnorderedAccesses}
    assert explore(group, 2).race


def test_held_up_is_only_one_warp() -> None:
    group = (
        OpSequence(0, 4, (step(SIGNAL, 0),)),
        OpSequence(1, 4, (step(UNTIL, 1, 3), step(READ, 2))),
    )
    assert reachable_state(group, (0, 0)) == [1, 2]
