"""Cases of a protocol: the stage counts and work tiles that are analyzed.

Every trip count of an inner loop is a different kind of work tile.  Small ones and those around the
stage counts behave differently (a ring wraps around inside, at the end of, or only after a work
tile); beyond 2 S + 1 a loop repeats what it did before.  Each is analyzed as a separate period, and
so are mixed sequences, because cursors continue across work tiles.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pipelink_rules.check.protocol.protocol_index import count_names
from pipelink_rules.expression.expression import names
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.program import Program

Stages = dict[str, int]
Item = dict[str, int]
FEW = 512  # of a field with at most this many values the last one is analyzed, too


class Range(NamedTuple):
    """The values of a work field; `maximum` None = any."""

    minimum: int
    maximum: int | None

    def clip(self, value: int) -> int:
        """Return the nearest value of the range."""
        value = max(value, self.minimum)
        return value if self.maximum is None else min(value, self.maximum)


def stage_choices(program: Program) -> list[Stages]:
    """Return stage counts that represent all that a placement may choose, the smallest first.

    A producer waits until the item is released that is as many items before as there are stages.
    So more stages only take orders away: what the smallest counts do not block, none blocks, and
    what is ordered with the largest is ordered with all.  A ring is used again the sooner the fewer
    stages it has: its own reuse is analyzed with its smallest count and the largest ones of others.
    """
    low = {channel.name: channel.minimum for channel in program.channels}
    high = {channel.name: channel.maximum for channel in program.channels}
    found = [low, high]
    if len(low) > 1:
        found += [{**high, name: low[name]} for name in low]
    return [choice for place, choice in enumerate(found) if choice not in found[:place]]


def ranges(program: Program) -> dict[str, Range]:
    """Return the fields that loops and byte counts depend on, with the values all roles allow."""
    contracts = [item.variant.contract for item in program.instances]
    fields = [field for item in contracts if item.work for field in item.work.fields]
    used = sorted({name for contract in contracts for name in _used(contract)})
    found = {}
    for name in used:
        same = [field for field in fields if field.name == name]
        low = max((field.minimum.literal or 0 for field in same), default=0)
        limits = [field.maximum.literal for field in same if field.maximum]
        known = [limit for limit in limits if limit is not None]
        found[name] = Range(max(low, 0), max(min(known), low, 0) if known else None)
    return found


def looping(program: Program) -> frozenset[str]:
    """Return the channels that move a variable number of items per work tile."""
    return frozenset(
        channel.name
        for channel in program.channels
        if program.port(channel.producer).rate.literal is None
    )


def sequences(
    fields: Mapping[str, Range], stages: Iterable[int], short: bool = False
) -> Iterator[list[Item]]:
    """Yield the periods to analyze: one work tile each, then mixed ones.

    `short`: a few that wrap around inside, at the end of and between work tiles.
    """
    if not fields:
        yield [{}]
        return
    trips = {1, 2} if short else {0, 1, 2, 3}
    for count in stages:
        trips |= {count + 1} if short else {count - 1, count, count + 1, 2 * count + 1}
    mixed = ([2, 1, 0],) if short else ([1, 0, 3], [2, 1, 0])
    found = [
        [{name: field.clip(trip) for name, field in fields.items()} for trip in period]
        for period in (*([trip] for trip in sorted(trips)), *mixed)
    ]

    def differing(name: str, value: int, rest: int) -> Item:
        return {other: f.clip(value if other == name else rest) for other, f in fields.items()}

    if len(fields) > 1 and not short:
        found += [[differing(name, trip, 2)] for name in fields for trip in (0, 1, 3)]
    for name, field in fields.items():
        if field.maximum is not None and field.maximum <= FEW:
            last = differing(name, field.maximum, 0)  # and what other fields are then
            found += [[last], [differing(name, field.minimum, 2), last]]
    yield from (period for place, period in enumerate(found) if period not in found[:place])


def _used(contract: Contract) -> Iterator[str]:
    for role in contract.roles:
        yield from count_names(role.body)
    for port in contract.ports:
        if port.tx_bytes is not None:
            yield from names(port.tx_bytes)
