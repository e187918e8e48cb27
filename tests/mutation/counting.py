"""Do the counters of a program order its work tiles, by an executor that knows no rule of order?

The groups of items are run with every warp for itself, in random orders: mostly one warp is held
up as long as anybody else can move, because that is how races show.
"""

from __future__ import annotations

import random

from pipelink_rules.check.counters.analyze_group import (
    ALL,
    READ,
    SIGNAL,
    UNTIL,
    WRITE,
    Group,
    GroupOp,
)
from pipelink_rules.check.counters.counter_groups import (
    Undecidable,
    counter_group,
    tile_numberings,
    users,
)
from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.model.program import Program
from pipelink_rules.model.target import TARGETS

WALKS = 60


def counters_run_well(program: Program) -> bool:
    """No walk hangs, races or reads what is unwritten; True where nothing crosses CTAs."""
    resolved = ProgramIndex(program, TARGETS[program.target])
    fields = {op.index[0].text for _, _, op, _ in users(resolved)}
    numbered = tile_numberings(resolved)
    cleared = {
        f"{item.name}.{port.name}"
        for item in program.instances
        for port in item.variant.contract.ports
        if port.init == "zero"
    }
    if not fields <= set(numbered):
        return False
    try:
        groups = [counter_group(resolved, numbered[field]) for field in sorted(fields)]
    except Undecidable:
        return False
    return all(_walk(group, seed, cleared) for group in groups for seed in range(WALKS))


def _walk(group: Group, seed: int, cleared: set[str]) -> bool:
    rng = random.Random(seed)
    # A role with more warps than two counts as often, in two portions.
    strands = [
        (line.steps, count)
        for line in group
        for count in ((line.warps - 1, 1) if line.warps > 1 else (1,))
    ]
    places = [0] * len(strands)
    homes = [n for n, line in enumerate(group) for _ in range(2 if line.warps > 1 else 1)]
    open_: dict[int, GroupOp] = {}
    counts: dict[str, int] = {}
    written: set[tuple[str, int]] = set()
    late = rng.randrange(len(strands))
    while True:
        able = [
            number
            for number, (steps, _) in enumerate(strands)
            if places[number] < len(steps) and _passes(steps[places[number]], counts)
        ]
        if not able:
            return all(places[n] == len(steps) for n, (steps, _) in enumerate(strands))
        others = [number for number in able if number != late]
        number = rng.choice(others or able)
        step, count = strands[number][0][places[number]], strands[number][1]
        if step.kind in (READ, WRITE) and number not in open_:
            for other, theirs in open_.items():
                mine = homes[other] == homes[number] and not group[homes[number]].together
                if not mine and _conflict(step, theirs):
                    return False
            if step.kind == READ and step.target not in cleared and not _there(step, written):
                return False
            open_[number] = step
            continue
        if step.kind == SIGNAL:
            counts[step.target] = counts.get(step.target, 0) + count
        elif number in open_:
            del open_[number]
            if step.kind == WRITE:
                written.add((step.target, step.piece))
        places[number] += 1


def _passes(step: GroupOp, counts: dict[str, int]) -> bool:
    return step.kind != UNTIL or counts.get(step.target, 0) >= step.amount


def _conflict(a: GroupOp, b: GroupOp) -> bool:
    same = a.target == b.target and (a.piece == b.piece or ALL in (a.piece, b.piece))
    return same and WRITE in (a.kind, b.kind) and a.origin != b.origin


def _there(step: GroupOp, written: set[tuple[str, int]]) -> bool:
    if step.piece == ALL:
        return any(target == step.target for target, _ in written)
    return (step.target, step.piece) in written or (step.target, ALL) in written
