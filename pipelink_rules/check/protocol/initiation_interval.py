"""Initiation interval of a pipeline, from estimated latencies in cycles of an SM.

The latencies are rounded ones of a kernel with one CTA per SM and data in the L2 cache.  They serve
to compare stage counts and to name the bottleneck of a pipeline, not to predict seconds.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pipelink_rules.check.protocol.cases import looping, ranges
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.event_graph import EventGraph
from pipelink_rules.check.protocol.model import Action, Kind, positions_of
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex, TooManyOperations
from pipelink_rules.contract.item_layout import tensor_columns
from pipelink_rules.model.program import TENSOR_MEMORY

Edge = tuple[int, int, int, int]  # earlier node, later node, distance, cycles
# what an engine executes; copies, too, but those complete by their bytes
_GROUPS = (Kind.MMA, Kind.STORE, Kind.TENSOR_MMA, Kind.TENSOR_LOAD, Kind.TENSOR_STORE)
_ISSUED = (*_GROUPS, Kind.COPY, Kind.TENSOR_COMMIT)


@dataclass(frozen=True)
class Latency:
    """Cycles, and rates per cycle, of one SM."""

    wait: int = 30  # a try_wait that succeeds
    arrive: int = 20
    issue: int = 20  # of a copy, a store or a wgmma group
    copy: int = 700  # from the issue of a bulk or tensor copy to its arrival, besides its bytes
    store: int = 500  # from the issue of a bulk store until its source has been read
    barrier: int = 30  # named barrier
    access: int = 30  # a generic access, whatever is computed with it
    tensor: int = 100  # until tcgen05.mma or .ld begins to deliver, besides what it moves
    column: int = 1  # tcgen05.ld or .st of one column of all 128 lanes
    bytes: int = 64  # between L2 and one SM, per cycle
    products: int = 2048  # 16-bit products of the tensor cores of one SM, per cycle


# Nothing of tensor memory was measured here: 128 lanes of 4 bytes a cycle, and a round latency.
# Products: peak of the data sheets / SMs / clock / 2 (Hopper: 989 TFLOPS, 132 SMs, 1.83 GHz).
LATENCIES: dict[str, Latency] = {"sm_90a": Latency(), "sm_100a": Latency(products=4096)}


class Interval(NamedTuple):
    """The steady state of a pipeline for given stage counts."""

    cycles: float  # per step
    period: str  # "loop trip" or "work tile"
    bottleneck: str  # what bounds it, in words
    rings: tuple[str, ...]  # whose stages the bound depends on; () = more stages change nothing


def interval(protocol: ProtocolIndex, stages: Mapping[str, int]) -> Interval | None:
    """Return the interval per trip of the inner loop, or per work tile if there is none.

    The result is None if the program has no protocol, or none that runs.
    """
    fields, loops = ranges(protocol.program), looping(protocol.program)
    most = max((stages[name] for name in loops), default=0)
    try:
        if not fields or not loops:
            found = _periodic(protocol, stages, dict.fromkeys(fields, 1))
            return found and Interval(found[0], "work tile", *found[1:])
        short, long = (
            _periodic(protocol, stages, {n: f.clip(trips * most) for n, f in fields.items()})
            for trips in (2, 4)
        )
    except TooManyOperations:
        return None
    if short is None or long is None:
        return None
    cycles = (long[0] - short[0]) / (2 * most)
    return Interval(cycles, "loop trip", *long[1:]) if cycles > 0 else None


def _periodic(
    protocol: ProtocolIndex, stages: Mapping[str, int], work: Mapping[str, int]
) -> tuple[float, str, tuple[str, ...]] | None:
    """Return the cycles per period of one work tile, the bottleneck and its rings."""
    composition, problems = compose(protocol, stages, [work], alone=True)
    if problems or not any(process.period for process in composition.processes):
        return None
    graph = EventGraph(composition)
    latency = LATENCIES.get(protocol.program.target, LATENCIES["sm_90a"])
    edges = list(timed_edges(graph, protocol, latency))
    found = largest_ratio(len(graph.before), edges)
    if found is None:
        return None
    cycles, critical = found
    return (cycles, *_bottleneck(graph, protocol, critical))


def timed_edges(graph: EventGraph, protocol: ProtocolIndex, latency: Latency) -> Iterator[Edge]:
    """Yield the edges of the graph with their cycles, and those of the engines."""
    for node, edges in enumerate(graph.before):
        for earlier, distance in edges:
            yield earlier, node, distance, _cost(graph, earlier, node, latency)
    for accesses in graph.accesses.values():
        for access in accesses:
            kind = access.action.kind
            if kind in _GROUPS:
                period = graph.composition.processes[access.process].period
                lasts = _engine(access.action, protocol, latency, period)
                lasts += latency.store if kind == Kind.STORE else 0
                lasts += latency.tensor if kind in (Kind.TENSOR_MMA, Kind.TENSOR_LOAD) else 0
                for process, position in access.ends:
                    length = graph.lengths[process]
                    end = graph.base[process] + position % length
                    yield access.node, end, position // length, lasts
    for index, member in enumerate(graph.composition.processes):
        for kind in (Kind.COPY, Kind.MMA, Kind.STORE, Kind.TENSOR_MMA, Kind.TENSOR_LOAD):
            places = positions_of(member.period, kind)
            for number, place in enumerate(places):
                after = (number + 1) % len(places)
                busy = _engine(member.period[place], protocol, latency, member.period)
                first, following = graph.base[index] + place, graph.base[index] + places[after]
                yield first, following, int(after <= number), busy


def _cost(graph: EventGraph, earlier: int, later: int, latency: Latency) -> int:
    action = graph.actions[earlier]
    if action is None:
        return 0
    if action.kind == Kind.COPY and graph.actions[later] is None:
        return latency.copy + action.bytes // latency.bytes if action.bytes > 0 else latency.copy
    if action.kind in _ISSUED:
        return latency.issue
    costs: dict[str, int] = {
        Kind.WAIT: latency.wait,
        Kind.ARRIVE: latency.arrive,
        Kind.ACCUMULATE: 0,  # the same instruction as its tcgen05.mma
        Kind.READ: latency.access,
        Kind.WRITE: latency.access,
        Kind.SIGNAL: latency.barrier,
        Kind.MEET: latency.barrier,
    }
    return costs.get(action.kind, 1)


def _engine(
    action: Action, protocol: ProtocolIndex, latency: Latency, period: Sequence[Action]
) -> int:
    """Return the cycles for which the copy engine, tensor cores or their memory are busy."""
    if action.kind == Kind.COPY:
        return max(action.bytes, 0) // latency.bytes
    if action.kind == Kind.STORE:
        return latency.issue
    port = protocol.contracts[action.origin.instance].port(action.origin.name)
    if action.kind in (Kind.TENSOR_LOAD, Kind.TENSOR_STORE):  # of an item share its columns
        times = sum(other[:3] == action[:3] for other in period)
        return -(-tensor_columns(port) // max(times, 1)) * latency.column
    members = port.members
    sizes = [[extent.literal or 1 for extent in member.shape] for member in members]
    rows, *others = (size[0] for size in sizes)
    products = rows * (sum(others) or rows) * sizes[0][-1]
    return -(-products // latency.products)


def largest_ratio(nodes: int, edges: list[Edge]) -> tuple[float, list[Edge]] | None:
    """Return the largest cycles/distance over all cycles of the graph, and such a cycle.

    The result is None if there is no cycle, or one without a token.
    """
    ratio = 0.0
    critical: list[Edge] = []
    while True:
        cycle = _longer_than(nodes, edges, ratio)
        if not cycle:
            return (ratio, critical) if critical else None
        distance = sum(edge[2] for edge in cycle)
        if distance <= 0:
            return None
        found = sum(edge[3] for edge in cycle) / distance
        if found <= ratio * (1 + 1e-9):
            return ratio, critical or cycle
        ratio, critical = found, cycle


def _longer_than(nodes: int, edges: list[Edge], ratio: float) -> list[Edge]:
    """Return a cycle whose cycles exceed ratio x distance, or []."""
    start = [0.0] * nodes
    came: dict[int, Edge] = {}
    for _ in range(nodes + 1):
        moved = False
        for edge in edges:
            earlier, later, distance, cycles = edge
            at = start[earlier] + cycles - ratio * distance
            if at > start[later] + 1e-6:
                start[later], came[later], moved = at, edge, True
        if not moved:
            return []
        if found := _closed(came):
            return found
    return []


def _closed(came: Mapping[int, Edge]) -> list[Edge]:
    """Return a cycle among the edges that last moved nodes: its time exceeds its distance."""
    done: set[int] = set()
    for first in came:
        way: list[int] = []
        node = first
        while node in came and node not in done:
            done.add(node)
            way.append(node)
            node = came[node][0]
        if node in way:
            return [came[at] for at in way[way.index(node) :]][::-1]
    return []


def _bottleneck(
    graph: EventGraph, protocol: ProtocolIndex, critical: list[Edge]
) -> tuple[str, tuple[str, ...]]:
    """Return the bottleneck of a pipeline with this slowest cycle, and its rings."""
    nodes = [edge[0] for edge in critical]
    targets = {graph.event_of[node].target for node in nodes if node in graph.event_of}
    channels = [protocol.channel_of[name] for name in targets if name in protocol.channel_of]
    rings = sorted({channel.name for channel in channels})
    actions = [action for node in nodes if (action := graph.actions[node]) is not None]
    kinds = {action.kind for action in actions}
    copied = sorted({channel.name for channel in channels if channel.kind != TENSOR_MEMORY})
    if copied and Kind.COPY in kinds:
        return f"the latency of copies into {', '.join(copied)}", tuple(copied)
    if rings:
        return f"the handover through {', '.join(rings)}", tuple(rings)
    for kind, what in (
        (Kind.MMA, "the tensor cores"),
        (Kind.TENSOR_MMA, "the tensor cores"),
        (Kind.TENSOR_LOAD, "loads from tensor memory"),
        (Kind.STORE, "the stores"),
        (Kind.COPY, "the bandwidth of copies"),
        ("", "the operations"),
    ):
        who = sorted({a.origin.owner for a in actions if kind in ("", a.kind)})
        if who:
            return f"{what} ({', '.join(who)})", ()
    return "nothing", ()
