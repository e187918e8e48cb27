"""Diagnostics about order and liveness: races, missing fences, phase aliasing and deadlocks."""

from pipelink_rules.check.program_index import qualified_name
from pipelink_rules.check.protocol import protocol_problems as problems
from pipelink_rules.check.protocol.analyze import is_live
from pipelink_rules.check.protocol.event_graph import EventGraph
from pipelink_rules.check.protocol.message_parts import Case, damage, file_of, pair
from pipelink_rules.check.protocol.model import READS, WAITS, Action, Kind
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.program import HANDOVER, RING, Channel
from pipelink_rules.program.channels import HANDOVER_STAGES

MOST_STAGES = 32


def no_order(case: Case[problems.NoOrder]) -> Diagnostic:
    """PL0501: two accesses of one stage are not ordered."""
    first, second = case.problem.origins
    return pair(
        case,
        f"data race in {case.memory(first)}: {first.clause} is not ordered before {second.clause}",
        found="no chain of arrivals and waits from one to the other",
        at_run_time=damage(case.problem),
        suggestions=(_order_help(case.problem),),
    )


def _order_help(problem: problems.OrderProblem) -> str:
    first, second = problem.origins
    if first.owner == second.owner:
        return f"add a `sync` of all warps of `{first.owner}` between the two"
    if problem.distance and problem.first.kind in READS:
        return f"move `release {first.name}` after `{first.text}`"
    if problem.distance:
        return f"add `acquire {second.name}` before `{second.text}`"
    return f"move `commit {first.name}` after `{first.text}`, and the wait before `{second.text}`"


def reversed_order(case: Case[problems.ReversedOrder]) -> Diagnostic:
    """PL0503: two accesses of one stage are always in the reverse order."""
    first, second = case.problem.origins
    return pair(
        case,
        f"{second.clause} always precedes {first.clause}, whose data it reads"
        if not case.problem.distance
        else f"{second.clause} always overwrites the item before {first.clause}",
        found="the reverse order",
        at_run_time="data of another item is used: always wrong results",
        suggestions=(_order_help(case.problem),),
    )


def no_proxy_fence(case: Case[problems.NoProxyFence]) -> Diagnostic:
    """PL0502: no proxy fence between a generic access and a later asynchronous one."""
    first, second = case.problem.origins
    ports = {port.name: port for port in case.index.contracts[first.instance].ports}
    arrive = "the store"  # from a buffer
    if first.name in ports:
        verb = "commit" if ports[first.name].direction == "out" else "release"
        arrive = f"`{verb} {first.name}`"
    return pair(
        case,
        f"missing `fence async` between {first.clause} and {second.clause} in {case.memory(first)}",
        ("the item {} here, generic proxy", "{} {} here, asynchronous proxy"),
        found="an order by barriers only, which does not hold across proxies",
        at_run_time=f"`{second.text}` reads data of an earlier item: intermittent wrong results"
        if case.problem.first.kind == Kind.WRITE
        else f"`{second.text}` overwrites the stage before it is read: intermittent wrong results",
        suggestions=(
            f"add `fence async` after `{first.text}` and before {arrive}, in role "
            f"`{first.role}`{file_of(first.span)}",
        ),
    )


def phase_aliasing(case: Case[problems.PhaseAliasing]) -> Diagnostic:
    """PL0203: a wait or an arrival can be about another phase of its barrier."""
    problem, origin = case.problem, case.problem.action.origin
    stages = plural(case.stages[case.ring.name], "stage")
    if problem.action.kind == Kind.ARRIVE:
        can = "be counted for the phase before its own"
        text = "the phase before may be incomplete: this arrival is counted for it"
        expected = "every phase complete before an arrival for the next"
        found = "an arrival that can precede that"
    else:
        can = "be two phases away from its barrier"
        text = "the phase before the awaited one may be incomplete here"
        expected = "a wait at most one phase away from its barrier"
        found = "a wait that can be two phases away"
    if problem.lapped:
        text = "the phase after the awaited one may complete before this wait sees it"
    return case.report(
        f"phase aliasing: {origin.clause} can {can}",
        (origin.span, text),
        case.index.connection(case.ring).span,
        expected=expected,
        found=f"with {stages}, {found}",
        at_run_time="the role uses a stage that is still in use, or hangs",
        notes=case.notes(problem.target),
        suggestions=(f"let `{origin.owner}` wait for and release every item of `{origin.name}`",),
    )


def mixed_generations(case: Case[problems.MixedGenerations]) -> Diagnostic:
    """PL0303: a role can arrive twice at a named barrier before it completes once."""
    first, second = case.problem.origins
    return case.report(
        f"`{second.owner}` can arrive twice at named barrier `{qualified_name(first.end)}` before "
        f"`{first.owner}` arrives once",
        (second.span, "this arrival belongs to the next phase"),
        (first.span, "this one to the phase before; they are not ordered"),
        expected="every phase complete before an arrival for the next",
        found="arrivals of two phases that can mix",
        at_run_time="the barrier completes with arrivals of two phases: data race, then hang",
        suggestions=(
            f"use `sync {first.name}` in role `{second.role}`",
            "or add another barrier between the two arrivals",
        ),
    )


def deadlock(case: Case[problems.Deadlock]) -> Diagnostic:
    """PL0401: roles wait for each other in a cycle."""
    problem, index = case.problem, case.index
    steps = _steps(EventGraph(case.composition), problem.cycle)
    targets, channel_of = problem.targets, index.protocol.channel_of
    channels = [channel_of[target] for target in targets if target in channel_of]
    rings = dict.fromkeys(channel.name for channel in channels)
    parts = [f"{plural(case.stages[name], 'stage')} in `{name}`" for name in rings]
    names = sorted({index.connection(channel).name for channel in channels})
    named = sorted({target for target in targets if target not in channel_of})
    owners = list(dict.fromkeys(action.origin.owner for action in steps))
    return case.report(
        f"deadlock: {' and '.join(f'`{owner}`' for owner in owners)} wait for each other"
        if len(owners) > 1
        else f"deadlock: `{owners[0]}` waits for itself",
        *(
            (action.origin.span, "waits here" if action.kind in WAITS else "arrives only here")
            for action in steps
        ),
        *((index.connection(channel).span, "") for channel in channels),
        expected="a distance of at least 1 (stage or work tile) in every wait cycle",
        found=f"a distance of {problem.distance}" + (f" with {', '.join(parts)}" if parts else ""),
        at_run_time="the kernel always hangs",
        notes=case.notes(*targets),
        chain=_lines(steps),
        suggestions=_more_stages(case, channels)
        or ("reorder the operations of one of these roles so that it arrives before it waits",),
        subject=", ".join([*names, *named]),
    )


def _steps(graph: EventGraph, cycle: tuple[problems.Edge, ...]) -> list[Action]:
    """Return the actions on the cycle that wait or are waited for, in order of execution."""
    nodes = [node for node, _, _ in cycle]
    kept = []
    for place, node in enumerate(nodes):
        action = graph.actions[node]
        around = (nodes[place - 1], nodes[(place + 1) % len(nodes)])
        if action is not None and any(graph.actions[other] is None for other in around):
            kept.append(action)
    return kept


def _lines(steps: list[Action]) -> tuple[str, ...]:
    """Return the cycle backwards: which operation a role waits for, and why it is not reached."""
    lines = []
    for place in range(len(steps) - 1, -1, -1):
        action, earlier = steps[place], steps[place - 1]
        owner, text, cause = action.origin.owner, action.origin.text, earlier.origin.text
        if action.kind in WAITS and earlier.kind not in WAITS:
            lines.append(f"{owner} waits at `{text}` for `{cause}` of {earlier.origin.owner}")
        else:
            lines.append(f"{owner} reaches `{text}` only after `{cause}`")
    return tuple(lines)


def _more_stages(case: Case[problems.Deadlock], channels: list[Channel]) -> tuple[str, ...]:
    """Return the smallest stage counts that break the cycle, one ring at a time."""
    found = []
    for channel in {channel.name: channel for channel in channels}.values():
        have = case.stages[channel.name]
        most = HANDOVER_STAGES[1] if channel.kind == HANDOVER else have + MOST_STAGES - 1
        for stages in range(have + 1, most + 1):
            if is_live(case.index.protocol, {**case.stages, channel.name: stages}, case.work):
                more = (stages - have) * channel.stage_bytes
                allowed = case.index.program.port(channel.producer).stages.maximum
                found.append((more, _stages_help(channel, stages, more, allowed)))
                break
    return tuple(text for _, text in sorted(found))


def _stages_help(channel: Channel, stages: int, more: int, allowed: int) -> str:
    if channel.kind == RING and stages > allowed:
        edit = f"set `stages: {{min: {stages}, max: {stages}}}` on port `{channel.producer[1]}`"
    elif channel.kind == RING and channel.minimum != channel.maximum:
        edit = f"set `stages: {{min: {stages}}}` on port `{channel.producer[1]}`"
    else:
        edit = f"declare {plural(stages, 'stage')} for `{channel.name}`"
    return f"{edit} ({more:,} more bytes of shared memory)"


def starved_wait(case: Case[problems.StarvedWait]) -> Diagnostic:
    """PL0401: the last wait of a role is for an arrival that no role performs."""
    problem = case.problem
    origin, found, wanted = problem.action.origin, problem.found, problem.expected
    return report(
        problem.code,
        f"deadlock: the last `{origin.text}` of `{origin.owner}` never completes",
        (origin.span, f"the last one gets {found} of {wanted} arrivals"),
        (case.role(origin).where("prologue"), "one more before the first work tile"),
        expected=plural(wanted, "arrival"),
        found=plural(found, "arrival"),
        at_run_time="the kernel always hangs after its last work tile",
        suggestions=(
            f"let the other roles of `{origin.name}` arrive once more, in a prologue or epilogue",
        ),
        subject=qualified_name(origin.end),
    )
