"""Detection of races, phase aliasing and mixed generations: vector clocks -> problems.

Required order, per memory with S stages: every write of item i ends before a read of item i
starts, and every access of item i ends before a write of item i + S starts.  All other orders
follow, because every item is written.  Being ordered is not enough: it must be this order.

Tensor memory requires more (PTX ISA, tcgen05 memory consistency model): tcgen05.mma, .ld and
.st are asynchronous, and neither program order nor a barrier orders them alone.

    complete    mma: the commit after it has arrived; ld, st: the wait after it (9.7.16.6.2)
    before      a complete ld or st is ordered before what follows a fence::before_thread_sync
                of its thread; a commit has that fence in it (9.7.16.6.4.2)
    after       what comes after a fence::after_thread_sync is ordered after all that was ordered
                before the fence (9.7.16.6.3)

In one thread, ld and st require only the wait, and mma on one accumulator are pipelined.
"""

from collections.abc import Callable, Iterator
from functools import partial

from pipelink_rules.check.protocol.async_groups import fence_of
from pipelink_rules.check.protocol.event_graph import BarrierUse, EventGraph, MemoryAccess
from pipelink_rules.check.protocol.model import ELSEWHERE, IN_TENSOR_MEMORY, Action, Kind
from pipelink_rules.check.protocol.protocol_problems import (
    MixedGenerations,
    MmaStillReads,
    NoOrder,
    NoProxyFence,
    NoTensorFence,
    OrderProblem,
    PhaseAliasing,
    ReversedOrder,
    StoreStillReads,
    TensorMemoryOverlap,
)
from pipelink_rules.check.protocol.vector_clocks import Row, VectorClocks

# Builds the problem of two accesses: target, first, second, distance.
Violation = Callable[[str, Action, Action, int], OrderProblem]


def races(graph: EventGraph, clocks: VectorClocks) -> Iterator[OrderProblem]:
    """Yield the first violated order of every pair of actions."""
    reported: set[tuple[int, int]] = set()
    for (target, item), accesses in graph.accesses.items():
        if ELSEWHERE in target:
            continue
        stages, items = graph.composition.memories[target][:2]
        reuse, ahead = graph.split(item + stages, items)
        same = [access for access in accesses if not access.writes]
        later = [access for access in graph.accesses.get((target, reuse), ()) if access.writes]
        for first in accesses:
            pairs = [(second, 0, 0) for second in same] if first.writes else []
            pairs += [(second, ahead, stages) for second in later]
            for second, periods, distance in pairs:
                key = (id(first.action.origin), id(second.action.origin))
                if key in reported:
                    continue
                apart = first.period + periods - second.period
                violation = _violation(clocks, first, second, apart)
                if violation:
                    reported.add(key)
                    yield violation(target, first.action, second.action, distance)


def _violation(
    clocks: VectorClocks, first: MemoryAccess, second: MemoryAccess, apart: int
) -> Violation | None:
    """Return how the order is violated.  `apart`: periods from the first access to the second."""
    if first.action.kind not in IN_TENSOR_MEMORY:
        return _in_shared_memory(clocks, first, second, apart)
    found = _in_tensor_memory(clocks, first, second, apart)
    if found is not TensorMemoryOverlap or _started(clocks, first, second, apart):
        return found
    return _never_first(clocks, first, second, apart)


def _in_shared_memory(
    clocks: VectorClocks, first: MemoryAccess, second: MemoryAccess, apart: int
) -> Violation | None:
    row = clocks.rows[second.node]
    fenced = second.asynchronous and not first.asynchronous
    if clocks.passed(row, first.ends, apart, fenced):
        return None
    if fenced and clocks.passed(row, first.ends, apart):
        return NoProxyFence
    reader: dict[str, Violation] = {
        Kind.MMA: MmaStillReads,
        Kind.TENSOR_MMA: MmaStillReads,
        Kind.STORE: StoreStillReads,
    }
    if first.action.kind in reader and _started(clocks, first, second, apart):
        return reader[first.action.kind]
    return _never_first(clocks, first, second, apart)


def _in_tensor_memory(
    clocks: VectorClocks, first: MemoryAccess, second: MemoryAccess, apart: int
) -> Violation | None:
    graph = clocks.graph
    here = clocks.rows[second.node]
    complete = clocks.passed(here, first.ends, apart)
    if first.process == second.process:
        if first.action.kind == second.action.kind == Kind.ACCUMULATE:
            return None
        if first.action.kind != Kind.ACCUMULATE:  # the wait is enough
            return None if complete else TensorMemoryOverlap
    actions = graph.composition.processes[second.process].period
    fence = fence_of(actions, second.position, graph.finite)
    if fence is not None:
        place, ago = fence
        row = clocks.rows[graph.base[second.process] + place]
        if clocks.passed(row, first.exports, apart - ago):
            return None
        if clocks.passed(row, first.ends, apart - ago):
            return partial(NoTensorFence, after=False)
    return partial(NoTensorFence, after=True) if complete else TensorMemoryOverlap


def _started(clocks: VectorClocks, first: MemoryAccess, second: MemoryAccess, apart: int) -> bool:
    """Return whether the first access has always started when the second one starts."""
    return clocks.passed(clocks.rows[second.node], ((first.process, first.position),), apart)


def _never_first(
    clocks: VectorClocks, first: MemoryAccess, second: MemoryAccess, apart: int
) -> Violation:
    reverse = clocks.passed(clocks.rows[first.node], second.ends, -apart)
    return ReversedOrder if reverse else NoOrder


def aliases(graph: EventGraph, clocks: VectorClocks) -> Iterator[PhaseAliasing]:
    """Yield waits whose parity may be read one phase too early or too late.

    A wait by parity distinguishes only the current phase from the one before it (PTX ISA,
    mbarrier.test_wait), so phase p - 1 must be complete when the wait for p begins, and phase
    p + 1 must not complete while it lasts.
    """
    reported: set[tuple[str, str]] = set()
    for (target, item), waits in list(graph.waits.items()):
        barrier = graph.composition.barriers.get(target)
        if barrier is None or ELSEWHERE in target:
            continue
        following = graph.split(item + barrier.stages, barrier.items)
        previous = graph.split(item - barrier.stages, barrier.items)
        for use in waits:
            action = graph.action_of(use)
            key = (target, action.origin.owner)
            if key in reported:
                continue
            lapped = _lapped(clocks, use, target, following)
            if lapped or _early(clocks, clocks.before_start(use.node), use, target, previous):
                reported.add(key)
                yield PhaseAliasing(target, action, lapped)


def overruns(graph: EventGraph, clocks: VectorClocks) -> Iterator[PhaseAliasing]:
    """Yield arrivals that may be counted for the phase before, because it is incomplete."""
    reported: set[tuple[str, str]] = set()
    for (target, item), arrivals in list(graph.arrivals.items()):
        barrier = graph.composition.barriers.get(target)
        if barrier is None or ELSEWHERE in target:
            continue
        previous = graph.split(item - barrier.stages, barrier.items)
        for use in arrivals:
            action = graph.action_of(use)
            key = (target, action.origin.owner)
            row = clocks.rows[use.node]
            if key not in reported and _early(clocks, row, use, target, previous):
                reported.add(key)
                yield PhaseAliasing(target, action)


def _lapped(clocks: VectorClocks, use: BarrierUse, target: str, phase: tuple[int, int]) -> bool:
    """Return whether the next phase of the stage can complete while this wait still polls.

    It needs all its arrivals, and the bytes of all its copies.
    """
    graph, (item, ahead) = clocks.graph, phase
    needed = [*graph.arrivals.get((target, item), ())]
    needed += [u for u in graph.copies.get((target, item), ()) if graph.action_of(u).bytes > 0]
    waiting = ((use.process, use.position),)
    return bool(needed) and not any(
        clocks.passed(clocks.rows[other.node], waiting, ahead - other.ahead + use.ahead)
        for other in needed
    )


def _early(
    clocks: VectorClocks, row: Row, use: BarrierUse, target: str, phase: tuple[int, int]
) -> bool:
    """Return whether the previous phase of the stage may be incomplete at a wait or arrival."""
    graph, (item, ahead) = clocks.graph, phase
    if graph.finite and item < 0:
        return False

    def over(other: BarrierUse) -> bool:
        end = ((other.process, other.position),)
        return clocks.passed(row, end, other.ahead - ahead - use.ahead)

    if any(over(other) for other in graph.waits.get((target, item), ())):
        return False
    arrivals = graph.arrivals.get((target, item), ())
    copied = (target, item) in graph.copies
    return not arrivals or copied or not all(over(other) for other in arrivals)


def recycled(graph: EventGraph, clocks: VectorClocks) -> Iterator[MixedGenerations]:
    """Yield named barriers where a role can arrive for the next generation too early."""
    reported: set[str] = set()
    for (target, item), arrivals in list(graph.arrivals.items()):
        named = graph.composition.named.get(target)
        if named is None or ELSEWHERE in target:
            continue
        following, ahead = graph.split(item + 1, named.generations)
        for arrival in arrivals:
            place = ((arrival.process, arrival.position),)
            for later in graph.arrivals.get((target, following), ()):
                periods = ahead - later.ahead + arrival.ahead
                row = clocks.rows[later.node]
                if target not in reported and not clocks.passed(row, place, periods):
                    reported.add(target)
                    yield MixedGenerations(target, graph.action_of(arrival), graph.action_of(later))
