"""The checks of order and liveness: found by the protocol, reported one per connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipelink_rules.check.program_index import Check, ProgramIndex
from pipelink_rules.check.protocol import (
    messages_async,
    messages_counts,
    messages_deadlock,
    messages_order,
    problem,
)
from pipelink_rules.check.protocol.analyze import Found, find_problems
from pipelink_rules.check.protocol.counterexample import MOST_TRIES, find_counterexample
from pipelink_rules.check.protocol.process_builder import MOST_ACTIONS
from pipelink_rules.check.protocol.protocol_index import TooManyOperations
from pipelink_rules.check.protocol.render_counterexample import lines
from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels

# Every class of problem has a function of its own, which takes a Found of this class.
MESSAGES: dict[type[problem.Problem], Callable[[ProgramIndex, Any], Diagnostic]] = {
    problem.ItemNotAcquired: messages_counts.item_not_acquired,
    problem.UnequalRates: messages_counts.unequal_rates,
    problem.WrongArrivals: messages_counts.wrong_arrivals,
    problem.WrongBytes: messages_counts.wrong_bytes,
    problem.WrongThreads: messages_counts.wrong_threads,
    problem.UnequalBarrierUse: messages_counts.unequal_barrier_use,
    problem.UnwrittenRead: messages_counts.unwritten_read,
    problem.Deadlock: messages_deadlock.deadlock,
    problem.StarvedWait: messages_deadlock.starved_wait,
    problem.MmaStillReads: messages_async.mma_still_reads,
    problem.AccumulatorsInFlight: messages_async.accumulators_in_flight,
    problem.MmaNotAwaited: messages_async.mma_not_awaited,
    problem.StoreStillReads: messages_async.store_still_reads,
    problem.StoreNotAwaited: messages_async.store_not_awaited,
    problem.TensorMemoryOverlap: messages_async.tensor_memory_overlap,
    problem.TensorLoadInFlight: messages_async.tensor_load_in_flight,
    problem.TensorAccessNotAwaited: messages_async.tensor_access_not_awaited,
    problem.NoTensorFence: messages_async.no_tensor_fence,
    problem.MixedGenerations: messages_order.mixed_generations,
    problem.PhaseAliasing: messages_order.phase_aliasing,
    problem.ReversedOrder: messages_order.reversed_order,
    problem.NoOrder: messages_order.no_order,
    problem.NoProxyFence: messages_order.no_proxy_fence,
}
CODES = (
    "PL0201",
    "PL0202",
    "PL0203",
    "PL0209",
    "PL0302",
    "PL0303",
    "PL0401",
    "PL0402",
    "PL0501",
    "PL0502",
    "PL0503",
    "PL0504",
    "PL0505",
    "PL0509",
    "PL1002",
)


def check_protocol(
    index: ProgramIndex, stages: Mapping[str, int] | None = None
) -> Iterator[Diagnostic]:
    """What the protocol of the program gets wrong, for all stage counts or for these."""
    try:
        found = find_problems(index.protocol, stages)
    except TooManyOperations as long:
        yield _too_long(long)
        return
    yield from to_diagnostics(index, found)


def to_diagnostics(
    index: ProgramIndex, found: Iterable[Found[problem.Problem]]
) -> Iterator[Diagnostic]:
    """One diagnostic per subject and group of problems that are consequences of each other.

    With the shortest runs into them, as far as a bounded search finds some.
    """
    reported: dict[tuple[int, str], tuple[Diagnostic, Found[problem.Problem]]] = {}
    for case in sorted(found, key=lambda case: case.problem.rank):
        diagnostic = MESSAGES[type(case.problem)](index, case)
        reported.setdefault((case.problem.rank // 10, diagnostic.subject), (diagnostic, case))
    left = MOST_TRIES
    for diagnostic, case in reported.values():
        run, left = find_counterexample(case.composition, case.problem, left)
        yield replace(diagnostic, schedule=lines(run)) if run else diagnostic


def _too_long(long: TooManyOperations) -> Diagnostic:
    origin = long.origin
    return Diagnostic(
        "PL0402",
        f"role `{origin.owner}` has more than {MOST_ACTIONS} operations per work item",
        labels((origin.span, "repeated too often to be judged")),
        expected=f"at most {MOST_ACTIONS} operations per work item",
        helps=(
            "make the count of the repeat a field of the work item: loops are judged for small "
            "counts and for those around the stage counts",
        ),
        subject=origin.owner,
    )


CHECKS = (Check(CODES, check_protocol),)
