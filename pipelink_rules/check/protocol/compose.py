"""Composition of a protocol for given stages and work tiles: ProtocolIndex -> Composition.

All CTAs of a cluster perform the same actions on their own objects and on those of CTAs at the same
offsets along both axes, modulo the cluster.  So the actions of the first CTA are those of all, with
other names.
"""

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

_OBJECT = re.compile(r"[^ \[]*")  # of `store.staging warpgroup 1[0]`: what exists once per CTA


def compose(
    protocol: ProtocolIndex,
    stages: Mapping[str, int],
    work: Sequence[Work],
    *,
    alone: bool = False,
    self_last: bool = False,
) -> tuple[Composition, list[Problem]]:
    """Return the composition whose period is the given work tiles, and the problems found already.

    Every CTA of a cluster that shares data has separate processes, barriers and memories.
    alone: one CTA that copies everything itself.  self_last: it releases to other CTAs first.
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
    """Return the items per period of a ring; report consumers that consume another number."""

    def moved(end: tuple[str, str]) -> list[tuple[int, Origin]]:
        key = memory, end
        return [(run.moves[key], run.first[key]) for run in runs if key in run.moves]

    made, origin = (moved(channel.producer) or [(0, Origin(*channel.producer))])[-1]
    for end in channel.consumers:
        taken = moved(end)
        if channel.kind == HANDOVER and not taken:
            continue  # its entry is not called for this share
        count, user = taken[0] if taken else (0, Origin(end[0], name=end[1]))
        if count != made:
            problems.append(UnequalRates(memory, origin, user, made, count))
            break
    return made


def _turns(runs: list[ProcessBuilder], name: str, problems: list[Problem]) -> int:
    """Return the generations per period of a named barrier; report roles with another number."""
    turns = [(run.turns[name], run) for run in runs if name in run.turns]
    for turn, run in turns:
        if turn != turns[0][0]:
            user = Action(Kind.SIGNAL, name, origin=run.first[name])
            if not any(problem.target == name for problem in problems):
                problems.append(UnequalBarrierUse(name, user, turn, turns[0][0]))
    return turns[0][0]


class CtaNames(dict[str, str]):
    """Names of the objects that the first CTA uses -> those that another CTA uses instead."""

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
        """Name a buffer, named barrier or role; a name without a dot is not in shared memory."""
        if "." not in name:
            return self.setdefault(name, name)
        found = _OBJECT.match(name)
        stem = found.group() if found else name
        return self.setdefault(name, in_cta(stem, self.cta) + name[len(stem) :])


def in_all_ctas(protocol: ProtocolIndex, first: Composition) -> Composition:
    """Return the composition of a whole cluster from that of its first CTA."""
    barriers, memories, named = dict(first.barriers), dict(first.memories), dict(first.named)
    processes = list(first.processes)
    for cta in range(1, protocol.ctas):
        if cta not in protocol.names_in:
            protocol.names_in[cta] = CtaNames(protocol, cta)
        names = protocol.names_in[cta]
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
