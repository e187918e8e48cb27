"""Cases of a protocol: the stage counts and work tiles that are analyzed.

A work tile enters the protocol only by the counts of its repeats.  Every count of an inner loop is
a different kind of work tile.  Small ones and those around the stage counts behave differently (a
ring wraps around inside, at the end of, or only after a work tile).  Beyond 2 S + 1 an iteration
adds nothing: it waits for items of iterations of its own work tile only, as the one before it did,
so a cycle, race or alias through it is one through that one, too.  Each is analyzed as a separate
period, and so are mixed sequences, because cursors continue across work tiles.

Where counts are not one field (`max(k - 20, 0)`, `part // 4`), `kinds` finds a work tile for each
combination of small counts that any value of the fields has, and proves that there is no other.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pipelink_rules.check.protocol.protocol_index import count_names
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import Contract, Symbol
from pipelink_rules.model.operation import repeats
from pipelink_rules.model.program import Program
from pipelink_rules.model.source_span import Expr
from pipelink_rules.solver.decide import Domain, always

Stages = dict[str, int]
Item = dict[str, int]
FEW = 512  # of a field with at most this many values the last one is analyzed, too
MOST_KINDS = 100  # combinations of counts; with more of them, fewer small counts differ
MOST_PAIRS = 12  # kinds of which every two follow each other in a period
SHORT = 256  # iterations of all loops together, in work tiles that are preferred
MOST = 2**31 - 1  # a work field is an int32


class Range(NamedTuple):
    """The values of a work field; `maximum` None = any."""

    minimum: int
    maximum: int | None

    def clip(self, value: int) -> int:
        """Return the nearest value of the range."""
        value = max(value, self.minimum)
        return value if self.maximum is None else min(value, self.maximum)


class UndecidedCounts(Exception):
    """It cannot be decided which counts of repeats occur together in a work tile."""

    def __init__(self, counts: list[str]):
        super().__init__(", ".join(counts))
        self.counts = counts


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


def kinds(program: Program, fields: Mapping[str, Range], stages: Iterable[int]) -> list[list[Item]]:
    """Return periods of work tiles with every combination of counts, each count up to a limit.

    The limit is above the stage counts, or lower where that makes too many combinations.  Empty
    where every count is the value of one field: `sequences` has all of them.
    """
    bodies = [role.body for item in program.instances for role in item.variant.contract.roles]
    found = {repeat.count.text for body in bodies for repeat in repeats(body)}
    counts = sorted(text for text in found if names(text))
    if len(counts) < 2 and all(count.isidentifier() for count in counts):
        return []
    limit = max(stages, default=1) + 2
    while limit > 1 and (limit + 1) ** len(counts) > MOST_KINDS:
        limit -= 1
    groups: list[list[str]] = []  # without a common field, counts are independent
    for count in counts:
        joined = [group for group in groups if any(names(one) & names(count) for one in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([count, *itertools.chain(*joined)])
    items: list[Item] = [{name: field.minimum for name, field in fields.items()}]
    for group in groups:
        choices = _kinds_of(group, fields, limit)
        items = [{**item, **choice} for item in items for choice in choices]
    single = [[item] for item in items]
    if len(items) > MOST_PAIRS:
        return [*single, items]
    return single + [list(pair) for pair in itertools.combinations(items, 2)]


def _kinds_of(counts: list[str], fields: Mapping[str, Range], limit: int) -> list[Item]:
    """Return a work tile for every combination of counts; raise UndecidedCounts."""
    kind = " + ".join(
        f"{(limit + 1) ** place} * min(max({count}, 0), {limit})"
        for place, count in enumerate(counts)
    )
    total = " + ".join(f"max({count}, 0)" for count in counts)
    symbols = tuple(
        Symbol(name, field.minimum, MOST if field.maximum is None else field.maximum)
        for name, field in fields.items()
    )
    domain = Domain(symbols, (("kind_", Expr(kind)), ("total_", Expr(total))))
    found: dict[int, Item] = {}
    # Short work tiles first: long ones only for what no short one does.
    for long in (f"total_ > {SHORT}", "kind_ < 0"):
        while True:
            answer = always(long + "".join(f" or kind_ == {number}" for number in found), domain)
            if answer.holds:
                break
            case = dict(answer.case)
            if answer.holds is None or len(found) >= MOST_KINDS:
                raise UndecidedCounts(counts)
            number = evaluate(kind, case)
            found[number] = {name: case[name] for name in fields if name in case}
    return list(found.values())


def _used(contract: Contract) -> Iterator[str]:
    for role in contract.roles:
        yield from count_names(role.body)
    for port in contract.ports:
        if port.tx_bytes is not None:
            yield from names(port.tx_bytes)
