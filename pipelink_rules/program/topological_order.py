"""In which order does data flow?  Nodes, edges -> topological order and what is left in cycles."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

Node = tuple[str, str]


def topological_order(
    nodes: Iterable[Node], edges: Iterable[tuple[Node, Node]]
) -> tuple[list[Node], list[Node]]:
    """(all nodes, producers first; those of them in or behind a cycle).  Ties go by name."""
    names = sorted(set(nodes))
    after: dict[Node, set[Node]] = {node: set() for node in names}
    for first, second in edges:
        if first in after and second in after:
            after[first].add(second)
    waits = {node: sum(node in targets for targets in after.values()) for node in names}
    ready = [node for node in names if not waits[node]]
    found: list[Node] = []
    while ready:
        node = heapq.heappop(ready)
        found.append(node)
        for target in after[node]:
            waits[target] -= 1
            if not waits[target]:
                heapq.heappush(ready, target)
    stuck = [node for node in names if node not in set(found)]
    return found + stuck, stuck
