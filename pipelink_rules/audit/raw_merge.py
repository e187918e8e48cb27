"""Merged comparison of all lanes of a raw role: logs of one work tile -> first difference.

On a raw port one lane may act for all: each lane performs a part of the body, in its order, and
all parts together are the body.  __syncwarp and operations of all lanes order the lanes of a warp.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from pipelink_rules.audit.compare import (
    Difference,
    access_difference,
    agrees,
    event_difference,
    first_difference,
)
from pipelink_rules.audit.execution_log import Access, Event, ExecutionLog
from pipelink_rules.audit.expected_trace import AllowedAccess, ExpectedTile
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Contract

ACTS = ("expect", "commit", "copy", "release")
WAITS = ("acquire", "wait")
Lane = tuple[int, int]  # warp, lane


@dataclass(frozen=True)
class LaneGap:
    """Accesses of a lane between two of its events."""

    low: int  # events of the expected tile that have certainly happened
    high: int  # position of the lane's next event
    marks: int  # __syncwarps before
    accesses: frozenset[Access]


@dataclass
class LanePart:
    """The part of the expected tile that one lane performs."""

    marks: dict[int, int] = field(default_factory=dict)  # position -> __syncwarps before it
    arrivals: dict[int, int] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)  # position -> bytes
    gaps: list[LaneGap] = field(default_factory=list)
    wrong: Difference | None = None


@dataclass(frozen=True)
class LaneMerger:
    """Compares the lanes of a role with raw ports, together, with one expected tile."""

    expected: ExpectedTile
    contract: Contract
    raw: frozenset[str]

    def compare(self, logs: Mapping[Lane, ExecutionLog]) -> tuple[Lane, Difference] | None:
        """Return the first difference of all lanes of a role, and its lane."""
        lead = max(logs, key=lambda lane: len(logs[lane].events))
        alike: dict[int, LanePart] = {}  # lanes that run alike share a log
        for log in logs.values():
            if id(log) not in alike:
                alike[id(log)] = self._part(log)
        parts = {lane: alike[id(log)] for lane, log in logs.items()}
        plain = without_marks(logs[lead])
        strict = first_difference(self.expected, plain)
        if strict is not None and strict.position < len(plain.events):
            strict = _operand(strict, plain.events[strict.position])
        if strict is not None and parts[lead].wrong:
            return lead, strict
        for lane, part in parts.items():
            if part.wrong is not None:
                return lane, replace(part.wrong, message=f"{part.wrong.message} in lane {lane[1]}")
        lacking = next(self._lacking(parts), None)
        if lacking is not None:
            missing = lacking.code == "PL0934"
            return lead, strict if strict is not None and missing else lacking
        distinct = {(lane[0], id(part)): lane for lane, part in reversed(parts.items())}
        for lane in sorted(distinct.values()):
            for found in (*self._orders(lane, parts), *self._accesses(lane, parts)):
                return lane, found
        return None

    # -- one lane ----------------------------------------------------------------------------
    def _part(self, log: ExecutionLog) -> LanePart:
        part, events = LanePart(), self.expected.events
        shared = {item.name for item in self.contract.buffers} | {
            port.name for port in self.contract.ports if port.space == "ring"
        }
        generic = any(access.target in shared for found in log.accesses for access in found)
        stores = any(event.verb == "store" for event in log.events)
        at, marks, low = 0, 0, 0
        pending: list[tuple[int, frozenset[Access]]] = [(0, frozenset(log.accesses[0]))]
        for index, event in enumerate(log.events):
            after = frozenset(log.accesses[index + 1])
            if event.verb == "syncwarp":
                marks += 1
                pending.append((marks, after))
                continue
            position = at
            while position < len(events) and not self._like(events[position], event):
                if not self._skippable(events[position], generic, stores):
                    break
                position += 1
            if position == len(events) or not self._like(events[position], event):
                position = at - 1
                if at == 0 or event.verb not in ACTS or not self._like(events[position], event):
                    part.wrong = self._difference(at, event)
                    return part
            part.gaps += [LaneGap(low, position, count, found) for count, found in pending if found]
            part.marks.setdefault(position, marks)
            arrived = log.arrivals.get(index, 1)
            part.arrivals[position] = part.arrivals.get(position, 0) + arrived
            part.moved[position] = part.moved.get(position, 0) + (event.count or 0)
            at = low = position + 1
            pending = [(marks, after)]
        part.gaps += [LaneGap(low, len(events), count, found) for count, found in pending if found]
        for position in range(at, len(events)):
            if not self._skippable(events[position], generic, stores):
                part.wrong = self._difference(position, None)
                break
        return part

    def _skippable(self, event: Event, generic: bool, stores: bool) -> bool:
        """Return whether another lane may perform the event."""
        if event.verb in (*ACTS, *WAITS):
            return event.target in self.raw
        if event.verb == "store":
            return bool({event.target, event.source} & self.raw)
        if event.verb == "await":
            return event.target == "store" and not stores
        return event.verb == "fence" and not generic

    def _like(self, wanted: Event, found: Event) -> bool:
        if found.verb in (*ACTS, "store") and wanted.verb == found.verb:
            stages = self._stages(found.target)
            same = (wanted.target, wanted.source, wanted.member) == (
                found.target,
                found.source,
                found.member,
            )
            count = wanted.count == found.count or found.verb in ("copy", "expect")
            return same and count and (wanted.item or 0) % stages == (found.item or 0) % stages
        return agrees(wanted, found)

    def _stages(self, name: str) -> int:
        return self.expected.stages.get(name, 1)

    def _difference(self, position: int, found: Event | None) -> Difference:
        inside = position < len(self.expected.events)
        wanted = self.expected.events[position] if inside else None
        op = self.expected.ops[position] if inside else None
        return _operand(event_difference(wanted, found, op, position), found)

    # -- all lanes ---------------------------------------------------------------------------
    def _lacking(self, parts: Mapping[Lane, LanePart]) -> Iterator[Difference]:
        """Yield events that no lane performs, or that are performed with a wrong count."""
        for position, event in enumerate(self.expected.events):
            doing = [part for part in parts.values() if position in part.marks]
            if not doing:
                yield self._difference(position, None)
            elif event.verb in ("copy", "expect"):
                moved = sum(part.moved[position] for part in doing)
                if moved != event.count and event.count is not None:
                    yield self._difference(position, replace(event, count=moved))
            elif event.verb == "store" and len(doing) > 1:
                op, found = self.expected.ops[position], f"{len(doing)} lanes store"
                what = f"performs `{event}` more than once"
                yield Difference("PL0934", what, op, event.target, "one store", found, position)
            if event.verb in ("expect", "commit", "release") and event.target in self.raw:
                yield from self._arrivals(
                    position, sum(part.arrivals.get(position, 0) for part in doing)
                )

    def _arrivals(self, position: int, arrived: int) -> Iterator[Difference]:
        event = self.expected.events[position]
        declared = evaluate(self.contract.port(event.target).arrivals, {})
        if arrived not in (0, declared):
            what = f"performs {plural(arrived, 'arrival')} per item on `{event.target}` where its "
            what += f"contract declares {declared}"
            found = f"arrivals: {arrived}, by all threads at `{event}`"
            wanted = f"arrivals: {declared}"
            yield Difference("PL0933", what, None, event.target, wanted, found, position)

    def _orders(self, lane: Lane, parts: Mapping[Lane, LanePart]) -> Iterator[Difference]:
        """Yield events on an item that is not held, by the lane or by one it synchronized with."""
        events, part = self.expected.events, parts[lane]
        for position in sorted(part.marks):
            event = events[position]
            if event.target not in self.raw or event.verb not in (*ACTS, "store"):
                continue
            opening = self._opening(position)
            if opening is None or opening in part.marks:
                continue
            if not self._met(lane, opening, parts, part.marks[position]):
                what = f"performs `{event}` in lane {lane[1]}, which has not waited for the item"
                wanted = f"{events[opening]} by this lane, or __syncwarp() after the lane that did"
                op, found = self.expected.ops[opening], str(event)
                yield Difference("PL0934", what, op, event.target, wanted, found, position)

    def _opening(self, position: int) -> int | None:
        event, stages = (
            self.expected.events[position],
            self._stages(self.expected.events[position].target),
        )
        for before in range(position - 1, -1, -1):
            other = self.expected.events[before]
            same = (other.item or 0) % stages == (event.item or 0) % stages
            if other.verb in WAITS and other.target == event.target and same:
                return before
        return None

    def _met(self, lane: Lane, position: int, parts: Mapping[Lane, LanePart], marks: int) -> bool:
        """Return whether a __syncwarp follows the event in some lane of the same warp."""
        return any(
            other[0] == lane[0] and position in part.marks and part.marks[position] < marks
            for other, part in parts.items()
        )

    def _accesses(self, lane: Lane, parts: Mapping[Lane, LanePart]) -> Iterator[Difference]:
        homes = {port.name: port.in_place for port in self.contract.ports if port.in_place}
        spaces = {port.name: port.space for port in self.contract.ports}
        for gap in parts[lane].gaps:
            for access in sorted(gap.accesses, key=str):
                space = spaces.get(access.target)
                if space == "registers" and access.kind == "read":
                    continue
                clauses = self.expected.clauses_of(access, homes)
                loose = space in ("registers", "global")
                if not any(
                    loose or (c.stage == access.stage and self._between(lane, gap, c, parts))
                    for c in clauses
                ):
                    yield access_difference(access, gap.low, self.expected, clauses)

    def _between(
        self, lane: Lane, gap: LaneGap, clause: AllowedAccess, parts: Mapping[Lane, LanePart]
    ) -> bool:
        """Return whether synchronization orders the accesses between acquisition and handover."""
        opened = gap.low >= clause.first or self._met(lane, clause.first - 1, parts, gap.marks)
        ended = gap.high <= clause.last or self._leads_to(lane, gap, clause.last, parts)
        return opened and ended and self._leads_to(lane, gap, self._handed_over(clause), parts)

    def _handed_over(self, clause: AllowedAccess) -> int:
        """Return the event that hands the bytes over; the end of the work tile if there is none."""
        events = self.expected.events
        for position in range(clause.last, len(events)):
            event = events[position]
            if event.target == clause.op.target and event.verb in ("release", "commit", "store"):
                return position
        return len(events)

    def _leads_to(
        self, lane: Lane, gap: LaneGap, position: int, parts: Mapping[Lane, LanePart]
    ) -> bool:
        """Return whether the accesses are ordered before the event, or before one arrival of it."""
        events = self.expected.events
        if position >= len(events) or position in parts[lane].marks:
            return gap.high <= position or position >= len(events)
        between = range(gap.high, position)
        if any(events[number].verb == "sync" for number in between):
            return True
        together = any(events[number].target == "mma" for number in between)
        return any(
            other[0] == lane[0]
            and position in part.marks
            and (together or part.marks[position] > gap.marks)
            for other, part in parts.items()
        )


def _operand(difference: Difference, found: Event | None) -> Difference:
    """Return PL0915 for an arrival at another stage: it states a barrier, not an item."""
    if difference.code != "PL0916" or found is None or found.verb not in ("expect", "commit"):
        return difference
    message = f"performs `{found.verb}` on the full barrier of another stage of `{found.target}`"
    return replace(difference, code="PL0915", message=message)


def without_marks(log: ExecutionLog) -> ExecutionLog:
    """Return the log without __syncwarp: the accesses on both sides of one are merged."""
    plain = ExecutionLog()
    plain.accesses[0] |= log.accesses[0]
    for event, after in zip(log.events, log.accesses[1:], strict=True):
        if event.verb != "syncwarp":
            plain.emit(event)
        plain.accesses[-1] |= after
    return plain
