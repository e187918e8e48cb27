"""Where does the code first differ from its contract?  Two logs of one work item."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from pipelink_rules.audit.execution_log import Access, Event, ExecutionLog
from pipelink_rules.audit.expected_trace import ExpectedTile
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Contract, Operation, Role
from pipelink_rules.model.operation import operations


@dataclass(frozen=True)
class Difference:
    """One difference, as a finding says it."""

    code: str
    message: str
    op: Operation | None  # the clause that is broken
    target: str  # a port, buffer or barrier
    expected: str
    found: str
    position: int = 0  # of the event in the log


def first_difference(expected: ExpectedTile, log: ExecutionLog) -> Difference | None:
    """The first event that is not as promised."""
    for position in range(max(len(expected.events), len(log.events))):
        wanted = expected.events[position] if position < len(expected.events) else None
        found = log.events[position] if position < len(log.events) else None
        op = expected.ops[position] if wanted else None
        if wanted is None or found is None or not agrees(wanted, found):
            return event_difference(wanted, found, op, position)
    return None


def agrees(wanted: Event, found: Event) -> bool:
    """Equal, or more than asked for: the end of a store where its reads were to be awaited."""
    return wanted == found or (wanted.verb == "await" and wanted == replace(found, member=""))


def event_difference(
    wanted: Event | None, found: Event | None, op: Operation | None, position: int
) -> Difference:
    """Two events that are not equal, in the words of a finding."""
    clause = str(wanted) if wanted else "nothing more in this work item"
    actual = str(found) if found else "the end of the work item"
    target = (wanted or found or Event("")).target
    if found and found.verb.startswith("wgmma without"):
        return Difference(
            "PL0919", "multiplies without wgmma.fence", op, target, clause, actual, position
        )
    if wanted is None or found is None or wanted.verb != found.verb:
        what = f"does not `{_name(wanted)}`" if wanted else f"has a `{_name(found)}` too many"
        return Difference("PL0934", what, op, target, clause, actual, position)
    named = wanted.verb != "await" or wanted.target != found.target
    if named and (wanted.target, wanted.source, wanted.member) != (
        found.target,
        found.source,
        found.member,
    ):
        return Difference(
            "PL0915", f"does not `{_name(wanted)}`", op, target, clause, actual, position
        )
    if wanted.item != found.item:
        what = f"does `{wanted.verb}` another item of `{target}`"
        return Difference("PL0916", what, op, target, clause, actual, position)
    what = f"does `{_name(wanted)}` with another number"
    code = "PL0918" if wanted.verb in ("await", "wait_until") else "PL0917"
    return Difference(code, what, op, target, clause, actual, position)


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
    """Accesses that no clause allows; the events are equal."""
    homes = {port.name: port.in_place for port in contract.ports if port.in_place}
    spaces = {port.name: port.space for port in contract.ports}
    scratch = {port.name for port in contract.ports if port.scratch}
    for position, found in enumerate(log.accesses):
        for access in sorted(found, key=str):
            if spaces.get(access.target) == "registers" and access.kind == "read":
                continue  # registers are the role's own
            wanted = expected.clauses_of(access, homes)
            loose = spaces.get(access.target) in ("registers", "global")
            loose = loose and access.target not in scratch
            if any(
                loose or (c.stage == access.stage and c.first <= position <= c.last) for c in wanted
            ):
                continue
            yield access_difference(access, position, expected, [clause.op for clause in wanted])


def access_difference(
    access: Access, position: int, expected: ExpectedTile, ops: list[Operation]
) -> Difference:
    """An access that no clause allows, in the words of a finding."""
    before = f"after `{expected.events[position - 1]}`" if position else "first of all"
    allowed = f"`{access.kind} {access.target}` where the body has it" if ops else "no such access"
    return Difference(
        "PL0930",
        f"has a {access.kind} of {_quoted(access)} that the contract does not show",
        ops[0] if ops else None,
        access.target,
        allowed,
        f"{access} {before}",
        position,
    )


def _quoted(access: Access) -> str:
    return access.target if " " in access.target else f"`{access.target}`"


def missing_accesses(
    done: set[tuple[str, str]], expected_tiles: list[ExpectedTile], contract: Contract
) -> list[Operation]:
    """Reads and writes of the body that no warp did in any work item."""
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
    """Whether a buffer's stages are used in turn, by one lane, over the work items."""

    contract: Contract
    last: dict[str, list[frozenset[int]]] = field(default_factory=dict)

    def check(self, log: ExecutionLog) -> Difference | None:
        """A stage that is written again too early; `await store 0` makes every stage free."""
        stages = {item.name: item.stages for item in self.contract.buffers if item.stages > 1}
        groups: dict[tuple[int, str], set[int]] = {}
        for position, buffer, address in log.writes:
            groups.setdefault((position, buffer), set()).add(address)
        drained = [
            number + 1
            for number, event in enumerate(log.events)
            if (event.verb, event.target, event.count) == ("await", "store", 0)
        ]
        for (position, buffer), addresses in sorted(groups.items(), key=lambda pair: pair[0]):
            if buffer not in stages:
                continue
            while drained and drained[0] <= position:
                self.last.clear()
                drained.pop(0)
            recent = self.last.setdefault(buffer, [])
            kept = recent[-(stages[buffer] - 1) :]
            if any(addresses & other for other in kept):
                return Difference(
                    "PL0916",
                    f"writes one stage of `{buffer}` twice in turn",
                    None,
                    buffer,
                    f"stages: {stages[buffer]}, each write in the next",
                    "two writes of the same bytes, one after the other",
                    position,
                )
            recent.append(frozenset(addresses))
        if drained:
            self.last.clear()
        return None


@dataclass
class ScratchSlices:
    """Which piece each address was touched as, over the work items and warps of a role."""

    contract: Contract
    role: Role
    seen: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)

    def check(
        self, environment: dict[str, int], touched: set[tuple[str, int]]
    ) -> Difference | None:
        """The first address that belongs to another piece as well."""
        named: dict[str, set[Operation]] = {}
        for op in operations(self.role.body):
            if op.index and op.verb not in ("signal", "wait_until"):
                name = op.source if op.verb in ("copy", "store") else op.target
                named.setdefault(name, set()).add(op)
        for port, address in sorted(touched):
            if len({op.piece for op in named.get(port, ())}) != 1:
                continue  # not used here, or as two kinds of pieces: which one nobody can say
            op = next(iter(named[port]))
            index = tuple(evaluate(part, environment) for part in op.index)
            other = self.seen.setdefault((port, address), index)
            if other != index:
                return Difference(
                    "PL0930",
                    f"touches a piece of `{port}` that is not the one it names",
                    op,
                    port,
                    f"{port}{op.piece} = {list(index)}",
                    f"an address that was in {list(other)}",
                )
        return None
