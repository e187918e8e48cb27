"""Findings about asynchronous operations that are not over: wgmma, bulk stores, tensor memory."""

from __future__ import annotations

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.protocol.analyze import Found
from pipelink_rules.check.protocol.messages_order import damage, pair
from pipelink_rules.check.protocol.model import (
    ACCUMULATE,
    AWAIT,
    MMA,
    TENSOR_COMMIT,
    TENSOR_LOAD,
    TENSOR_MMA,
    TENSOR_STORE,
    Action,
)
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.check.protocol.races import MISSING_AFTER
from pipelink_rules.check.protocol.wording import end_of, file_of, notes_of, what_of
from pipelink_rules.check.wording import count, labels
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.contract import Operation, Role
from pipelink_rules.model.operation import operations

_AWAIT = {TENSOR_LOAD: "await tensor load", TENSOR_STORE: "await tensor store"}
_NAMES = {ACCUMULATE: "tcgen05.mma", TENSOR_LOAD: "tcgen05.ld", TENSOR_STORE: "tcgen05.st"}


def in_flight(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    """PL0504: wgmma may still read a stage that is given back, or write registers that are read."""
    problem = item.problem
    first, second = problem.first, problem.second
    if second is None:
        assert first is not None
        return _undrained(resolved, blueprint, item, "PL0504", "mma")
    if first is None:
        return _accumulators(resolved, blueprint, item)
    if first.kind == TENSOR_MMA:
        return released_early(resolved, blueprint, item)
    depth, lag = _depth(item, first), _lag(first, second, item)
    helps = [f"`await mma 0` before `{first.origin.name}` is released"]
    if depth is not None:
        helps.insert(
            0, f"release {count(depth, 'item')} late: `release {first.origin.name} lag {depth}`"
        )
    return pair(
        "PL0504",
        resolved,
        blueprint,
        item,
        f"`{first.origin.owner}` gives back a stage of `{first.origin.name}` that wgmma may read",
        f"up to {count(depth, 'group')} in flight, released {count(lag, 'item')} late"
        if depth is not None and lag is not None
        else "no `await mma` covers it",
        damage(second, 1),
        tuple(helps),
    )


def _depth(item: Found, first: Action) -> int | None:
    """Groups that `await mma` leaves in flight inside the loop."""
    counts = [
        action.amount
        for process in item.composition.processes
        for action in process.period
        if action.kind == AWAIT
        and action.target == ("mma" if first.kind == MMA else "store")
        and action.origin.owner == first.origin.owner
    ]
    return max(counts) if counts else None


def _lag(first: Action, second: Action, item: Found) -> int | None:
    for process in item.composition.processes:
        for action in process.period:
            origin = action.origin
            if origin.text.startswith("release") and end_of(action) == end_of(first):
                return int(origin.text.split()[-1])
    return None


def _accumulators(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    action = item.problem.second
    assert action is not None
    (pending,) = item.problem.numbers
    port = resolved.port(end_of(action))
    return Diagnostic(
        "PL0504",
        f"`{action.origin.text}` of `{action.origin.owner}` uses accumulators that wgmma may write",
        labels(
            (action.origin.span, f"up to {count(pending, 'wgmma group')} in flight here"),
            (port.where("pending"), f"allows {port.pending}"),
        ),
        expected=f"at most {count(action.amount, 'group')} in flight",
        found=count(pending, "group"),
        at_run_time="registers are read before the result is in them: wrong results",
        notes=notes_of(blueprint, item),
        helps=(f"add `await mma {action.amount}` before it",),
        subject=f"{action.origin.instance}.{port.name}",
    )


def storing(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    """PL0505: a bulk store may still read what is overwritten or freed."""
    problem = item.problem
    first, second = problem.first, problem.second
    assert first is not None
    if second is None:
        return _undrained(resolved, blueprint, item, "PL0505", "store")
    depth = _depth(item, first)
    what = what_of(blueprint, problem.target, first)
    fix = f"`await store {max(depth - 1, 0)}`" if depth else "`await store 0`"
    return pair(
        "PL0505",
        resolved,
        blueprint,
        item,
        f"`{second.origin.text}` of `{second.origin.owner}` overwrites {what} while "
        f"`{first.origin.text}` may still read it",
        f"`await store {depth}` leaves {count(depth, 'store')} in flight"
        if depth is not None
        else "no `await store` covers it",
        "parts of the next tile are stored in place of this one: wrong results, now and then",
        (f"{fix} before `{second.origin.text}`",)
        if first.origin.owner == second.origin.owner
        else (f"{fix} before `{first.origin.name}` is released",),
        notes=_restarts(item, first),
    )


def _restarts(item: Found, first: Action) -> tuple[str, ...]:
    """Why a buffer of several stages is not used in turn from call to call."""
    pieces = item.composition.memories
    name = item.problem.target
    if not name.endswith("]") or name[:-2] + "1]" not in pieces:
        return ()
    return (
        f"a role without a ring keeps no count between work items: `{first.origin.owner}` begins "
        f"each one with the first stage of `{first.origin.name}`",
    )


def _undrained(
    resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found, code: str, kind: str
) -> Diagnostic:
    """Groups that nobody awaits before the role ends."""
    first = item.problem.first
    assert first is not None
    (pending,) = item.problem.numbers
    origin = first.origin
    role = resolved.contracts[origin.instance].role(origin.role)
    word = "wgmma group" if kind == "mma" else "bulk store"
    return Diagnostic(
        code,
        f"role `{origin.owner}` ends with up to {count(pending, word)} in flight",
        labels(
            (origin.span, "issued here"),
            (role.where("epilogue"), "not awaited at the end of the role"),
        ),
        expected=f"`await {kind} 0` before the role ends",
        found=f"{count(pending, word)} in flight",
        at_run_time="the CTA may end and its shared memory go to another one while it is still read"
        if kind == "store"
        else "the warps may end before their results are complete",
        helps=(f"add `epilogue: [await {kind} 0]` to role `{origin.role}`",)
        if kind == "store"
        else ("add `await mma 0` at the end of the body",),
        subject=f"{origin.owner}",
    )


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
