"""Diagnostics about counters and scratch memory: GroupProblem -> Diagnostic."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack

from pipelink_rules.check.counters.analyze_group import (
    READ,
    AccessProblem,
    EndlessWait,
    GroupProblem,
    IncompleteStore,
    UnfencedAccesses,
    UnorderedAccesses,
    UnwrittenScratch,
    WaitForLaterItem,
    WaitForSameTile,
    WaitProblem,
)
from pipelink_rules.check.counters.counter_groups import (
    TileNumbering,
    Undecidable,
    defining_port,
    port_named,
)
from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.diagnostics.diagnostic import Clauses, Diagnostic, labels, report
from pipelink_rules.diagnostics.wording import plural


def to_diagnostic(
    index: ProgramIndex, numbered: TileNumbering, problem: GroupProblem
) -> Diagnostic:
    """Return the diagnostic of a problem in a counter group."""
    return _MESSAGES[type(problem)](index, numbered, problem)


def _report(
    code: str,
    message: str,
    numbered: TileNumbering,
    problem: WaitProblem | AccessProblem,
    says: tuple[str, str],
    **clauses: Unpack[Clauses],
) -> Diagnostic:
    """Return a diagnostic with labels at the clauses and at the field that numbers the tiles."""
    second = problem.second.origin.span if isinstance(problem, AccessProblem) else None
    numbers = numbered.field.span, _numbers(numbered)
    return report(
        code, message, (problem.first.origin.span, says[0]), (second, says[1]), numbers, **clauses
    )


def _numbers(numbered: TileNumbering) -> str:
    return f"{plural(numbered.times, 'tile')} per value of `{numbered.group}`"


def _place(numbered: TileNumbering, item: int) -> str:
    return f"with {numbered.field.name}={item}"


def _signals(index: ProgramIndex, problem: WaitProblem) -> tuple[str, int]:
    """Return the signals that are waited for, as text, and those that are performed."""
    arrivals = max(port_named(index, problem.first.target).arrivals.literal or 1, 1)
    return plural(-(-problem.expected // arrivals), "signal"), problem.made // arrivals


def _never(index: ProgramIndex, numbered: TileNumbering, problem: EndlessWait) -> Diagnostic:
    wanted, made = _signals(index, problem)
    target = problem.first.target
    owner = problem.first.origin.owner
    return _report(
        "PL0403",
        f"`{owner}` waits for {wanted} on `{target}`, but a {numbered.group} produces only {made}",
        numbered,
        problem,
        (f"{_place(numbered, problem.item)}: {wanted}", ""),
        expected=f"at most {plural(made, 'signal')}",
        found=wanted,
        at_run_time="the wait never completes: the kernel always hangs",
        suggestions=(f"wait for {plural(made, 'signal')}", "or add signals"),
        subject=f"{owner}: {target}",
    )


def _later(index: ProgramIndex, numbered: TileNumbering, problem: WaitForLaterItem) -> Diagnostic:
    wanted, made = _signals(index, problem)
    target = problem.first.target
    owner, lower = problem.first.origin.owner, f"tiles with a lower `{numbered.field.name}`"
    return _report(
        "PL0401",
        f"deadlock: `{owner}` waits on `{target}` for tiles that are processed after its own",
        numbered,
        problem,
        (f"{_place(numbered, problem.item)}: {wanted}, of which {made} precede", ""),
        expected=f"at most {plural(made, 'signal')}: those of {lower}",
        found=wanted,
        at_run_time="a CTA waits for a tile that it would process later: hang",
        suggestions=(f"wait only for {lower}", "or assign this tile later in the tile scheduler"),
        subject=f"{owner}: {target}",
    )


def _same_tile(
    index: ProgramIndex, numbered: TileNumbering, problem: WaitForSameTile
) -> Diagnostic:
    wanted, made = _signals(index, problem)
    target, signal = problem.first.target, problem.signal
    owner, lower = problem.first.origin.owner, f"tiles with a lower `{numbered.field.name}`"
    found = _report(
        "PL0401",
        f"deadlock: `{owner}` waits on `{target}` for {signal.clause} in the same tile",
        numbered,
        problem,
        (f"{_place(numbered, problem.item)}: {wanted}", ""),
        expected=f"at most {plural(made, 'signal')}: those of {lower}",
        found=wanted,
        at_run_time="the signal is performed only after the wait: the kernel always hangs",
        suggestions=(f"move {signal.clause} before the wait", f"or wait only for {lower}"),
        subject=f"{owner}: {target}",
    )
    return replace(found, labels=(*found.labels, *labels((signal.span, "only after the wait"))))


def _unordered(
    index: ProgramIndex, numbered: TileNumbering, problem: UnorderedAccesses
) -> Diagnostic:
    first, second = problem.first.origin, problem.second.origin
    a, b = problem.items
    pair = "in one tile" if a == b else f"between {numbered.field.name}={a} and {b}"
    return _report(
        "PL0507",
        f"data race between CTAs on scratch memory `{problem.first.target}`",
        numbered,
        problem,
        (_place(numbered, a), _place(numbered, b)),
        expected=f"a `signal` after {first.clause} and a `wait_until` before {second.clause}",
        found=f"no order {pair}",
        at_run_time="the read can precede another CTA's write: intermittent wrong results"
        if READ in (problem.first.kind, problem.second.kind)
        else "the result depends on which CTA writes last: intermittent wrong results",
        suggestions=(
            f"add a `signal` after `{first.text}` and wait for it before `{second.text}`",
            "or write separate slices: `write S[FIELD, SLICE]`",
        ),
        subject=problem.first.target,
    )


def _unfenced(
    index: ProgramIndex, numbered: TileNumbering, problem: UnfencedAccesses
) -> Diagnostic:
    first, second = problem.first.origin, problem.second.origin
    return _report(
        "PL0502",
        f"missing `fence global` between {first.clause} and {second.clause}",
        numbered,
        problem,
        ("generic proxy", "asynchronous proxy"),
        expected="`fence global` before the `signal`, or between `wait_until` and the copy",
        found="none",
        at_run_time="the copy moves data of an earlier item: intermittent wrong results",
        suggestions=(f"add `fence global` before `{second.text}`, after its `wait_until`",),
        subject=problem.first.target,
    )


def _incomplete(
    index: ProgramIndex, numbered: TileNumbering, problem: IncompleteStore
) -> Diagnostic:
    first, second = problem.first.origin, problem.second.origin
    return _report(
        "PL0505",
        f"{first.clause} may be incomplete when its role signals",
        numbered,
        problem,
        ("a bulk copy", "in another tile, after the signal"),
        expected="`await store 0 full` between the store and the signal",
        found="none",
        at_run_time=f"{second.clause} reads data of an earlier item: intermittent wrong results",
        suggestions=("add `await store 0 full` before the `signal`",),
        subject=problem.first.target,
    )


def _unwritten(
    index: ProgramIndex, numbered: TileNumbering, problem: UnwrittenScratch
) -> Diagnostic:
    origin, target = problem.first.origin, problem.first.target
    port = port_named(index, target)
    return report(
        "PL0508",
        f"`{origin.owner}` reads uninitialized scratch memory `{target}`",
        (origin.span, _place(numbered, problem.item)),
        (port.where("init"), "not cleared"),
        (numbered.field.span, _numbers(numbered)),
        expected="a write of every slice before the read, or `init: zero`",
        found=f"`init: {port.init}`",
        at_run_time="reads data of an earlier launch: wrong results",
        suggestions=(
            "set `init: zero`: the launcher clears the memory before every launch",
            "or skip the read where nothing is written, with a `repeat:` of count 0",
        ),
        subject=target,
    )


def undecidable(index: ProgramIndex, problem: Undecidable) -> Diagnostic:
    """PL1005: the tile scheduler does not determine what a tile does with a counter."""
    op, owner = problem.op, f"{problem.instance}.{problem.role.name}"
    name = op.source if op.verb in ("copy", "store") else op.target
    return report(
        "PL1005",
        f"cannot determine how often `{owner}` performs `{op.verb} {op.target}{op.piece}`",
        (problem.clause.span, problem.reason),
        (op.span, "this operation"),
        expected="a count over parameters and the field that numbers the tiles",
        found=problem.clause.text,
        suggestions=("move it out of the loop", "or number the tiles in the tile scheduler"),
        subject=f"{owner}: {defining_port(index, (problem.instance, name))}",
    )


# Each function takes its class of problem.
_MESSAGES: dict[type[GroupProblem], Callable[[ProgramIndex, TileNumbering, Any], Diagnostic]] = {
    EndlessWait: _never,
    WaitForLaterItem: _later,
    WaitForSameTile: _same_tile,
    UnorderedAccesses: _unordered,
    UnfencedAccesses: _unfenced,
    IncompleteStore: _incomplete,
    UnwrittenScratch: _unwritten,
}
