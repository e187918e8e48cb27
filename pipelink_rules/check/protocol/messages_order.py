"""Diagnostics about order: races, missing fences and phase aliasing."""

from pipelink_rules.check.program_index import qualified_name
from pipelink_rules.check.protocol import protocol_problems as problems
from pipelink_rules.check.protocol.message_parts import Case, damage, file_of, pair
from pipelink_rules.check.protocol.model import READS, Kind
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.diagnostics.wording import plural


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
