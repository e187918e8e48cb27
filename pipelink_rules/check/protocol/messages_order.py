"""Findings about order: races, missing fences, groups in flight, parities that alias."""

from __future__ import annotations

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.protocol.analyze import Found
from pipelink_rules.check.protocol.model import ARRIVE, READS, Action
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.check.protocol.wording import end_of, file_of, notes_of, subject_of, what_of
from pipelink_rules.check.wording import count, labels
from pipelink_rules.diagnostics.diagnostic import Diagnostic

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


def _item(blueprint: ProtocolIndex, target: str, distance: int) -> str:
    if not distance:
        return "the same item"
    ahead = count(distance, "item")
    return (
        f"the item that reuses the stage ({ahead} later)"
        if target in blueprint.channel_of
        else ("the next use of the stage")
    )


def pair(
    code: str,
    resolved: ProgramIndex,
    blueprint: ProtocolIndex,
    item: Found,
    message: str,
    found: str,
    run: str,
    helps: tuple[str, ...],
    says: tuple[str, str] = ("must be over: the item {} here", "before {} {} here"),
    notes: tuple[str, ...] = (),
) -> Diagnostic:
    """The finding about an access that must end before another one begins."""
    problem = item.problem
    first, second = problem.first, problem.second
    assert first is not None and second is not None
    distance = problem.numbers[0]
    later = _item(blueprint, problem.target, distance)
    consumer = subject_of(resolved, blueprint, problem.target, first, second)
    return Diagnostic(
        code,
        message,
        labels(
            (first.origin.span, says[0].format(_DOES[first.kind])),
            (second.origin.span, says[1].format(later, _DOES[second.kind])),
        ),
        expected=f"`{first.origin.text}` of `{first.origin.owner}` before "
        f"`{second.origin.text}` of `{second.origin.owner}`",
        found=found,
        at_run_time=run,
        notes=(*notes, *notes_of(blueprint, item, problem.target)),
        helps=helps,
        subject=consumer,
    )


def damage(second: Action, distance: int) -> str:
    if distance:
        return "data are overwritten while they are still read: wrong results, now and then"
    return f"`{second.origin.instance}` reads what was there before: wrong results, now and then"


def unordered(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    """PL0501: two accesses of one stage in no order."""
    problem = item.problem
    first, second = problem.first, problem.second
    assert first is not None and second is not None
    what = what_of(blueprint, problem.target, first)
    (distance,) = problem.numbers
    return pair(
        "PL0501",
        resolved,
        blueprint,
        item,
        f"nothing orders `{first.origin.text}` of `{first.origin.owner}` before "
        f"`{second.origin.text}` of `{second.origin.owner}` in {what}",
        "no chain of arrivals and waits between them",
        damage(second, distance),
        _order_help(first, second, distance),
    )


def _order_help(first: Action, second: Action, distance: int) -> tuple[str, ...]:
    port = first.origin.name
    if first.origin.owner == second.origin.owner:
        return (f"let the warps of `{first.origin.owner}` meet at a named barrier between the two",)
    if distance and first.kind in READS:
        return (f"release `{port}` only after `{first.origin.text}`",)
    if distance:
        return (f"acquire `{second.origin.name}` before `{second.origin.text}`",)
    return (
        f"commit `{port}` only after `{first.origin.text}`, and wait before `{second.origin.text}`",
    )


def stale(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    """PL0503: two accesses of one stage always in the wrong order."""
    problem = item.problem
    first, second = problem.first, problem.second
    assert first is not None and second is not None
    (distance,) = problem.numbers
    return pair(
        "PL0503",
        resolved,
        blueprint,
        item,
        f"`{second.origin.text}` of `{second.origin.owner}` always comes before "
        f"`{first.origin.text}` of `{first.origin.owner}`, whose data it needs"
        if not distance
        else f"`{second.origin.text}` of `{second.origin.owner}` always overwrites the item before "
        f"`{first.origin.text}` of `{first.origin.owner}`",
        "always the other order",
        "the data of another item are used: wrong results, every time",
        _order_help(first, second, distance),
    )


def unfenced(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    """PL0502: a generic access and a later asynchronous one without a proxy fence between them."""
    problem = item.problem
    first, second = problem.first, problem.second
    assert first is not None and second is not None
    what = what_of(blueprint, problem.target, first)
    role, port = first.origin.role, resolved_port(resolved, first)
    arrive = "it is stored"
    if port is not None:
        arrive = f"`{'commit' if port == 'out' else 'release'} {first.origin.name}`"
    return pair(
        "PL0502",
        resolved,
        blueprint,
        item,
        f"no proxy fence between `{first.origin.text}` of `{first.origin.owner}` (generic) and "
        f"`{second.origin.text}` of `{second.origin.owner}` (asynchronous) in {what}",
        "ordered by barriers, but across two proxies without `fence async`",
        "the copy engine does not see the stores of the warps: old data go out, now and then"
        if first.kind == "write"
        else "the copy may overtake the loads of the warps: they see the next item, now and then",
        (
            f"add `fence async` after `{first.origin.text}` and before {arrive}, in role `{role}`"
            f"{file_of(first.origin.span)}",
        ),
        ("the item {} here, generic proxy", "{} {} here, asynchronous proxy"),
    )


def resolved_port(resolved: ProgramIndex, action: Action) -> str | None:
    """Direction of the ring port an action uses; None for buffers."""
    instance, name = end_of(action)
    ports = {port.name: port for port in resolved.contracts[instance].ports}
    return ports[name].direction if name in ports else None


def alias(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    """PL0203: a wait or an arrival can take one phase for another."""
    problem = item.problem
    assert problem.first is not None
    origin = problem.first.origin
    (side,) = problem.numbers
    arrives = problem.first.kind == ARRIVE
    channel = blueprint.channel_of[problem.target]
    stages = count(item.stages[channel.name], "stage")
    return Diagnostic(
        "PL0203",
        f"`{origin.text}` of `{origin.owner}` can mistake one phase of its barrier for another",
        labels(
            (
                origin.span,
                "the phase after the awaited one may complete before this wait sees it"
                if side > 0
                else "the phase before may still be incomplete: this arrival is counted for it"
                if arrives
                else "the phase before the awaited one may still be incomplete here",
            ),
            (resolved.connection(channel).span, ""),
        ),
        expected="every phase complete before anyone arrives for the next"
        if arrives
        else "waits at most one phase from the barrier: parity tells only two apart",
        found=f"with {stages}, nothing keeps this "
        + ("arrival out of the phase before" if arrives else "wait within one phase"),
        at_run_time="the role runs ahead into a stage that is still in use, or waits for ever",
        notes=notes_of(blueprint, item, problem.target),
        helps=(f"let `{origin.owner}` wait for every item of `{origin.name}` and release it",),
        subject=subject_of(resolved, blueprint, problem.target, problem.first),
    )


def recycle(resolved: ProgramIndex, blueprint: ProtocolIndex, item: Found) -> Diagnostic:
    """PL0303: a role can arrive twice at a named barrier before it has opened once."""
    problem = item.problem
    assert problem.first is not None and problem.second is not None
    instance, name = end_of(problem.first)
    first, second = problem.first.origin, problem.second.origin
    return Diagnostic(
        "PL0303",
        f"`{second.owner}` can come to named barrier `{instance}.{name}` again before "
        f"`{first.owner}` has come once",
        labels(
            (second.span, "this arrival belongs to the next round"),
            (first.span, "this one to the round before; nothing orders it first"),
        ),
        expected="every round of a named barrier complete before anyone arrives for the next",
        found="rounds that can mix",
        at_run_time="the barrier opens with arrivals of two rounds: a race, then a hang",
        notes=notes_of(blueprint, item),
        helps=(
            f"make it `sync {name}` in role `{second.role}`, or put another barrier between them",
        ),
        subject=f"{instance}.{name}",
    )
