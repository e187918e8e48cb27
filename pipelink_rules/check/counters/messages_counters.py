"""Diagnostics about counters and scratch memory: GroupProblem -> Diagnostic."""

from collections.abc import Callable
from typing import Any

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
    WaitProblem,
)
from pipelink_rules.check.counters.counter_groups import TileNumbering, Undecidable
from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import plural


def to_diagnostic(
    index: ProgramIndex, numbered: TileNumbering, problem: GroupProblem
) -> Diagnostic:
    """Return the diagnostic of a problem in a counter group."""
    return _MESSAGES[type(problem)](index, numbered, problem)


def _place(numbered: TileNumbering, item: int) -> str:
    return f"{numbered.field.name}={item}"


def _signals(index: ProgramIndex, problem: WaitProblem) -> tuple[int, int, str]:
    """Return the signals that are waited for and performed, and the port that signals."""
    target = problem.first.target
    instance, _, name = target.partition(".")
    arrivals = max(index.contracts[instance].port(name).arrivals.literal or 1, 1)
    return -(-problem.expected // arrivals), problem.made // arrivals, target


def _never(index: ProgramIndex, numbered: TileNumbering, problem: EndlessWait) -> Diagnostic:
    wanted, made, target = _signals(index, problem)
    origin = problem.first.origin
    return _diagnostic(
        "PL0403",
        f"`{origin.owner}` waits for {plural(wanted, 'signal')} on `{target}`, but a "
        f"{numbered.group} produces only {made}",
        numbered,
        problem,
        says=(f"with {_place(numbered, problem.item)}: {plural(wanted, 'signal')}", ""),
        expected=f"at most {plural(made, 'signal')}",
        found=plural(wanted, "signal"),
        run="the wait never completes: the kernel always hangs",
        suggestions=(f"wait for {plural(made, 'signal')}", "or add signals"),
        subject=f"{origin.owner}: {target}",
    )


def _later(index: ProgramIndex, numbered: TileNumbering, problem: WaitForLaterItem) -> Diagnostic:
    wanted, made, target = _signals(index, problem)
    origin, item = problem.first.origin, problem.item
    return _diagnostic(
        "PL0401",
        f"deadlock: `{origin.owner}` waits on `{target}` for tiles that are processed after its "
        f"own",
        numbered,
        problem,
        says=(
            f"with {_place(numbered, item)}: {plural(wanted, 'signal')}, of which {made} precede",
            "",
        ),
        expected=f"at most {plural(made, 'signal')}: those of tiles with a lower {_name(numbered)}",
        found=plural(wanted, "signal"),
        run="a CTA waits for a tile that it would process later: hang",
        suggestions=(
            f"wait only for tiles with a lower {_name(numbered)}",
            "or assign this tile later in the tile scheduler",
        ),
        subject=f"{origin.owner}: {target}",
    )


def _name(numbered: TileNumbering) -> str:
    return f"`{numbered.field.name}`"


def _unordered(
    index: ProgramIndex, numbered: TileNumbering, problem: UnorderedAccesses
) -> Diagnostic:
    first, second = problem.first.origin, problem.second.origin
    a, b = problem.items
    pair = "in one tile" if a == b else f"between {_place(numbered, a)} and {b}"
    return _diagnostic(
        "PL0507",
        f"data race between CTAs on scratch memory `{problem.first.target}`",
        numbered,
        problem,
        says=(f"with {_place(numbered, a)}", f"with {_place(numbered, b)}"),
        expected=f"a `signal` after {first.clause} and a `wait_until` before {second.clause}",
        found=f"no order {pair}",
        run="the read can precede another CTA's write: intermittent wrong results"
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
    return _diagnostic(
        "PL0502",
        f"missing `fence global` between {first.clause} and {second.clause}",
        numbered,
        problem,
        says=("generic proxy", "asynchronous proxy"),
        expected="`fence global` before the `signal`, or between `wait_until` and the copy",
        found="none",
        run="the copy moves data of an earlier item: intermittent wrong results",
        suggestions=(f"add `fence global` before `{second.text}`, after its `wait_until`",),
        subject=problem.first.target,
    )


def _incomplete(
    index: ProgramIndex, numbered: TileNumbering, problem: IncompleteStore
) -> Diagnostic:
    first, second = problem.first.origin, problem.second.origin
    return _diagnostic(
        "PL0505",
        f"{first.clause} may be incomplete when its role signals",
        numbered,
        problem,
        says=("a bulk copy", "in another tile, after the signal"),
        expected="`await store 0 full` between the store and the signal",
        found="none",
        run=f"{second.clause} reads data of an earlier item: intermittent wrong results",
        suggestions=("add `await store 0 full` before the `signal`",),
        subject=problem.first.target,
    )


def _unwritten(
    index: ProgramIndex, numbered: TileNumbering, problem: UnwrittenScratch
) -> Diagnostic:
    origin = problem.first.origin
    instance, _, name = problem.first.target.partition(".")
    port = index.contracts[instance].port(name)
    return report(
        "PL0508",
        f"`{origin.owner}` reads uninitialized scratch memory `{problem.first.target}`",
        (origin.span, f"with {_place(numbered, problem.item)}"),
        (port.where("init"), "not cleared"),
        (
            numbered.field.span,
            f"{plural(numbered.times, 'tile')} per value of `{numbered.group}`",
        ),
        expected="a write of every slice before the read, or `init: zero`",
        found=f"`init: {port.init}`",
        at_run_time="reads data of an earlier launch: wrong results",
        suggestions=(
            "set `init: zero`: the launcher clears the memory before every launch",
            "or skip the read where nothing is written, with a `repeat:` of count 0",
        ),
        subject=problem.first.target,
    )


def _diagnostic(
    code: str,
    message: str,
    numbered: TileNumbering,
    problem: WaitProblem | AccessProblem,
    *,
    says: tuple[str, str],
    expected: str,
    found: str,
    run: str,
    suggestions: tuple[str, ...],
    subject: str,
) -> Diagnostic:
    second = problem.second.origin.span if isinstance(problem, AccessProblem) else None
    return report(
        code,
        message,
        (problem.first.origin.span, says[0]),
        (second, says[1]),
        (
            numbered.field.span,
            f"{plural(numbered.times, 'tile')} per value of `{numbered.group}`",
        ),
        expected=expected,
        found=found,
        at_run_time=run,
        suggestions=suggestions,
        subject=subject,
    )


def undecidable(problem: Undecidable, target: str) -> Diagnostic:
    """PL1005: the tile scheduler does not determine what a tile does with a counter."""
    op, owner = problem.op, f"{problem.instance}.{problem.role.name}"
    clause = problem.clause
    return report(
        "PL1005",
        f"cannot determine how often `{owner}` performs `{op.verb} {op.target}{op.piece}`",
        (clause.span if clause else None, problem.reason),
        (op.span, "this operation"),
        expected="a count over parameters and the field that numbers the tiles",
        found=clause.text if clause else problem.reason,
        suggestions=("move it out of the loop", "or number the tiles in the tile scheduler"),
        subject=f"{owner}: {target}",
    )


# Each function takes its class of problem.
_MESSAGES: dict[type[GroupProblem], Callable[[ProgramIndex, TileNumbering, Any], Diagnostic]] = {
    EndlessWait: _never,
    WaitForLaterItem: _later,
    UnorderedAccesses: _unordered,
    UnfencedAccesses: _unfenced,
    IncompleteStore: _incomplete,
    UnwrittenScratch: _unwritten,
}
