"""Findings about wgmma and bulk store groups that are still in flight."""

from __future__ import annotations

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.protocol.find_problems import Found
from pipelink_rules.check.protocol.messages_order import damage, pair
from pipelink_rules.check.protocol.messages_tensor import released_early
from pipelink_rules.check.protocol.model import AWAIT, MMA, TENSOR_MMA, Action
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.check.protocol.wording import end_of, notes_of, what_of
from pipelink_rules.check.wording import count, labels
from pipelink_rules.diagnostics.diagnostic import Diagnostic


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
