"""Diagnostics about incomplete asynchronous operations: wgmma, bulk stores, tensor memory."""

from pipelink_rules.check.protocol import protocol_problems as problems
from pipelink_rules.check.protocol.message_parts import Case, damage, file_of, pair
from pipelink_rules.check.protocol.model import Kind
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


def mma_still_reads(case: Case[problems.MmaStillReads]) -> Diagnostic:
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
        case,
        f"`{first.origin.owner}` releases a stage of `{port}` that {reader} may still read",
        found=found,
        at_run_time=damage(case.problem),
        suggestions=tuple(suggestions),
    )


def _depth(case: Case[problems.OrderProblem]) -> int | None:
    """Return the groups that the awaits of the role leave pending inside the loop."""
    first = case.problem.first
    counts = [
        action.amount
        for action in case.composition.actions()
        if action.kind == Kind.AWAIT
        and action.target == first.kind
        and action.origin.owner == first.origin.owner
    ]
    return max(counts, default=None)


def _lag(case: Case[problems.OrderProblem]) -> int | None:
    """Return the lag of the release of the stage."""
    end = case.problem.first.origin.end
    for action in case.composition.actions():
        operation = action.origin.operation
        if operation and operation.verb == "release" and action.origin.end == end:
            return operation.lag
    return None


def accumulators_in_flight(case: Case[problems.AccumulatorsInFlight]) -> Diagnostic:
    """PL0504: wgmma may still write registers that are used."""
    action, pending = case.problem.action, case.problem.pending
    port = case.index.port(action.origin.end)
    return case.report(
        f"{action.origin.clause} uses accumulators that wgmma may still write",
        (action.origin.span, f"up to {plural(pending, 'wgmma group')} pending here"),
        (port.where("pending"), f"allows {port.pending}"),
        expected=f"at most {plural(action.amount, 'pending group')}",
        found=plural(pending, "pending group"),
        at_run_time="registers are read before wgmma writes them: wrong results",
        suggestions=(f"add `await mma {action.amount}` before `{action.origin.text}`",),
    )


def store_still_reads(case: Case[problems.StoreStillReads]) -> Diagnostic:
    """PL0505: a bulk store may still read memory that is overwritten."""
    first, second = case.problem.origins
    depth = _depth(case)
    fix = f"`await store {max(depth - 1, 0)}`" if depth else "`await store 0`"
    return pair(
        case,
        f"{second.clause} overwrites {case.memory(first)} while `{first.text}` may still read it",
        found=f"`await store {depth}`, which leaves {plural(depth, 'store')} pending"
        if depth is not None
        else "no `await store` before it",
        at_run_time="parts of the next tile are stored instead: intermittent wrong results",
        suggestions=(f"add {fix} before `{second.text}`",)
        if first.owner == second.owner
        else (f"add {fix} before `release {first.name}`",),
        notes=_restarts(case),
    )


def _restarts(case: Case[problems.StoreStillReads]) -> tuple[str, ...]:
    """Return why a buffer of several stages starts over in every call of its role."""
    name, first = case.problem.target, case.problem.first
    if not name.endswith("]") or name[:-2] + "1]" not in case.composition.memories:
        return ()
    return (
        f"a role without a ring keeps no state between work tiles: `{first.origin.owner}` starts "
        f"each one with stage 0 of `{first.origin.name}`",
    )


def mma_not_awaited(case: Case[problems.MmaNotAwaited]) -> Diagnostic:
    """PL0504: a role exits with wgmma groups pending."""
    return _not_awaited(
        case,
        "wgmma group",
        "the warps may exit before their results are complete: wrong results",
        "add `await mma 0` at the end of the body",
    )


def store_not_awaited(case: Case[problems.StoreNotAwaited]) -> Diagnostic:
    """PL0505: a role exits with bulk stores pending."""
    return _not_awaited(
        case,
        "bulk store",
        "shared memory is reused by the next CTA while it is read: intermittent wrong results",
        f"add `epilogue: [await store 0]` to role `{case.problem.action.origin.role}`",
    )


def _not_awaited(case: Case[problems.PendingProblem], what: str, run: str, fix: str) -> Diagnostic:
    problem, origin = case.problem, case.problem.action.origin
    return report(
        problem.code,
        f"role `{origin.owner}` exits with up to {plural(problem.pending, what)} pending",
        (origin.span, "issued here"),
        (case.role(origin).where("epilogue"), "no await at the end of the role"),
        expected=f"`await {problem.action.kind} 0` at the end of the role",
        found="none",
        at_run_time=run,
        suggestions=(fix,),
        subject=origin.owner,
    )


def tensor_memory_overlap(case: Case[problems.TensorMemoryOverlap]) -> Diagnostic:
    """PL0509: an operation on tensor memory may be incomplete when another one starts."""
    first, second = case.problem.origins
    kind = case.problem.first.kind
    if kind in _AWAIT:
        handover = _handover(case)
        found = f"no `{_AWAIT[kind]}` between `{first.text}` and `{handover}`"
        fix = f"add `{_AWAIT[kind]}` after `{first.text}` and before `{handover}`"
    else:
        commit = f"`commit mma -> {first.name}`"
        commits = [a for a in case.composition.actions() if a.kind == Kind.TENSOR_COMMIT]
        found = f"no {commit}: other arrivals do not wait for the tensor core"
        if any(action.origin.name == first.name for action in commits):
            found = f"no {commit} after it for this item"
        fix = f"hand over `{first.name}` with {commit}, after the last mma of the item"
    return pair(
        case,
        f"{second.clause} can start before asynchronous {first.clause} completes in "
        f"{case.memory(first)}",
        found=found,
        at_run_time=damage(case.problem),
        suggestions=(fix,),
        notes=(f"{_NAMES[kind]} is asynchronous: only a wait for it shows that it completed",),
    )


def _handover(case: Case[problems.OrderProblem]) -> str:
    """Return the operation with which the role of the first access hands over its item."""
    first = case.problem.first.origin
    for action in case.composition.actions():
        origin = action.origin
        if origin.end == first.end and origin.verb in ("release", "commit"):
            return origin.text
    return f"the end of {first.name}"


def no_tensor_fence(case: Case[problems.NoTensorFence]) -> Diagnostic:
    """PL0509: ordered by barriers, which do not order operations of the tensor core."""
    kinds = case.problem.first.kind, case.problem.second.kind
    first, second = case.problem.origins
    if case.problem.after:
        name, where = "fence tensor after", second
        getter = "wait" if kinds[1] == Kind.TENSOR_LOAD else "acquire"
        place = f"between `{getter} {second.name}` and `{second.text}`"
        run = f"{_NAMES[kinds[1]]} may execute before the preceding wait"
    else:
        name, where = "fence tensor before", first
        place = f"between `{_AWAIT.get(kinds[0], first.text)}` and `{_handover(case)}`"
        run = f"{_NAMES[kinds[0]]} may execute after the following arrival"
    return pair(
        case,
        f"missing `{name}` between {first.clause} and {second.clause} in {case.memory(first)}",
        ("the item {} here", "{} {} here"),
        found="an order by barriers only, which does not hold for tcgen05 operations",
        at_run_time=f"{run}: {damage(case.problem)}",
        suggestions=(f"add `{name}` {place}, in role `{where.role}`{file_of(where.span)}",),
    )


def tensor_load_in_flight(case: Case[problems.TensorLoadInFlight]) -> Diagnostic:
    """PL0509: registers are used that tcgen05.ld may still write."""
    return _tensor_access(
        case,
        "tensor load",
        f"{case.problem.action.origin.clause} uses registers that tcgen05.ld may still write",
        "registers are read before tcgen05.ld writes them: wrong results",
        "before",
    )


def tensor_access_not_awaited(case: Case[problems.TensorAccessNotAwaited]) -> Diagnostic:
    """PL0509: a role exits while tcgen05.ld or .st may be incomplete."""
    action = case.problem.action
    what = "tensor store" if action.kind == Kind.TENSOR_STORE else "tensor load"
    return _tensor_access(
        case,
        what,
        f"role `{action.origin.owner}` exits with up to {plural(case.problem.pending, what)} "
        f"pending",
        "the warps may exit before it completes: wrong results",
        "after",
    )


def _tensor_access(
    case: Case[problems.PendingProblem], what: str, message: str, run: str, where: str
) -> Diagnostic:
    origin = case.problem.action.origin
    return case.report(
        message,
        (origin.span, f"up to {plural(case.problem.pending, what)} pending here"),
        expected=f"`await {what}` {where} `{origin.text}`",
        found="none",
        at_run_time=run,
        suggestions=(f"add `await {what}` {where} `{origin.text}`",),
        subject=origin.owner,
    )
