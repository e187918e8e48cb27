"""Vector clocks of an event graph: what has certainly happened when a node runs.

The clock of a node holds, per process, the latest action that happens before the node (its
position, counted from period 0 of the node), and a second time the latest one from which a path
with a proxy fence leads to the node (PTX ISA, memory consistency model, proxies: accesses through
different proxies are ordered only across a proxy fence).
"""

from operator import add

from pipelink_rules.check.protocol.event_graph import EventGraph
from pipelink_rules.check.protocol.model import Kind, Position

NEVER = float("-inf")
Row = list[float]


class VectorClocks:
    """The fixed point of the clocks over the periods."""

    def __init__(self, graph: EventGraph, order: list[int]):
        self.graph = graph
        self.count = len(graph.lengths)
        self.rows: list[Row] = [[NEVER] * (2 * self.count) for _ in graph.before]
        self._moves: dict[int, list[int]] = {}
        while self._pass(order):
            pass

    def _pass(self, order: list[int]) -> bool:
        graph, rows, count = self.graph, self.rows, self.count
        changed = False
        for node in order:
            row: Row | None = None
            for earlier, distance in graph.before[node]:
                other = rows[earlier]
                if distance:
                    other = list(map(add, other, self._move(distance)))
                row = other if row is None else list(map(max, row, other))
            row = [NEVER] * (2 * count) if row is None else list(row)
            owner = graph.owner[node]
            if owner >= 0:
                row[owner] = graph.position[node]
                action = graph.actions[node]
                if action is not None and action.kind == Kind.FENCE:
                    row[count:] = row[:count]
            if row != rows[node]:
                rows[node] = row
                changed = True
        return changed and not graph.finite

    def _move(self, distance: int) -> list[int]:
        if distance not in self._moves:
            self._moves[distance] = [-distance * n for n in self.graph.lengths] * 2
        return self._moves[distance]

    def before_start(self, node: int) -> Row:
        """Return what has happened before an action starts: the clock of the previous action."""
        graph = self.graph
        if graph.position[node]:
            return self.rows[node - 1]
        if graph.finite:
            return [NEVER] * (2 * self.count)
        last = node + graph.lengths[graph.owner[node]] - 1
        return list(map(add, self.rows[last], self._move(1)))

    def passed(
        self, row: Row, ends: tuple[Position, ...], periods: int, fenced: bool = False
    ) -> bool:
        """Return whether one of `ends` happens before the node of `row`, which is `periods` later.

        Period 0 of the ends is `periods` before period 0 of the row.
        """
        offset = self.count if fenced else 0
        lengths = self.graph.lengths
        return any(
            row[process + offset] + periods * lengths[process] >= position
            for process, position in ends
        )
