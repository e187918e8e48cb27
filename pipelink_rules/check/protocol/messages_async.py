"""Diagnostics about incomplete asynchronous operations: wgmma, bulk stores, tensor memory."""

from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.check.protocol.analyze import Found
from pipelink_rules.check.protocol.message_parts import file_of, memory_of, notes_of
from pipelink_rules.check.protocol.messages_order import damage, pair
from pipelink_rules.check.protocol.model import Action, Kind
from pipelink_rules.check.protocol.protocol_problems import (
    AccumulatorsInFlight,
    MmaNotAwaited,
    MmaStillReads,
    NoTensorFence,
    OrderProblem,
    StoreNotAwaited,
    StoreStillReads,
    TensorAccessNotAwaited,
    TensorLoadInFlight,
    TensorMemoryOverlap,
)
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import plural

_AWAIT: dict[str, str] = {
    Kind.TENSOR_LOAD: "await tensor load",
    Kind.TENSOR_STORE: "await tensor store",
}
_NAMES: dict[str, str] = {
    Kind.ACCUMULATE: "tcgen05.mma",
    Kind.TENSOR_LOAD: "tcgen05.ld",
    Kind.TENSOR_STORE: "tcgen05.st",
}


def mma_still_reads(index: ProgramIndex, case: Found[MmaStillReads]) -> Diagnostic:
    """PL0504: wgmma or tcgen05.mma may still read a stage that is released."""
    first = case.problem.first
    port = first.origin.name
    if first.kind == Kind.TENSOR_MMA:
        reader = "tcgen05.mma"
        found = f"`release {port}`, which does not wait for the tensor core"
        suggestions = [f"replace `release {port}` by `commit mma -> {port}`"]
    else:
        reader, found = "wgmma", "no `await mma` before it"
        depth, lag = _depth(case), _lag(case)
        suggestions = [f"add `await mma 0` before `release {port}`"]
        if depth is not None:
            suggestions = [
                f"delay the release by {plural(depth, 'item')}: `release {port} lag {depth}`",
                f"or {suggestions[0]}",
            ]
            if lag is not None:
                found = f"up to {plural(depth, 'group')} pending, released with lag {lag}"
    return pair(
        "PL0504",
        index,
        case,
        f"`{first.origin.owner}` releases a stage of `{port}` that {reader} may still read",
        found,
        damage(case.problem),
        tuple(suggestions),
    )


def _depth(case: Found[OrderProblem]) -> int | None:
    """Return the groups that the awaits of the role leave pending inside the loop."""
    first = case.problem.first
    counts = [
        action.amount
        for process in case.composition.processes
        for action in process.period
        if action.kind == Kind.AWAIT
        and action.target == first.kind
        and action.origin.owner == first.origin.owner
    ]
    return max(counts) if counts else None


def _lag(case: Found[OrderProblem]) -> int | None:
    """Return the lag of the release of the stage."""
    end = case.problem.first.origin.end
    for process in case.composition.processes:
        for action in process.period:
            operation = action.origin.operation
            if operation and operation.verb == "release" and action.origin.end == end:
                return operation.lag
    return None


def accumulators_in_flight(index: ProgramIndex, case: Found[AccumulatorsInFlight]) -> Diagnostic:
    """PL0504: wgmma may still write registers that are used."""
    action, pending = case.problem.action, case.problem.pending
    port = index.port(action.origin.end)
    return report(
        "PL0504",
        f"{action.origin.clause} uses accumulators that wgmma may still write",
        (action.origin.span, f"up to {plural(pending, 'wgmma group')} pending here"),
        (port.where("pending"), f"allows {port.pending}"),
        expected=f"at most {plural(action.amount, 'pending group')}",
        found=plural(pending, "pending group"),
        at_run_time="registers are read before wgmma writes them: wrong results",
        notes=notes_of(index, case),
        suggestions=(f"add `await mma {action.amount}` before `{action.origin.text}`",),
        subject=qualified_name(action.origin.end),
    )


def store_still_reads(index: ProgramIndex, case: Found[StoreStillReads]) -> Diagnostic:
    """PL0505: a bulk store may still read memory that is overwritten."""
    first, second = case.problem.first, case.problem.second
    depth = _depth(case)
    what = memory_of(index, case.problem.target, first.origin)
    fix = f"`await store {max(depth - 1, 0)}`" if depth else "`await store 0`"
    return pair(
        "PL0505",
        index,
        case,
        f"{second.origin.clause} overwrites {what} while `{first.origin.text}` may still read it",
        f"`await store {depth}`, which leaves {plural(depth, 'store')} pending"
        if depth is not None
        else "no `await store` before it",
        "parts of the next tile are stored instead: intermittent wrong results",
        (f"add {fix} before `{second.origin.text}`",)
        if first.origin.owner == second.origin.owner
        else (f"add {fix} before `release {first.origin.name}`",),
        notes=_restarts(case),
    )


def _restarts(case: Found[StoreStillReads]) -> tuple[str, ...]:
    """Return why a buffer of several stages starts over in every call of its role."""
    memories = case.composition.memories
    name, first = case.problem.target, case.problem.first
    if not name.endswith("]") or name[:-2] + "1]" not in memories:
        return ()
    return (
        f"a role without a ring keeps no state between work tiles: `{first.origin.owner}` starts "
        f"each one with stage 0 of `{first.origin.name}`",
    )


def mma_not_awaited(index: ProgramIndex, case: Found[MmaNotAwaited]) -> Diagnostic:
    """PL0504: a role exits with wgmma groups pending."""
    return _not_awaited(
        index,
        "PL0504",
        case.problem.action,
        plural(case.problem.pending, "wgmma group"),
        "the warps may exit before their results are complete: wrong results",
        "add `await mma 0` at the end of the body",
    )


def store_not_awaited(index: ProgramIndex, case: Found[StoreNotAwaited]) -> Diagnostic:
    """PL0505: a role exits with bulk stores pending."""
    action = case.problem.action
    return _not_awaited(
        index,
        "PL0505",
        action,
        plural(case.problem.pending, "bulk store"),
        "shared memory is reused by the next CTA while it is read: intermittent wrong results",
        f"add `epilogue: [await store 0]` to role `{action.origin.role}`",
    )


def _not_awaited(
    index: ProgramIndex, code: str, last: Action, pending: str, run: str, fix: str
) -> Diagnostic:
    origin = last.origin
    role = index.contracts[origin.instance].role(origin.role)
    return report(
        code,
        f"role `{origin.owner}` exits with up to {pending} pending",
        (origin.span, "issued here"),
        (role.where("epilogue"), "no await at the end of the role"),
        expected=f"`await {last.kind} 0` at the end of the role",
        found="none",
        at_run_time=run,
        suggestions=(fix,),
        subject=origin.owner,
    )


def tensor_memory_overlap(index: ProgramIndex, case: Found[TensorMemoryOverlap]) -> Diagnostic:
    """PL0509: an operation on tensor memory may be incomplete when another one starts."""
    first, second = case.problem.first, case.problem.second
    await_it = _AWAIT.get(first.kind, "")
    handover = _handover(case)
    if await_it:
        found = f"no `{await_it}` between `{first.origin.text}` and `{handover}`"
        suggestions = (f"add `{await_it}` after `{first.origin.text}` and before `{handover}`",)
    else:
        port = first.origin.name
        found = f"no `commit mma -> {port}`: other arrivals do not wait for the tensor core"
        if any(
            action.kind == Kind.TENSOR_COMMIT and action.origin.name == port
            for process in case.composition.processes
            for action in process.period
        ):
            found = f"no `commit mma -> {port}` after it for this item"
        suggestions = (
            f"hand over `{port}` with `commit mma -> {port}`, after the last mma of the item",
        )
    return pair(
        "PL0509",
        index,
        case,
        f"{second.origin.clause} can start before asynchronous {first.origin.clause} completes in "
        f"{memory_of(index, case.problem.target, first.origin)}",
        found,
        damage(case.problem),
        suggestions,
        notes=(
            f"{_NAMES[first.kind]} is asynchronous: only a wait for it shows that it completed",
        ),
    )


def _handover(case: Found[OrderProblem]) -> str:
    """Return the operation with which the role of the first access hands over its item."""
    first = case.problem.first.origin
    for process in case.composition.processes:
        for action in process.period:
            origin = action.origin
            if origin.end == first.end and origin.verb in ("release", "commit"):
                return origin.text
    return f"the end of {first.name}"


def no_tensor_fence(index: ProgramIndex, case: Found[NoTensorFence]) -> Diagnostic:
    """PL0509: ordered by barriers, which do not order operations of the tensor core."""
    first, second = case.problem.first, case.problem.second
    after = case.problem.after
    where = second.origin if after else first.origin
    if after:
        getter = "acquire" if second.kind != Kind.TENSOR_LOAD else "wait"
        fix = f"add `fence tensor after` between `{getter} {where.name}` and `{where.text}`"
    else:
        fix = (
            f"add `fence tensor before` between `{_AWAIT.get(first.kind, first.origin.text)}` and "
            f"`{_handover(case)}`"
        )
    return pair(
        "PL0509",
        index,
        case,
        f"missing `fence tensor {'after' if after else 'before'}` between {first.origin.clause} "
        f"and {second.origin.clause} in {memory_of(index, case.problem.target, first.origin)}",
        "an order by barriers only, which does not hold for tcgen05 operations",
        (
            f"{_NAMES[second.kind]} may execute before the preceding wait: "
            if after
            else f"{_NAMES[first.kind]} may execute after the following arrival: "
        )
        + damage(case.problem),
        (f"{fix}, in role `{where.role}`{file_of(where.span)}",),
        ("the item {} here", "{} {} here"),
    )


def tensor_load_in_flight(index: ProgramIndex, case: Found[TensorLoadInFlight]) -> Diagnostic:
    """PL0509: registers are used that tcgen05.ld may still write."""
    return _tensor_access(
        index,
        case,
        "tensor load",
        f"{case.problem.action.origin.clause} uses registers that tcgen05.ld may still write",
        "registers are read before tcgen05.ld writes them: wrong results",
        "before",
    )


def tensor_access_not_awaited(
    index: ProgramIndex, case: Found[TensorAccessNotAwaited]
) -> Diagnostic:
    """PL0509: a role exits while tcgen05.ld or .st may be incomplete."""
    action = case.problem.action
    what = "tensor store" if action.kind == Kind.TENSOR_STORE else "tensor load"
    return _tensor_access(
        index,
        case,
        what,
        f"role `{action.origin.owner}` exits with up to {plural(case.problem.pending, what)} "
        f"pending",
        "the warps may exit before it completes: wrong results",
        "after",
    )


def _tensor_access(
    index: ProgramIndex,
    case: Found[TensorLoadInFlight | TensorAccessNotAwaited],
    what: str,
    message: str,
    run: str,
    where: str,
) -> Diagnostic:
    origin = case.problem.action.origin
    return report(
        "PL0509",
        message,
        (origin.span, f"up to {plural(case.problem.pending, what)} pending here"),
        expected=f"`await {what}` {where} `{origin.text}`",
        found="none",
        at_run_time=run,
        notes=notes_of(index, case),
        suggestions=(f"add `await {what}` {where} `{origin.text}`",),
        subject=origin.owner,
    )
