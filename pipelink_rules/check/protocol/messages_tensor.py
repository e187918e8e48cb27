"""Findings about tensor memory, and about what tcgen05.mma reads."""

from __future__ import annotations

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.protocol.find_problems import Found
from pipelink_rules.check.protocol.messages_order import damage, pair
from pipelink_rules.check.protocol.model import (
    ACCUMULATE,
    TENSOR_COMMIT,
    TENSOR_LOAD,
    TENSOR_STORE,
    Action,
)
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.check.protocol.tensor_memory_order import MISSING_AFTER
from pipelink_rules.check.protocol.wording import file_of, notes_of, what_of
from pipelink_rules.check.wording import count, labels
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.contract import Operation, Role
from pipelink_rules.model.operation import operations

_AWAIT = {TENSOR_LOAD: "await tensor load", TENSOR_STORE: "await tensor store"}
_NAMES = {ACCUMULATE: "tcgen05.mma", TENSOR_LOAD: "tcgen05.ld", TENSOR_STORE: "tcgen05.st"}


def released_early(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    """PL0504: tcgen05.mma may still read a stage that is given back."""
    first, second = item.problem.first, item.problem.second
    assert first is not None and second is not None
    port = first.origin.name
    return pair(
        "PL0504",
        resolved,
        blueprint,
        item,
        f"`{first.origin.owner}` gives back a stage of `{port}` that tcgen05.mma may read",
        f"`release {port}` arrives at once: the tensor core is not asked",
        damage(second, 1),
        (f"`commit mma -> {port}` in place of `release {port}`: it arrives when the mma are over",),
    )


def missing_arrival(role: Role, port: str, full: bool) -> str:
    """What to add where a role never arrives for its items of a ring."""
    if any(op.verb == "mma" and port in (op.target, op.source) and op.source for op in _ops(role)):
        return f"add `commit mma -> {port}` to role `{role.name}`, after the mma of an item"
    if full:
        return f"add `commit {port}` to role `{role.name}`"
    return f"add `release {port} lag 0` to role `{role.name}`, after the loop and its last `await`"


def _ops(role: Role) -> list[Operation]:
    return list(operations(role.body))


def overlapping(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    """PL0509: an operation on tensor memory may not be over when another one begins."""
    first, second = item.problem.first, item.problem.second
    assert first is not None and second is not None
    await_it = _AWAIT.get(first.kind, "")
    gives = _gives(item, first)
    if await_it:
        found = f"no `{await_it}` between `{first.origin.text}` and `{gives}`"
        helps = (f"add `{await_it}` after `{first.origin.text}` and before `{gives}`",)
    else:
        port = first.origin.name
        found = f"no `commit mma -> {port}`: a plain arrival does not ask the tensor core"
        if any(
            action.kind == TENSOR_COMMIT and action.origin.name == port
            for process in item.composition.processes
            for action in process.period
        ):
            found = f"no `commit mma -> {port}` after it for this item"
        helps = (f"give `{port}` on with `commit mma -> {port}`, after the last mma of the item",)
    return pair(
        "PL0509",
        resolved,
        blueprint,
        item,
        f"`{second.origin.text}` of `{second.origin.owner}` can begin before "
        f"`{first.origin.text}` of `{first.origin.owner}` is over in "
        f"{what_of(blueprint, item.problem.target, first)}",
        found,
        damage(second, item.problem.numbers[0]),
        helps,
        notes=(f"{_NAMES[first.kind]} is asynchronous: nothing but a wait proves it over",),
    )


def _gives(item: Found, first: Action) -> str:
    """How the role of an access gives its item on, as written."""
    for process in item.composition.processes:
        for action in process.period:
            text, origin = action.origin.text, action.origin
            if (origin.instance, origin.name) == (
                first.origin.instance,
                first.origin.name,
            ) and text.startswith(("release", "commit")):
                return text
    return f"the end of {first.origin.name}"


def no_fence(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    """PL0509: ordered by barriers, but not for the operations of the tensor core."""
    first, second = item.problem.first, item.problem.second
    assert first is not None and second is not None
    after = item.problem.numbers[1] == MISSING_AFTER
    where = second.origin if after else first.origin
    if after:
        getter = "acquire" if second.kind != TENSOR_LOAD else "wait"
        fix = f"add `fence tensor after` between `{getter} {where.name}` and `{where.text}`"
    else:
        fix = (
            f"add `fence tensor before` between `{_AWAIT.get(first.kind, first.origin.text)}` and "
            f"`{_gives(item, first)}`"
        )
    return pair(
        "PL0509",
        resolved,
        blueprint,
        item,
        f"no `fence tensor {'after' if after else 'before'}` between `{first.origin.text}` of "
        f"`{first.origin.owner}` and `{second.origin.text}` of `{second.origin.owner}` in "
        f"{what_of(blueprint, item.problem.target, first)}",
        "ordered by barriers, which do not order tcgen05 operations",
        f"{_NAMES[second.kind]} may be executed before the wait in front of it: "
        + damage(second, item.problem.numbers[0])
        if after
        else f"{_NAMES[first.kind]} may be executed after the arrival behind it: "
        + damage(second, item.problem.numbers[0]),
        (f"{fix}, in role `{where.role}`{file_of(where.span)}",),
        ("the item {} here", "{} {} here"),
    )


def loading(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    """PL0509: registers are used, or the role ends, while tcgen05.ld or .st is not over."""
    first, second = item.problem.first, item.problem.second
    action = second or first
    assert action is not None
    origin = action.origin
    (pending,) = item.problem.numbers
    store = first is not None and first.kind == TENSOR_STORE
    what = "tensor store" if store else "tensor load"
    if second is None:
        message = f"role `{origin.owner}` ends with {count(pending, what)} not awaited"
        run = "the warps may end before it is over"
    else:
        message = (
            f"`{origin.text}` of `{origin.owner}` uses registers that tcgen05.ld may still fill"
        )
        run = "registers are read before the accumulators are in them: wrong results"
    return Diagnostic(
        "PL0509",
        message,
        labels((origin.span, f"{count(pending, what)} not awaited here")),
        expected=f"`await {what}` before it" if second else f"`await {what}` after it",
        found="none",
        at_run_time=run,
        notes=notes_of(blueprint, item),
        helps=(f"add `await {what}` {'before' if second else 'after'} `{origin.text}`",),
        subject=f"{origin.owner}",
    )
