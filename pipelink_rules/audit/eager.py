"""Does a raw role do the same where its waits succeed at their first try?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pipelink_rules.audit.compare import Difference
from pipelink_rules.audit.execution_log import Event
from pipelink_rules.audit.together import WAITS


def eager_difference(patient: Sequence[Event], eager: Sequence[Event]) -> Difference | None:
    """Waits that succeed at once may move forward; nothing else may change."""
    first, second = _split(patient), _split(eager)
    for position, pair in enumerate(zip(first[0], second[0], strict=False)):
        if pair[0] != pair[1]:
            return _unlike(pair[0], pair[1], position)
    if len(first[0]) != len(second[0]):
        longer = max(first[0], second[0], key=len)
        position = min(len(first[0]), len(second[0]))
        return _unlike(longer[position], None, position)
    for key, places in first[1].items():
        others = second[1].get(key, [])
        if len(places) != len(others) or any(b > a for a, b in zip(places, others, strict=True)):
            return _unlike(Event(*key), None, places[0])
    return None


def _split(
    events: Sequence[Event],
) -> tuple[list[Event], dict[tuple[str, str, int | None], list[int]]]:
    """What is done, and before which of it each wait succeeds."""
    done: list[Event] = []
    waits: dict[tuple[str, str, int | None], list[int]] = defaultdict(list)
    for event in events:
        if event.verb in WAITS:
            waits[event.verb, event.target, event.item].append(len(done))
        elif event.verb != "syncwarp":
            done.append(event)
    return done, waits


def _unlike(wanted: Event, found: Event | None, position: int) -> Difference:
    return Difference(
        "PL0934",
        "does other operations where a wait succeeds at its first try",
        None,
        wanted.target,
        str(wanted),
        str(found) if found else "the end of the work item",
        position,
    )
