"""Liveness of an event graph: an order of execution, or a cycle of waits.

A periodic graph runs forever iff every cycle has a distance of at least 1 (a marked graph is live
iff every cycle carries a token; Commoner, Holt et al., 1971).  Where no distance is negative, the
cycles of distance 0 are the cycles of the edges of distance 0; where some are (an operation before
the first work tile shifts a role), periods are renumbered per node until none is.
"""

from collections import deque
from typing import NamedTuple

from pipelink_rules.check.protocol.event_graph import EventGraph
from pipelink_rules.check.protocol.protocol_problems import Edge


class Verdict(NamedTuple):
    """`order` covers every node of a live graph; else `cycle` is a cycle without a token."""

    order: list[int]
    cycle: tuple[Edge, ...] = ()


def order_of(graph: EventGraph) -> Verdict:
    """Return an order in which one period can run, or the shortest cycle found."""
    shift = [0] * len(graph.before)
    if any(distance < 0 for edges in graph.before for _, distance in edges):
        cycle = _renumber(graph, shift)
        if cycle:
            return Verdict([], cycle)
    after: list[list[int]] = [[] for _ in graph.before]
    missing = [0] * len(graph.before)
    for node, edges in enumerate(graph.before):
        for earlier, distance in edges:
            if distance + shift[node] - shift[earlier] == 0:
                after[earlier].append(node)
                missing[node] += 1
    order = [node for node, count in enumerate(missing) if not count]
    for node in order:
        for later in after[node]:
            missing[later] -= 1
            if not missing[later]:
                order.append(later)
    if len(order) == len(missing):
        return Verdict(order)
    stuck = {node for node, count in enumerate(missing) if count}
    return Verdict([], _shortest_cycle(graph, shift, after, stuck))


def _renumber(graph: EventGraph, shift: list[int]) -> tuple[Edge, ...]:
    """Set `shift` so that distance + shift[later] - shift[earlier] >= 0; else a negative cycle."""
    parent: dict[int, Edge] = {}
    moved = -1
    for _ in range(len(shift) + 1):
        moved = -1
        for node, edges in enumerate(graph.before):
            for earlier, distance in edges:
                if shift[earlier] - distance > shift[node]:
                    shift[node] = shift[earlier] - distance
                    parent[node] = (earlier, node, distance)
                    moved = node
        if moved < 0:
            return ()
    for _ in range(len(shift)):
        moved = parent[moved][0]
    cycle: list[Edge] = []
    node = moved
    while not cycle or node != moved:
        cycle.append(parent[node])
        node = parent[node][0]
    return tuple(reversed(cycle))


def _shortest_cycle(
    graph: EventGraph, shift: list[int], after: list[list[int]], stuck: set[int]
) -> tuple[Edge, ...]:
    """Return the shortest cycle through one of the first stuck nodes, as edges in order."""
    best: list[int] = []
    for start in sorted(stuck)[:64]:
        came: dict[int, int] = {}
        queue = deque([start])
        while queue and start not in came:
            node = queue.popleft()
            for later in after[node]:
                if later in stuck and later not in came:
                    came[later] = node
                    queue.append(later)
        if start not in came:
            continue
        path, node = [start], came[start]
        while node != start:
            path.append(node)
            node = came[node]
        if not best or len(path) < len(best):
            best = path[::-1]
    edges = []
    for place, node in enumerate(best):
        earlier = best[place - 1]
        distance = min(
            far
            for found, far in graph.before[node]
            if found == earlier and far + shift[node] - shift[earlier] == 0
        )
        edges.append((earlier, node, distance))
    return tuple(edges)
