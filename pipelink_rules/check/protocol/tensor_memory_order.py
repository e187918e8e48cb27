"""What orders accesses of tensor memory?  (PTX ISA, tcgen05 memory consistency model.)

tcgen05.mma, .ld and .st are asynchronous: neither program order nor a barrier orders them alone.

    over        mma: the commit after it has arrived; ld, st: the wait after it (9.7.16.6.2)
    before      a ld or st that is over is ordered before what follows a fence::before_thread_sync
                of its thread; a commit has that fence in it (9.7.16.6.4.2)
    after       what comes after a fence::after_thread_sync is ordered after all that was ordered
                before the fence (9.7.16.6.3)

In one thread ld and st need the wait only, and mma on one accumulator nothing: they are pipelined.
"""

from __future__ import annotations

from pipelink_rules.check.protocol import tensor_memory_fences
from pipelink_rules.check.protocol.event_graph import Access
from pipelink_rules.check.protocol.model import ACCUMULATE
from pipelink_rules.check.protocol.vector_clocks import Clocks

NO_FENCE, OVERLAPPING = "no fence", "overlapping"
MISSING_BEFORE, MISSING_AFTER = 0, 1


def violations(
    clocks: Clocks, first: Access, second: Access, apart: int
) -> tuple[str, tuple[int, ...]] | None:
    """The problem of two accesses of tensor memory, and which fence it is about; None: ordered."""
    graph = clocks.graph
    here = clocks.rows[second.node]
    if first.process == second.process:
        if first.action.kind == second.action.kind == ACCUMULATE:
            return None
        if first.action.kind != ACCUMULATE:  # the wait is enough
            return None if clocks.passed(here, first.ends, apart, False) else (OVERLAPPING, ())
    actions = graph.composition.processes[second.process].period
    fence = tensor_memory_fences.fence_of(actions, second.position, graph.finite)
    if fence is not None:
        place, ago = fence
        row = clocks.rows[graph.base[second.process] + place]
        if clocks.passed(row, first.exports, apart - ago, False):
            return None
        if clocks.passed(row, first.ends, apart - ago, False):
            return NO_FENCE, (MISSING_BEFORE,)
    if clocks.passed(here, first.ends, apart, False):
        return NO_FENCE, (MISSING_AFTER,)
    return OVERLAPPING, ()
