"""The first difference between code and contract: two logs of one work tile -> `Difference`."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pipelink_rules.audit.execution_log import Access, Event, ExecutionLog
from pipelink_rules.audit.expected_trace import AllowedAccess, ExpectedTile
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Contract, Operation, Role
from pipelink_rules.model.operation import operations


@dataclass(frozen=True)
class Difference:
    """One difference, in the words of its diagnostic."""

    code: str
    message: str
    op: Operation | None  # the violated clause
    target: str  # a port, buffer or barrier
    expected: str
    found: str
    position: int = 0  # of the event in the log


def first_difference(expected: ExpectedTile, log: ExecutionLog) -> Difference | None:
    """Return the first event that differs from the declared one."""
    for position in range(max(len(expected.events), len(log.events))):
        wanted = expected.events[position] if position < len(expected.events) else None
        found = log.events[position] if position < len(log.events) else None
        op = expected.ops[position] if wanted else None
        if wanted is None or found is None or not agrees(wanted, found):
            return event_difference(wanted, found, op, position)
    return None


def agrees(wanted: Event, found: Event) -> bool:
    """Return whether events are equal; awaiting a store's end also awaits the end of its reads."""
    return wanted == found or (wanted.verb == "await" and wanted == replace(found, member=""))


def event_difference(
    wanted: Event | None, found: Event | None, op: Operation | None, position: int
) -> Difference:
    """Return the difference of two unequal events."""
    clause = str(wanted) if wanted else "nothing more in this work tile"
    actual = str(found) if found else "the end of the work tile"
    target = (wanted or found or Event("")).target
    if found and found.verb.startswith("wgmma without"):
        code, what = "PL0919", "issues wgmma without wgmma.fence"
    elif wanted is None:
        code, what = "PL0934", f"performs `{_name(found)}` beyond its contract"
    elif found is None:
        code, what = "PL0934", f"never performs `{_name(wanted)}`"
    elif wanted.verb != found.verb or not _same_operands(wanted, found):
        code = "PL0934" if wanted.verb != found.verb else "PL0915"
        what = f"performs `{_name(found)}` where its contract declares `{_name(wanted)}`"
    elif wanted.item != found.item:
        code, what = "PL0916", f"performs `{wanted.verb}` on the wrong item of `{target}`"
    else:
        code = "PL0918" if wanted.verb in ("await", "wait_until") else "PL0917"
        what = f"performs `{_name(wanted)}` with a different count"
    return Difference(code, what, op, target, clause, actual, position)


def _same_operands(wanted: Event, found: Event) -> bool:
    if wanted.verb == "await" and wanted.target == found.target:
        return True  # only the counts differ
    operands = (wanted.target, wanted.source, wanted.member)
    return operands == (found.target, found.source, found.member)


def _name(event: Event | None) -> str:
    if event is None:
        return ""
    if event.verb in ("signal", "wait_until"):
        return f"{event.verb} {event.target}"
    if event.verb in ("await", "copy", "store"):
        return str(replace(event, item=None, count=event.count if event.verb == "await" else None))
    return f"{event.verb} {event.target}".strip()


def access_differences(
    expected: ExpectedTile, log: ExecutionLog, contract: Contract
) -> Iterator[Difference]:
    """Yield accesses that no clause allows, of a log whose events are equal."""
    homes = {port.name: port.in_place for port in contract.ports if port.in_place}
    spaces = {port.name: port.space for port in contract.ports}
    scratch = {port.name for port in contract.ports if port.scratch}
    for position, found in enumerate(log.accesses):
        for access in sorted(found, key=str):
            if spaces.get(access.target) == "registers" and access.kind == "read":
                continue  # registers are private to the role
            wanted = expected.clauses_of(access, homes)
            loose = spaces.get(access.target) in ("registers", "global")
            loose = loose and access.target not in scratch
            if any(
                loose or (c.stage == access.stage and c.first <= position <= c.last) for c in wanted
            ):
                continue
            yield access_difference(access, position, expected, wanted)


def access_difference(
    access: Access, position: int, expected: ExpectedTile, clauses: list[AllowedAccess]
) -> Difference:
    """Return the difference for an access that no clause allows; clauses: those of its port."""
    before = f"after `{expected.events[position - 1]}`" if position else "before all operations"
    op, found = clauses[0].op if clauses else None, f"{access} {before}"
    held = next((c for c in clauses if c.first <= position <= c.last and c.stage >= 0), None)
    if held is not None and held.stage != access.stage:
        what = f"performs a {access.kind} of the wrong stage of `{access.target}`"
        wanted = str(replace(access, stage=held.stage))
        return Difference("PL0916", what, held.op, access.target, wanted, found, position)
    allowed = f"`{access.kind} {access.target}` at its place in the body" if op else "no access"
    target = access.target if " " in access.target else f"`{access.target}`"
    what = f"performs an undeclared {access.kind} of {target}"
    return Difference("PL0930", what, op, access.target, allowed, found, position)


def missing_accesses(
    done: set[tuple[str, str]], expected_tiles: list[ExpectedTile], contract: Contract
) -> list[Operation]:
    """Return the reads and writes of the body that no warp performed in any work tile."""
    homes = {port.name: port.in_place for port in contract.ports if port.in_place}
    found: dict[tuple[str, str], Operation] = {}
    for expected in expected_tiles:
        for clause in expected.clauses:
            op = clause.op
            if (op.verb, homes.get(op.target, op.target)) not in done:
                found.setdefault((op.verb, op.target), op)
    return list(found.values())


@dataclass
class StageRotation:
    """The stages of each buffer that one lane wrote last, over the work tiles."""

    contract: Contract
    last: dict[str, list[frozenset[int]]] = field(default_factory=dict)

    def check(self, log: ExecutionLog) -> Difference | None:
        """Return a stage that is rewritten too early; `await store 0` frees every stage."""
        stages = {item.name: item.stages for item in self.contract.buffers if item.stages > 1}
        groups: dict[tuple[int, str], set[int]] = {}
        for position, buffer, written in log.writes:
            if buffer in stages:
                groups.setdefault((position, buffer), set()).update(written)
        drained = [
            number + 1
            for number, event in enumerate(log.events)
            if (event.verb, event.target, event.count) == ("await", "store", 0)
        ]
        for (position, buffer), addresses in sorted(groups.items(), key=lambda pair: pair[0]):
            while drained and drained[0] <= position:
                self.last.clear()
                drained.pop(0)
            recent = self.last.setdefault(buffer, [])
            kept = recent[-(stages[buffer] - 1) :]
            if any(addresses & other for other in kept):
                what = f"writes one stage of `{buffer}` twice in succession"
                wanted = f"stages: {stages[buffer]}, each write to the next one"
                actual = "two successive writes of the same bytes"
                return Difference("PL0916", what, None, buffer, wanted, actual, position)
            recent.append(frozenset(addresses))
        if drained:
            self.last.clear()
        return None


@dataclass
class ScratchSlices:
    """The slice as which each address was accessed, over the work tiles and warps of a role."""

    contract: Contract
    role: Role
    slices: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)

    def check(
        self, environment: dict[str, int], touched: set[tuple[str, int]]
    ) -> Difference | None:
        """Return the first address that belongs to two slices."""
        named: dict[str, set[Operation]] = {}
        for op in operations(self.role.body):
            if op.index and op.verb not in ("signal", "wait_until"):
                name = op.source if op.verb in ("copy", "store") else op.target
                named.setdefault(name, set()).add(op)
        for port, address in sorted(touched):
            if len({op.piece for op in named.get(port, ())}) != 1:
                continue  # unused here, or sliced in two ways: the slice cannot be determined
            op = next(iter(named[port]))
            index = tuple(evaluate(part, environment) for part in op.index)
            other = self.slices.setdefault((port, address), index)
            if other != index:
                what, wanted = f"accesses an undeclared slice of `{port}`", f"{port}{op.piece}"
                wanted, actual = f"{wanted} = {list(index)}", f"an address in {list(other)}"
                return Difference("PL0930", what, op, port, wanted, actual)
        return None
