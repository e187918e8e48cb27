"""Diagnostics about order: races, missing fences and phase aliasing."""

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
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import plural

_DOES = {
    "copy": "is copied",
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
        return f"the item that reuses the stage, {plural(problem.distance, 'item')} later,"
    return "the next use of the stage"


def pair(
    code: str,
    index: ProgramIndex,
    case: Found[OrderProblem],
    message: str,
    found: str,
    run: str,
    suggestions: tuple[str, ...],
    says: tuple[str, str] = ("must complete: the item {} here", "before {} {} here"),
    notes: tuple[str, ...] = (),
) -> Diagnostic:
    """Build the diagnostic of an access that must complete before another one starts."""
    problem = case.problem
    first, second = problem.first, problem.second
    later = _later_item(index, problem)
    return report(
        code,
        message,
        (first.origin.span, says[0].format(_DOES[first.kind])),
        (second.origin.span, says[1].format(later, _DOES[second.kind])),
        expected=f"{first.origin.clause} before {second.origin.clause}",
        found=found,
        at_run_time=run,
        notes=(*notes, *notes_of(index, case, problem.target)),
        suggestions=suggestions,
        subject=subject_of(index, problem),
    )


def damage(problem: OrderProblem) -> str:
    """Return the symptom of two accesses that are not ordered."""
    first, second = problem.first.origin, problem.second.origin
    if not problem.distance:
        return f"`{second.instance}` reads data of an earlier item: intermittent wrong results"
    use = "reads" if problem.first.kind in READS else "writes"
    return (
        f"`{second.text}` overwrites the stage while `{first.text}` {use} it: "
        "intermittent wrong results"
    )


def no_order(index: ProgramIndex, case: Found[NoOrder]) -> Diagnostic:
    """PL0501: two accesses of one stage are not ordered."""
    problem = case.problem
    first, second = problem.first, problem.second
    what = memory_of(index, problem.target, first.origin)
    return pair(
        "PL0501",
        index,
        case,
        f"data race in {what}: {first.origin.clause} is not ordered before {second.origin.clause}",
        "no chain of arrivals and waits from one to the other",
        damage(problem),
        _order_help(problem),
    )


def _order_help(problem: OrderProblem) -> tuple[str, ...]:
    first, second = problem.first, problem.second
    port = first.origin.name
    if first.origin.owner == second.origin.owner:
        return (f"add a `sync` of all warps of `{first.origin.owner}` between the two",)
    if problem.distance and first.kind in READS:
        return (f"move `release {port}` after `{first.origin.text}`",)
    if problem.distance:
        return (f"add `acquire {second.origin.name}` before `{second.origin.text}`",)
    return (
        f"move `commit {port}` after `{first.origin.text}`, and the wait before "
        f"`{second.origin.text}`",
    )


def reversed_order(index: ProgramIndex, case: Found[ReversedOrder]) -> Diagnostic:
    """PL0503: two accesses of one stage are always in the reverse order."""
    problem = case.problem
    first, second = problem.first, problem.second
    return pair(
        "PL0503",
        index,
        case,
        f"{second.origin.clause} always precedes {first.origin.clause}, whose data it reads"
        if not problem.distance
        else f"{second.origin.clause} always overwrites the item before {first.origin.clause}",
        "the reverse order",
        "data of another item is used: always wrong results",
        _order_help(problem),
    )


def no_proxy_fence(index: ProgramIndex, case: Found[NoProxyFence]) -> Diagnostic:
    """PL0502: no proxy fence between a generic access and a later asynchronous one."""
    problem = case.problem
    first, second = problem.first, problem.second
    what = memory_of(index, problem.target, first.origin)
    direction = _direction(index, first.origin)
    arrive = "the store"
    if direction is not None:
        arrive = f"`{'commit' if direction == 'out' else 'release'} {first.origin.name}`"
    return pair(
        "PL0502",
        index,
        case,
        f"missing `fence async` between {first.origin.clause} and {second.origin.clause} in {what}",
        "an order by barriers only, which does not hold across proxies",
        f"`{second.origin.text}` reads data of an earlier item: intermittent wrong results"
        if first.kind == "write"
        else f"`{second.origin.text}` overwrites the stage before it is read: intermittent wrong "
        f"results",
        (
            f"add `fence async` after `{first.origin.text}` and before {arrive}, in role "
            f"`{first.origin.role}`{file_of(first.origin.span)}",
        ),
        ("the item {} here, generic proxy", "{} {} here, asynchronous proxy"),
    )


def _direction(index: ProgramIndex, origin: Origin) -> str | None:
    """Return the direction of the ring port that an action uses; None for buffers."""
    ports = {port.name: port for port in index.contracts[origin.instance].ports}
    return ports[origin.name].direction if origin.name in ports else None


def phase_aliasing(index: ProgramIndex, case: Found[PhaseAliasing]) -> Diagnostic:
    """PL0203: a wait or an arrival can be about another phase of its barrier."""
    problem = case.problem
    origin = problem.action.origin
    arrives = problem.action.kind == Kind.ARRIVE
    channel = index.protocol.channel_of[problem.target]
    stages = plural(case.stages[channel.name], "stage")
    return report(
        "PL0203",
        f"phase aliasing: {origin.clause} can be counted for the phase before its own"
        if arrives
        else f"phase aliasing: {origin.clause} can be two phases away from its barrier",
        (
            origin.span,
            "the phase after the awaited one may complete before this wait sees it"
            if problem.lapped
            else "the phase before may be incomplete: this arrival is counted for it"
            if arrives
            else "the phase before the awaited one may be incomplete here",
        ),
        (index.connection(channel).span, ""),
        expected="every phase complete before an arrival for the next"
        if arrives
        else "a wait at most one phase away from its barrier",
        found=f"with {stages}, an arrival that can precede that"
        if arrives
        else f"with {stages}, a wait that can be two phases away",
        at_run_time="the role uses a stage that is still in use, or hangs",
        notes=notes_of(index, case, problem.target),
        suggestions=(f"let `{origin.owner}` wait for and release every item of `{origin.name}`",),
        subject=subject_of(index, problem),
    )


def mixed_generations(index: ProgramIndex, case: Found[MixedGenerations]) -> Diagnostic:
    """PL0303: a role can arrive twice at a named barrier before it completes once."""
    problem = case.problem
    first, second = problem.origins
    barrier = qualified_name(first.end)
    return report(
        "PL0303",
        f"`{second.owner}` can arrive twice at named barrier `{barrier}` before `{first.owner}` "
        "arrives once",
        (second.span, "this arrival belongs to the next phase"),
        (first.span, "this one to the phase before; they are not ordered"),
        expected="every phase complete before an arrival for the next",
        found="arrivals of two phases that can mix",
        at_run_time="the barrier completes with arrivals of two phases: data race, then hang",
        notes=notes_of(index, case),
        suggestions=(
            f"use `sync {first.name}` in role `{second.role}`",
            "or add another barrier between the two arrivals",
        ),
        subject=barrier,
    )
