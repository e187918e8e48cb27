"""Event graph of a composition: a periodic graph of what happens before what.

An edge (u, v, d) says that u in period t happens before v in period t + d.  Nodes are the actions
of the processes, in a chain each, and the events that no process executes: a phase completes, a
copy arrives, a named barrier completes.  A finite composition gives a graph whose distances are all
0.

    load:  wait empty ──▶ expect ──▶ copy ──▶ (back to the start, d = 1)
             ▲ d = stages    │         └──▶ arrived
             │               ▼                │
        empty complete    full complete ◀─────┘
             ▲               │ d = 0
    mma:  release ◀── await ◀── mma ◀── wait full
"""

from bisect import bisect_right
from collections import defaultdict
from typing import NamedTuple

from pipelink_rules.check.protocol.async_groups import completions, fences_after
from pipelink_rules.check.protocol.model import (
    ASYNC_PROXY,
    IN_TENSOR_MEMORY,
    READS,
    WAITS,
    WRITES,
    Action,
    Composition,
    Kind,
    Position,
    positions_of,
)


class MemoryAccess(NamedTuple):
    """A use of one item of a memory: from its start until one of `ends` is passed."""

    node: int
    process: int
    position: int
    action: Action
    period: int  # how many periods the item is ahead of the action
    ends: tuple[Position, ...]  # after any of them it is complete; () = never
    exports: tuple[Position, ...] = ()  # in tensor memory: when other threads may rely on it

    @property
    def writes(self) -> bool:
        """Whether it changes the memory."""
        return self.action.kind in WRITES

    @property
    def asynchronous(self) -> bool:
        """Whether it uses the asynchronous proxy."""
        return self.action.kind in ASYNC_PROXY


class BarrierUse(NamedTuple):
    """A wait for, an arrival or copy on, an event of period 0; it runs in period -`ahead`."""

    process: int
    position: int
    ahead: int
    node: int


class TensorCore(NamedTuple):
    """The tensor core as the mma of one process see it."""

    number: int  # among the processes
    commits: list[int]  # their positions


class GraphEvent(NamedTuple):
    """A node that no process executes."""

    kind: str  # "complete", "arrived" (a copy, or the arrival of a commit), "over" or "met"
    target: str
    item: int  # in 0 .. items per period - 1


class EventGraph:
    """Nodes, edges, and where barriers and memories are used."""

    def __init__(self, composition: Composition):
        self.composition = composition
        self.finite = composition.finite
        self.lengths = [len(process.period) for process in composition.processes]
        self.base: list[int] = []
        self.actions: list[Action | None] = []
        self.owner: list[int] = []  # process of a node, -1 for an event
        self.position: list[int] = []
        self.before: list[list[tuple[int, int]]] = []  # node -> (earlier node, distance)
        self.cores: dict[int, TensorCore] = {}  # process -> what its mma run on
        self.events: dict[GraphEvent, int] = {}
        self.event_of: dict[int, GraphEvent] = {}
        # all by (target, item of period 0); copies by those of their barrier
        self.waits: dict[tuple[str, int], list[BarrierUse]] = defaultdict(list)
        self.arrivals: dict[tuple[str, int], list[BarrierUse]] = defaultdict(list)
        self.copies: dict[tuple[str, int], list[BarrierUse]] = defaultdict(list)
        self.accesses: dict[tuple[str, int], list[MemoryAccess]] = defaultdict(list)
        self._chains()
        self._tensor_cores()
        for index in range(len(composition.processes)):
            self._synchronize(index)
        for index in range(len(composition.processes)):
            self._access(index)

    def split(self, item: int, items: int) -> tuple[int, int]:
        """Return an item as (item of period 0, periods ahead)."""
        if self.finite:
            return item, 0
        return item % items, item // items

    def action_of(self, use: BarrierUse) -> Action:
        """Return the action of a use; for the tensor core, the commit."""
        action = self.actions[use.node]
        if action is not None:
            return action
        index, core = next(pair for pair in self.cores.items() if pair[1].number == use.process)
        return self.composition.processes[index].period[core.commits[self.position[use.node]]]

    def _node(self, action: Action | None, owner: int, position: int) -> int:
        self.actions.append(action)
        self.owner.append(owner)
        self.position.append(position)
        self.before.append([])
        return len(self.actions) - 1

    def _chains(self) -> None:
        for index, process in enumerate(self.composition.processes):
            first = len(self.actions)
            self.base.append(first)
            for position, action in enumerate(process.period):
                node = self._node(action, index, position)
                if position:
                    self.before[node].append((node - 1, 0))
            if process.period and not self.finite:
                self.before[first].append((len(self.actions) - 1, 1))

    def _tensor_cores(self) -> None:
        """Append chains of nodes: the mma before commit n are complete.

        Each has an entry in the clocks, like a process, so that the ends of an mma have one.
        """
        for index, process in enumerate(self.composition.processes):
            places = positions_of(process.period, Kind.TENSOR_COMMIT)
            if not places:
                continue
            first, core = len(self.actions), len(self.lengths)
            self.cores[index] = TensorCore(core, places)
            self.lengths.append(len(places))
            self.base.append(first)
            for number, place in enumerate(places):
                node = self._node(None, core, number)
                self.event_of[node] = GraphEvent("over", process.period[place].target, number)
                self.before[node].append((self.base[index] + place, 0))
                if number:
                    self.before[node].append((node - 1, 0))
            if not self.finite:
                self.before[first].append((len(self.actions) - 1, 1))

    def _event(self, kind: str, target: str, item: int) -> int:
        event = GraphEvent(kind, target, item)
        if event not in self.events:
            self.events[event] = self._node(None, -1, 0)
            self.event_of[self.events[event]] = event
        return self.events[event]

    def _synchronize(self, index: int) -> None:
        composition, base = self.composition, self.base[index]
        for position, action in enumerate(composition.processes[index].period):
            node, kind = base + position, action.kind
            target = action.barrier if kind == Kind.COPY else action.target
            if kind in (Kind.WAIT, Kind.ARRIVE, Kind.TENSOR_COMMIT, Kind.COPY):
                what, items = "complete", composition.barriers[target].items
            elif kind in (Kind.SIGNAL, Kind.MEET):
                what, items = "met", composition.named[target].generations
            else:
                continue
            if self.finite and action.item < 0:
                self.waits[action.target, action.item].append(BarrierUse(index, position, 0, node))
                continue
            item, ahead = self.split(action.item, items)
            event = self._event(what, target, item)
            use = BarrierUse(index, position, ahead, node)
            if kind in WAITS:
                self.before[node].append((event, -ahead))
                self.waits[target, item].append(use)
            elif kind in (Kind.ARRIVE, Kind.SIGNAL):
                self.before[event].append((node, ahead))
                self.arrivals[target, item].append(use)
            else:  # asynchronous: some time later
                if kind == Kind.TENSOR_COMMIT:
                    core, commits = self.cores[index]
                    node = self.base[core] + commits.index(position)
                    self.arrivals[target, item].append(
                        BarrierUse(core, self.position[node], ahead, node)
                    )
                arrived = self._node(None, -1, 0)
                self.event_of[arrived] = GraphEvent("arrived", action.target, item)
                self.before[arrived].append((node, 0))
                self.before[event].append((arrived, ahead))
                self.copies[target, item].append(use)

    def _access(self, index: int) -> None:
        composition, base = self.composition, self.base[index]
        actions = composition.processes[index].period
        done = completions(actions, self.finite)
        for position, action in enumerate(actions):
            kind = action.kind
            if kind not in WRITES and kind not in READS:
                continue
            item, ahead = self.split(action.item, composition.memories[action.target].items)
            ends: tuple[Position, ...] = ((index, position),)
            if kind == Kind.COPY:
                phase, later = self.split(action.item, composition.barriers[action.barrier].items)
                ends = tuple(
                    (use.process, use.position + (later - use.ahead) * self.lengths[use.process])
                    for use in self.waits[action.barrier, phase]
                )
            elif kind in (Kind.TENSOR_MMA, Kind.ACCUMULATE):
                ends = self._commits(index, position)
            elif kind not in (Kind.READ, Kind.WRITE):
                end = done.get(position)
                ends = () if end is None else ((index, end),)
            exports = ends
            if kind in IN_TENSOR_MEMORY and kind != Kind.ACCUMULATE:
                exports = fences_after(actions, index, ends, self.finite)
            self.accesses[action.target, item].append(
                MemoryAccess(base + position, index, position, action, ahead, ends, exports)
            )

    def _commits(self, index: int, position: int) -> tuple[Position, ...]:
        """Return the commit that completes an mma; positions of later periods continue to count."""
        if index not in self.cores:
            return ()
        core, commits = self.cores[index]
        number = bisect_right(commits, position)
        return () if number == len(commits) and self.finite else ((core, number),)
