"""Waits of a role for signals of the same work tile, which other roles of its CTA perform.

All work tiles with lower numbers are complete, whichever CTAs they run on.  So such a wait ends iff
the roles of a CTA can run this work tile from there.  What has happened only grows, whatever the
interleaving: the event graph of the tile runs node by node, a wait once its signals are counted.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from pipelink_rules.check.counters.analyze_group import (
    SIGNAL,
    UNTIL,
    Group,
    GroupOp,
    WaitForSameTile,
    performed,
)
from pipelink_rules.check.counters.counter_groups import TileNumbering
from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.protocol.cases import ranges, sequences
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.event_graph import EventGraph
from pipelink_rules.check.protocol.model import Composition, Origin, unroll
from pipelink_rules.check.protocol.protocol_index import TooManyOperations


def same_tile_problems(
    index: ProgramIndex, numbered: TileNumbering, group: Group
) -> Iterator[WaitForSameTile]:
    """Yield the waits of a tile that cannot complete, with the fewest stages."""
    stages = {channel.name: channel.minimum for channel in index.program.channels}
    tiles = list(sequences(ranges(index.program), stages.values(), short=True))
    for item in sorted({line.item for line in group}):
        lower = performed(line for line in group if line.item < item)
        steps = {
            step.origin: step
            for line in group
            for step in line.steps
            if line.item == item and step.kind in (SIGNAL, UNTIL)
        }
        waits = [step for step in steps.values() if step.kind == UNTIL]
        if all(step.amount <= lower.get(step.target, 0) for step in waits):
            continue
        for work in tiles:
            tile = {**work[0], numbered.field.name: item}
            try:
                composition, _ = compose(index.protocol, stages, [tile], alone=True)
            except TooManyOperations:  # reported by check_protocol
                return
            stuck = _stuck(unroll(composition, 1), steps, lower)
            if stuck:
                wait, signal = stuck
                made = lower.get(wait.target, 0)
                yield WaitForSameTile(wait, wait.amount, made, item, signal.origin)
                break


def _stuck(
    run: Composition, steps: Mapping[Origin, GroupOp], lower: Mapping[str, int]
) -> tuple[GroupOp, GroupOp] | None:
    """Return a wait that a run stops at, and a signal that is not performed before it."""
    graph = EventGraph(run)
    counts = defaultdict(int, lower)
    missing = [len(edges) for edges in graph.before]
    after: list[list[int]] = [[] for _ in missing]
    for node, edges in enumerate(graph.before):
        for earlier, _ in edges:
            after[earlier].append(node)
    ready = [node for node, count in enumerate(missing) if not count]
    waiting: list[tuple[int, GroupOp]] = []
    done: set[int] = set()
    while ready:
        node = ready.pop()
        action = graph.actions[node]
        step = steps.get(action.origin) if action else None
        if step and step.kind == UNTIL and counts[step.target] < step.amount:
            waiting.append((node, step))
            continue
        done.add(node)
        if action and step and step.kind == SIGNAL:
            counts[step.target] += action.item  # warps
            ready += [place for place, wait in waiting if wait.amount <= counts[wait.target]]
            waiting = [item for item in waiting if item[1].amount > counts[item[1].target]]
        for later in after[node]:
            missing[later] -= 1
            if not missing[later]:
                ready.append(later)
    for _, wait in waiting:
        for node, action in enumerate(graph.actions):
            step = steps.get(action.origin) if action else None
            if step and step.kind == SIGNAL and step.target == wait.target and node not in done:
                return wait, step
    return None
