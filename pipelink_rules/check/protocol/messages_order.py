"""Findings about order: races, missing fences, groups in flight, parities that alias."""

from __future__ import annotations

from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.check.protocol.analyze import Found
from pipelink_rules.check.protocol.message_parts import file_of, memory_of, notes_of, subject_of
from pipelink_rules.check.protocol.model import READS, Kind, Origin
from pipelink_rules.check.protocol.protocol_problems import (
    MixedGenerations,
    NoOrder,
    NoProxyFence,
    OrderProblem,
    PhaseAliasing,
    ReversedOrder,
)
from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels
from pipelink_rules.diagnostics.wording import plural

OVERWRITTEN = "data are overwritten while they are still read: wrong results, now and then"
_DOES = {
    "copy": "is written by a copy",
    "write": "is written",
    "read": "is read",
    "mma": "is read by wgmma",
    "store": "is read by a bulk store",
    "tensor mma": "is read by tcgen05.mma",
    "accumulate": "is accumulated into",
    "tensor load": "is loaded",
    "tensor store": "is stored to",
}


def _later_item(index: ProgramIndex, problem: OrderProblem) -> str:
    if not problem.distance:
        return "the same item"
    if problem.target in index.protocol.channel_of:
        return f"the item that reuses the stage ({plural(problem.distance, 'item')} later)"
    return "the next use of the stage"


def pair(
    code: str,
    index: ProgramIndex,
    case: Found[OrderProblem],
    message: str,
    found: str,
    run: str,
    suggestions: tuple[str, ...],
    says: tuple[str, str] = ("must be over: the item {} here", "before {} {} here"),
    notes: tuple[str, ...] = (),
) -> Diagnostic:
    """The finding about an access that must end before another one begins."""
    problem = case.problem
    first, second = problem.first, problem.second
    later = _later_item(index, problem)
    return Diagnostic(
        code,
        message,
        labels(
            (first.origin.span, says[0].format(_DOES[first.kind])),
            (second.origin.span, says[1].format(later, _DOES[second.kind])),
        ),
        expected=f"{first.origin.clause} before {second.origin.clause}",
        found=found,
        at_run_time=run,
        notes=(*notes, *notes_of(index, case, problem.target)),
        suggestions=suggestions,
        subject=subject_of(index, problem),
    )


def damage(problem: OrderProblem) -> str:
    """What happens where an access meets data of another item."""
    if problem.distance:
        return OVERWRITTEN
    reader = problem.second.origin.instance
    return f"`{reader}` reads what was there before: wrong results, now and then"


def no_order(index: ProgramIndex, case: Found[NoOrder]) -> Diagnostic:
    """PL0501: two accesses of one stage in no order."""
    problem = case.problem
    first, second = problem.first, problem.second
    what = memory_of(index, problem.target, first.origin)
    return pair(
        "PL0501",
        index,
        case,
        f"nothing orders {first.origin.clause} before {second.origin.clause} in {what}",
        "no chain of arrivals and waits between them",
        damage(problem),
        _order_help(problem),
    )


def _order_help(problem: OrderProblem) -> tuple[str, ...]:
    first, second = problem.first, problem.second
    port = first.origin.name
    if first.origin.owner == second.origin.owner:
        return (f"let the warps of `{first.origin.owner}` meet at a named barrier between the two",)
    if problem.distance and first.kind in READS:
        return (f"release `{port}` only after `{first.origin.text}`",)
    if problem.distance:
        return (f"acquire `{second.origin.name}` before `{second.origin.text}`",)
    return (
        f"commit `{port}` only after `{first.origin.text}`, and wait before `{second.origin.text}`",
    )


def reversed_order(index: ProgramIndex, case: Found[ReversedOrder]) -> Diagnostic:
    """PL0503: two accesses of one stage always in the wrong order."""
    problem = case.problem
    first, second = problem.first, problem.second
    return pair(
        "PL0503",
        index,
        case,
        f"{second.origin.clause} always comes before {first.origin.clause}, whose data it needs"
        if not problem.distance
        else f"{second.origin.clause} always overwrites the item before {first.origin.clause}",
        "always the other order",
        "the data of another item are used: wrong results, every time",
        _order_help(problem),
    )


def no_proxy_fence(index: ProgramIndex, case: Found[NoProxyFence]) -> Diagnostic:
    """PL0502: a generic access and a later asynchronous one without a proxy fence between them."""
    problem = case.problem
    first, second = problem.first, problem.second
    what = memory_of(index, problem.target, first.origin)
    direction = _direction(index, first.origin)
    arrive = "it is stored"
    if direction is not None:
        arrive = f"`{'commit' if direction == 'out' else 'release'} {first.origin.name}`"
    return pair(
        "PL0502",
        index,
        case,
        f"no proxy fence between {first.origin.clause} (generic) and "
        f"{second.origin.clause} (asynchronous) in {what}",
        "ordered by barriers, but across two proxies without `fence async`",
        "the copy engine does not see the stores of the warps: old data go out, now and then"
        if first.kind == "write"
        else "the copy may overtake the loads of the warps: they see the next item, now and then",
        (
            f"add `fence async` after `{first.origin.text}` and before {arrive}, in role "
            f"`{first.origin.role}`{file_of(first.origin.span)}",
        ),
        ("the item {} here, generic proxy", "{} {} here, asynchronous proxy"),
    )


def _direction(index: ProgramIndex, origin: Origin) -> str | None:
    """Direction of the ring port an action uses; None for buffers."""
    ports = {port.name: port for port in index.contracts[origin.instance].ports}
    return ports[origin.name].direction if origin.name in ports else None


def phase_aliasing(index: ProgramIndex, case: Found[PhaseAliasing]) -> Diagnostic:
    """PL0203: a wait or an arrival can take one phase for another."""
    problem = case.problem
    origin = problem.action.origin
    arrives = problem.action.kind == Kind.ARRIVE
    channel = index.protocol.channel_of[problem.target]
    stages = plural(case.stages[channel.name], "stage")
    return Diagnostic(
        "PL0203",
        f"{origin.clause} can mistake one phase of its barrier for another",
        labels(
            (
                origin.span,
                "the phase after the awaited one may complete before this wait sees it"
                if problem.lapped
                else "the phase before may still be incomplete: this arrival is counted for it"
                if arrives
                else "the phase before the awaited one may still be incomplete here",
            ),
            (index.connection(channel).span, ""),
        ),
        expected="every phase complete before anyone arrives for the next"
        if arrives
        else "waits at most one phase from the barrier: parity tells only two apart",
        found=f"with {stages}, nothing keeps this "
        + ("arrival out of the phase before" if arrives else "wait within one phase"),
        at_run_time="the role runs ahead into a stage that is still in use, or waits for ever",
        notes=notes_of(index, case, problem.target),
        suggestions=(
            f"let `{origin.owner}` wait for every item of `{origin.name}` and release it",
        ),
        subject=subject_of(index, problem),
    )


def mixed_generations(index: ProgramIndex, case: Found[MixedGenerations]) -> Diagnostic:
    """PL0303: a role can arrive twice at a named barrier before it has opened once."""
    problem = case.problem
    first, second = problem.origins
    barrier = qualified_name(first.end)
    return Diagnostic(
        "PL0303",
        f"`{second.owner}` can come to named barrier `{barrier}` again before "
        f"`{first.owner}` has come once",
        labels(
            (second.span, "this arrival belongs to the next round"),
            (first.span, "this one to the round before; nothing orders it first"),
        ),
        expected="every round of a named barrier complete before anyone arrives for the next",
        found="rounds that can mix",
        at_run_time="the barrier opens with arrivals of two rounds: a race, then a hang",
        notes=notes_of(index, case),
        suggestions=(
            f"make it `sync {first.name}` in role `{second.role}`, or put another barrier between "
            "them",
        ),
        subject=barrier,
    )
