"""Checks of order and liveness, with one diagnostic per connection."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.protocol import (
    messages_async,
    messages_counts,
    messages_order,
)
from pipelink_rules.check.protocol import protocol_problems as problems
from pipelink_rules.check.protocol.analyze import Found, find_problems
from pipelink_rules.check.protocol.cases import UndecidedCounts
from pipelink_rules.check.protocol.counterexample import MOST_TRIES, find_counterexample
from pipelink_rules.check.protocol.message_parts import Case
from pipelink_rules.check.protocol.process_builder import MOST_ACTIONS
from pipelink_rules.check.protocol.protocol_index import TooManyOperations
from pipelink_rules.check.protocol.render_counterexample import lines
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.model.operation import repeats

# Each function takes a Case of its class of problem.
MESSAGES: dict[type[problems.Problem], Callable[[Any], Diagnostic]] = {
    problems.ItemNotAcquired: messages_counts.item_not_acquired,
    problems.UnequalRates: messages_counts.unequal_rates,
    problems.WrongArrivals: messages_counts.wrong_arrivals,
    problems.WrongBytes: messages_counts.wrong_bytes,
    problems.WrongThreads: messages_counts.wrong_threads,
    problems.UnequalBarrierUse: messages_counts.unequal_barrier_use,
    problems.UnwrittenRead: messages_counts.unwritten_read,
    problems.Deadlock: messages_order.deadlock,
    problems.StarvedWait: messages_order.starved_wait,
    problems.MmaStillReads: messages_async.mma_still_reads,
    problems.AccumulatorsInFlight: messages_async.accumulators_in_flight,
    problems.MmaNotAwaited: messages_async.mma_not_awaited,
    problems.StoreStillReads: messages_async.store_still_reads,
    problems.StoreNotAwaited: messages_async.store_not_awaited,
    problems.TensorMemoryOverlap: messages_async.tensor_memory_overlap,
    problems.TensorLoadInFlight: messages_async.tensor_load_in_flight,
    problems.TensorAccessNotAwaited: messages_async.tensor_access_not_awaited,
    problems.NoTensorFence: messages_async.no_tensor_fence,
    problems.MixedGenerations: messages_order.mixed_generations,
    problems.PhaseAliasing: messages_order.phase_aliasing,
    problems.ReversedOrder: messages_order.reversed_order,
    problems.NoOrder: messages_order.no_order,
    problems.NoProxyFence: messages_order.no_proxy_fence,
}


def check_protocol(
    index: ProgramIndex, stages: Mapping[str, int] | None = None
) -> Iterator[Diagnostic]:
    """Report the problems of the protocol, for all stage counts or the given ones."""
    try:
        found = find_problems(index.protocol, stages)
    except TooManyOperations as long:
        origin = long.origin
        yield report(
            "PL0402",
            f"role `{origin.owner}` has more than {MOST_ACTIONS:,} operations per work tile",
            (origin.span, "repeated too often to be analyzed"),
            expected=f"at most {MOST_ACTIONS:,} operations per work tile",
            suggestions=(
                "make the count of the repeat a work field: such loops are analyzed for small "
                "counts and those around the stage counts",
            ),
            subject=origin.owner,
        )
    except UndecidedCounts as unknown:
        counts = {
            repeat.count.text: repeat.count.span
            for contract in index.contracts.values()
            for role in contract.roles
            for repeat in repeats(role.body)
        }
        yield report(
            "PL0402",
            "cannot decide which counts of repeats occur together in a work tile",
            *((counts[count], "one of the counts") for count in unknown.counts),
            expected="counts whose combinations are found within a limit",
            found=", ".join(unknown.counts),
            suggestions=("make the counts of repeats work fields, with `max` where they have one",),
            subject=index.program.name,
        )
    else:
        yield from to_diagnostics(index, found)


def to_diagnostics(
    index: ProgramIndex, found: Iterable[Found[problems.Problem]]
) -> Iterator[Diagnostic]:
    """Yield a diagnostic per subject and group of problems that are consequences of each other.

    Each has the shortest counterexample that a bounded search finds, if it finds one.
    """
    reported: dict[tuple[int, str], tuple[Diagnostic, Found[problems.Problem]]] = {}
    for case in sorted(found, key=lambda case: case.problem.rank):
        diagnostic = MESSAGES[type(case.problem)](Case(**vars(case), index=index))
        reported.setdefault((case.problem.rank // 10, diagnostic.subject), (diagnostic, case))
    left = MOST_TRIES
    for diagnostic, case in reported.values():
        run, left = find_counterexample(case.composition, case.problem, left)
        yield replace(diagnostic, counterexample=lines(run)) if run else diagnostic


CHECKS = (check_protocol,)
