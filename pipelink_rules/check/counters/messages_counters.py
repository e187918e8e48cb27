"""How is a problem of counters or scratch memory told?  Problem -> Diagnostic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipelink_rules.check.counters.analyze_group import (
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
from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels
from pipelink_rules.diagnostics.wording import plural


def to_diagnostic(
    index: ProgramIndex, numbered: TileNumbering, problem: GroupProblem
) -> Diagnostic:
    """The finding of a problem in a group of items."""
    return _MESSAGES[type(problem)](index, numbered, problem)


def _place(numbered: TileNumbering, item: int) -> str:
    return f"{numbered.field.name}={item}"


def _signals(index: ProgramIndex, problem: WaitProblem) -> tuple[int, int, str]:
    """Signals wanted and made, and the port that makes them."""
    target = problem.first.target
    instance, _, name = target.partition(".")
    arrivals = max(index.contracts[instance].port(name).arrivals.literal or 1, 1)
    return -(-problem.expected // arrivals), problem.made // arrivals, target


def _never(index: ProgramIndex, numbered: TileNumbering, problem: EndlessWait) -> Diagnostic:
    wanted, made, target = _signals(index, problem)
    origin = problem.first.origin
    return _finding(
        "PL0403",
        f"`{origin.owner}` waits for {plural(wanted, 'signal')} at `{target}`, "
        f"where all items of a {numbered.group} make {made}",
        numbered,
        problem,
        says=(f"with {_place(numbered, problem.item)}: {wanted}", ""),
        expected=f"at most {plural(made, 'signal')} to wait for",
        found=str(wanted),
        run="the wait never ends: the kernel hangs",
        suggestions=(f"wait for {made}, or let more items signal",),
        subject=f"{origin.owner}: {target}",
    )


def _later(index: ProgramIndex, numbered: TileNumbering, problem: WaitForLaterItem) -> Diagnostic:
    wanted, made, target = _signals(index, problem)
    origin, item = problem.first.origin, problem.item
    return _finding(
        "PL0401",
        f"`{origin.owner}` waits at `{target}` for work items that come after its own",
        numbered,
        problem,
        says=(f"with {_place(numbered, item)}: {wanted}, of which {made} come before", ""),
        expected=f"at most {plural(made, 'signal')}: those of items with a lower {_name(numbered)}",
        found=str(wanted),
        run="a CTA takes its items in order: it waits for what it would do itself later",
        suggestions=(
            "wait for items of lower numbers only",
            "or let the schedule deal this item later",
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
    here = "of one item" if a == b else f"of the items {_place(numbered, a)} and {b}"
    return _finding(
        "PL0507",
        f"two accesses of scratch memory `{problem.first.target}` are in no order",
        numbered,
        problem,
        says=(f"with {_place(numbered, a)}", f"with {_place(numbered, b)}"),
        expected=f"{first.clause} before {second.clause}, by a signal after the one and an until "
        "before the other",
        found=f"no order {here}",
        run="other CTAs have written their part or not: wrong results, at times",
        suggestions=(
            "signal after the access, and wait for that signal before the other one",
            "or give items pieces of their own: `write S[FIELD, PIECE]`",
        ),
        subject=problem.first.target,
    )


def _unfenced(
    index: ProgramIndex, numbered: TileNumbering, problem: UnfencedAccesses
) -> Diagnostic:
    first, second = problem.first.origin, problem.second.origin
    return _finding(
        "PL0502",
        f"no proxy fence lies between {first.clause} and {second.clause}",
        numbered,
        problem,
        says=("a generic access", "by the asynchronous proxy"),
        expected="`fence global` between the access and the signal, or between until and copy",
        found="none",
        run="the copy may move what was there before",
        suggestions=(f"add `fence global` before `{second.text}`, after its until",),
        subject=problem.first.target,
    )


def _incomplete(
    index: ProgramIndex, numbered: TileNumbering, problem: IncompleteStore
) -> Diagnostic:
    first, second = problem.first.origin, problem.second.origin
    return _finding(
        "PL0505",
        f"{first.clause} may not be complete when its item signals",
        numbered,
        problem,
        says=("a bulk copy", "by another item, which waited for the signal"),
        expected="`await store 0 full` between the store and the signal",
        found="no such await",
        run=f"{second.clause} meets old data, at times",
        suggestions=(
            "add `await store 0 full` before the signal: reading its source is not enough",
        ),
        subject=problem.first.target,
    )


def _unwritten(
    index: ProgramIndex, numbered: TileNumbering, problem: UnwrittenScratch
) -> Diagnostic:
    origin = problem.first.origin
    instance, _, name = problem.first.target.partition(".")
    port = index.contracts[instance].port(name)
    return Diagnostic(
        "PL0508",
        f"`{origin.owner}` reads scratch memory `{problem.first.target}` that nobody has written",
        labels(
            (origin.span, f"with {_place(numbered, problem.item)}"),
            (port.where("init"), "nobody clears it"),
            (numbered.field.span, f"{plural(numbered.times, 'item')} of each {numbered.group}"),
        ),
        expected="a write of every piece before it, or `init: zero`",
        found=f"init: {port.init}",
        at_run_time="what an earlier launch left there is taken for data",
        suggestions=(
            "leave the read out where nothing was written: `repeat:` with a count of 0",
            "or set `init: zero`: the launcher then clears it before every launch",
        ),
        subject=problem.first.target,
    )


def _finding(
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
    return Diagnostic(
        code,
        message,
        labels(
            (problem.first.origin.span, says[0]),
            (second, says[1]),
            (numbered.field.span, f"{plural(numbered.times, 'item')} of each {numbered.group}"),
        ),
        expected=expected,
        found=found,
        at_run_time=run,
        suggestions=suggestions,
        subject=subject,
    )


def undecidable(problem: Undecidable, target: str) -> Diagnostic:
    """PL1005 where what an item does at a counter does not follow from the schedule."""
    op, owner = problem.op, f"{problem.instance}.{problem.role.name}"
    clause = problem.clause
    return Diagnostic(
        "PL1005",
        f"how often `{owner}` does `{op.verb} {op.target}{op.piece}` does not follow from the "
        "schedule",
        labels(
            (clause.span if clause else None, problem.reason),
            (op.span, "this operation"),
        ),
        expected="a count over parameters and the field that numbers the items",
        found=clause.text if clause else problem.reason,
        suggestions=("move it out of the loop, or let the schedule number the items",),
        subject=f"{owner}: {target}",
    )


# Every class of problem has a function of its own, which takes this class.
_MESSAGES: dict[type[GroupProblem], Callable[[ProgramIndex, TileNumbering, Any], Diagnostic]] = {
    EndlessWait: _never,
    WaitForLaterItem: _later,
    UnorderedAccesses: _unordered,
    UnfencedAccesses: _unfenced,
    IncompleteStore: _incomplete,
    UnwrittenScratch: _unwritten,
}
