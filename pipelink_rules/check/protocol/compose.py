"""What is the protocol of a program for given stages and work items?  ProtocolIndex -> Composition.

All CTAs of a cluster do the same, to what stands where they are.  Seen from a CTA, another one
stands so many steps along both axes, round the cluster.  Everybody's copies and releases go to
CTAs that stand the same steps away, so the actions of the first CTA are those of all, with other
names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pipelink_rules.check.protocol.model import (
    Action,
    Barrier,
    Composition,
    Kind,
    Memory,
    Named,
    Origin,
    Process,
)
from pipelink_rules.check.protocol.process_builder import ProcessBuilder, Work
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex, in_cta, ring_names
from pipelink_rules.check.protocol.protocol_problems import Problem, UnequalBarrierUse, UnequalRates
from pipelink_rules.model.program import HANDOVER, Channel

_OBJECT = re.compile(r"[^ \[]*")  # of `store.staging warpgroup 1[0]`: what is there once a CTA


def compose(
    protocol: ProtocolIndex,
    stages: Mapping[str, int],
    work: Sequence[Work],
    *,
    alone: bool = False,
    self_last: bool = False,
) -> tuple[Composition, list[Problem]]:
    """The composition whose period is the given work items, and what already contradicts.

    Every CTA of a cluster that shares data has processes, barriers and memories of its own.
    alone: one CTA that copies everything itself.  own_last: it releases to others first.
    """
    rank = None if alone or protocol.ctas == 1 else 0
    runs = [
        ProcessBuilder(protocol, warp_set, stages, rank, self_last)
        for warp_set in protocol.warp_sets
    ]
    processes = tuple(run.process(work) for run in runs)
    problems: list[Problem] = [problem for run in runs for problem in run.problems]
    barriers: dict[str, Barrier] = {}
    memories: dict[str, Memory] = {}
    named: dict[str, Named] = {}
    for channel in protocol.program.channels:
        count = stages[channel.name]
        released = channel.empty_arrivals
        if rank is None:
            released //= len(channel.reach(0))
        for share in range(channel.shares):
            memory, full, empty = ring_names(channel, share)
            items = _agreed(runs, memory, channel, problems)
            barriers[full] = Barrier(count, channel.full_arrivals, items)
            barriers[empty] = Barrier(count, released, items)
            memories[memory] = Memory(count, items)
    for run in runs:
        for name, items in run.written.items():
            memories[name] = Memory(run.pieces[name], items)
        for name, threads in run.threads.items():
            named[name] = Named(threads, _turns(runs, name, problems))
    first = Composition(barriers, memories, named, processes)
    return first if rank is None else in_all_ctas(protocol, first), problems


def _agreed(
    runs: list[ProcessBuilder], memory: str, channel: Channel, problems: list[Problem]
) -> int:
    """Items per period of a ring: what its producer makes, every consumer must take."""
    made, origin = 0, Origin(*channel.producer)
    for run in runs:
        if (memory, channel.producer) in run.moves:
            made = run.moves[memory, channel.producer]
            origin = run.first[memory, channel.producer]
    for end in channel.consumers:
        if channel.kind == HANDOVER and not any((memory, end) in run.moves for run in runs):
            continue  # its entry is not called for this share
        taken = [
            (run.moves[memory, end], run.first[memory, end])
            for run in runs
            if (memory, end) in run.moves
        ]
        count, user = taken[0] if taken else (0, Origin(end[0], "", "", None, end[1]))
        if count != made:
            problems.append(UnequalRates(memory, origin, user, made, count))
            break
    return made


def _turns(runs: list[ProcessBuilder], name: str, problems: list[Problem]) -> int:
    """Generations per period of a named barrier: every role that uses it comes as often."""
    turns = [(run.turns[name], run) for run in runs if name in run.turns]
    for turn, run in turns:
        if turn != turns[0][0]:
            user = Action(Kind.SIGNAL, name, origin=run.first[name])
            if not any(problem.target == name for problem in problems):
                problems.append(UnequalBarrierUse(name, user, turn, turns[0][0]))
    return turns[0][0]


class CtaNames(dict[str, str]):
    """The names of the first CTA's objects, and of those it reaches, as another CTA has them."""

    def __init__(self, protocol: ProtocolIndex, cta: int):
        self.cta = cta
        along, across, _ = protocol.program.cluster
        for channel in protocol.program.channels:
            for share in range(channel.shares):
                for place in range(protocol.ctas):
                    x = (place % along + cta % along) % along
                    y = (place // along + cta // along) % across
                    there = ring_names(channel, share, x + along * y)
                    self.update(zip(ring_names(channel, share, place), there, strict=True))

    def __missing__(self, name: str) -> str:
        """A buffer, a named barrier or a role; what has no dot is in no CTA's shared memory."""
        if "." not in name:
            return self.setdefault(name, name)
        found = _OBJECT.match(name)
        stem = found.group() if found else name
        return self.setdefault(name, in_cta(stem, self.cta) + name[len(stem) :])


def in_all_ctas(protocol: ProtocolIndex, first: Composition) -> Composition:
    """The composition of a whole cluster, from that of its first CTA."""
    barriers, memories, named = dict(first.barriers), dict(first.memories), dict(first.named)
    processes = list(first.processes)
    for cta in range(1, protocol.ctas):
        names = protocol.names_in.get(cta)
        if names is None:
            names = protocol.names_in[cta] = CtaNames(protocol, cta)
        barriers |= {names[name]: barrier for name, barrier in first.barriers.items()}
        memories |= {names[name]: memory for name, memory in first.memories.items()}
        named |= {names[name]: barrier for name, barrier in first.named.items()}
        processes += [
            Process(
                in_cta(process.name, cta),
                _moved(process.period, names),
                _moved(process.prologue, names),
                _moved(process.epilogue, names),
            )
            for process in first.processes
        ]
    return Composition(barriers, memories, named, tuple(processes))


def _moved(actions: tuple[Action, ...], names: dict[str, str]) -> tuple[Action, ...]:
    return tuple(
        Action(kind, names[target], item, amount, size, names[barrier], origin)
        for kind, target, item, amount, size, barrier, origin in actions
    )
