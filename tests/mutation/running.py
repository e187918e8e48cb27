"""Run a program in a model checker that does not use the event graph of the checker.

Small cases (few stages, few work tiles) are run in every interleaving; where there are too many,
in a number of random ones.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from unit.check.interleavings import LIMIT, OK, explore
from unit.check.machine import Bad, Machine
from unit.check.mutations import with_known_bytes

from pipelink_rules.check.protocol.cases import ranges
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.model import Composition, unroll
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.model.program import Program

TRIPS = (1, 2, 3)
PERIODS = 3
STATES = 4_000
WALKS = 40

_verdicts: dict[str, bool] = {}
_composed: dict[tuple[int, str], tuple[Program, tuple[Composition, ...]]] = {}


def protocols(program: Program, stages: Mapping[str, int] | None = None) -> tuple[Composition, ...]:
    """The compositions of small cases, for these stage counts or for the two smallest."""
    key = (id(program), str(stages))
    if key not in _composed:
        _composed.clear() if len(_composed) > 64 else None
        _composed[key] = program, tuple(_compose(program, stages))
    return _composed[key][1]


def _compose(program: Program, fixed: Mapping[str, int] | None) -> list[Composition]:
    protocol = ProtocolIndex(program)
    fields = ranges(program)
    found = []
    for stages in [fixed] if fixed else _smallest(program):
        for trip in TRIPS if protocol.loops else TRIPS[:1]:
            work = {name: field.clip(trip) for name, field in fields.items()}
            composition, problems = compose(protocol, stages, [work])
            if not problems:
                found.append(composition)
    return found


def _smallest(program: Program) -> list[dict[str, int]]:
    """All stage counts at their minimum, and one above it."""
    low = {channel.name: channel.minimum for channel in program.channels}
    more = {c.name: min(c.minimum + 1, c.maximum) for c in program.channels}
    return [low] if low == more else [low, more]


def shape_of(composition: Composition) -> str:
    """A text that is equal for compositions that do the same."""
    processes = [
        [tuple(action)[:6] for action in part]
        for process in composition.processes
        for part in (process.prologue, process.period, process.epilogue)
    ]
    return repr((composition.barriers, composition.memories, composition.named, processes))


def runs_well(composition: Composition) -> bool:
    """No interleaving that was tried hangs, races or takes one phase for another."""
    key = shape_of(composition)
    if key not in _verdicts:
        run = unroll(with_known_bytes(composition), PERIODS)
        verdict = explore(run, STATES)
        _verdicts[key] = _walks(run) if verdict == LIMIT else verdict == OK
    return _verdicts[key]


def _walks(run: Composition) -> bool:
    machine = Machine(run)
    for seed in range(WALKS):
        rng = random.Random(seed)
        state = machine.start
        try:
            while steps := [after for after in machine.steps(state) if after != state]:
                state = rng.choice(steps)
            machine.ended(state)
        except Bad:
            return False
        if machine.crossed or not machine.over(state):
            return False
    return True
