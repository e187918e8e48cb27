"""Counts of a composition: arrivals and bytes of phases, and writes of items."""

from collections import defaultdict
from collections.abc import Collection, Iterator

from pipelink_rules.check.protocol.model import (
    ARRIVALS,
    READS,
    UNKNOWN,
    WAITS,
    WRITES,
    Action,
    Composition,
    Kind,
)
from pipelink_rules.check.protocol.protocol_problems import (
    Problem,
    StarvedWait,
    UnwrittenRead,
    WrongArrivals,
    WrongBytes,
    WrongThreads,
)


def count_errors(composition: Composition) -> Iterator[Problem]:
    """Yield phases that never complete or complete early, and items that are read unwritten."""
    yield from _phases(composition)
    yield from _generations(composition)
    yield from _contents(composition)


def missing_arrivals(run: Composition) -> Iterator[Problem]:
    """Yield waits of a finite run for arrivals that no role performs."""
    arrived: dict[tuple[str, int], int] = defaultdict(int)
    for action in run.actions():
        if action.kind == Kind.SIGNAL or action.kind in ARRIVALS:
            arrived[action.target, action.item] += action.amount
    needed = {name: barrier.arrivals for name, barrier in run.barriers.items()}
    needed |= {name: barrier.threads for name, barrier in run.named.items()}
    for process in run.processes:
        for action in process.period:
            if action.kind in WAITS and action.item >= 0:
                found = arrived[action.target, action.item]
                if found < needed[action.target]:
                    yield StarvedWait(action.target, action, found, needed[action.target])
                    break


def _by_item(
    composition: Composition, kinds: Collection[str]
) -> dict[tuple[str, int], list[Action]]:
    """Return (target, item of period 0) -> the actions of these kinds."""
    found: dict[tuple[str, int], list[Action]] = defaultdict(list)
    for action in composition.actions():
        if action.kind in kinds:
            items = composition.per_period(action)
            found[action.target, action.item % items].append(action)
    return found


def _phases(composition: Composition) -> Iterator[Problem]:
    arrivals = _by_item(composition, ARRIVALS)
    copies: dict[tuple[str, int], list[Action]] = defaultdict(list)
    for action in composition.actions():
        if action.kind == Kind.COPY:
            items = composition.barriers[action.barrier].items
            copies[action.barrier, action.item % items].append(action)
    for name, barrier in composition.barriers.items():
        for item in range(barrier.items):
            arrived, copied = arrivals[name, item], copies[name, item]
            if sum(action.amount for action in arrived) != barrier.arrivals:
                yield WrongArrivals(name, arrived[0] if arrived else None, item, barrier.items)
                break
            expected = sum(action.bytes for action in arrived)
            transferred = sum(action.bytes for action in copied)
            if expected and any(action.bytes == UNKNOWN for action in copied):
                continue  # one bulk copy transfers what is expected
            if expected != transferred:
                telling = [action for action in arrived if action.bytes] or copied
                yield WrongBytes(name, telling[0], expected, transferred, item)
                break


def _generations(composition: Composition) -> Iterator[Problem]:
    arrived = _by_item(composition, (Kind.SIGNAL,))
    used: dict[str, Action] = {}
    for action in composition.actions():
        if action.kind == Kind.SIGNAL:
            used.setdefault(action.target, action)
    for name, barrier in composition.named.items():
        for generation in range(barrier.generations):
            found = sum(action.amount for action in arrived[name, generation])
            if found != barrier.threads:
                yield WrongThreads(name, used.get(name), found, barrier.threads)
                break


def _contents(composition: Composition) -> Iterator[Problem]:
    written = _by_item(composition, WRITES)
    reported: set[str] = set()
    for action in composition.actions():
        if action.kind not in READS or action.target in reported:
            continue
        items = composition.memories[action.target].items
        if not items or action.item < 0 or (action.target, action.item % items) not in written:
            reported.add(action.target)
            yield UnwrittenRead(action.target, action)
