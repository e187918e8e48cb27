"""Why does it not fit, who holds what, and what would help?

Arithmetic first: every resource that falls short is a finding of its own, all at once.  Only what
arithmetic cannot see (fragmentation, groupings) asks the solver, and "unknown" is said as such.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels
from pipelink_rules.diagnostics.wording import list_of
from pipelink_rules.model.placement import BARRIER_TABLE, PlacementProblem
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place.greedy import ids
from pipelink_rules.place.infeasible_launch import launch_shortages, per_sm, ungroupable
from pipelink_rules.place.rectangles import (
    Rectangle,
    bound,
    column_limit,
    column_rectangles,
    live_bytes,
    minimum_stages,
    rectangles,
)
from pipelink_rules.place.relaxations import (
    only_launch,
    only_named,
    only_shared,
    only_tensor,
    shared_relaxations,
    tensor_changes,
)
from pipelink_rules.place.solve import solve
from pipelink_rules.solver.session import UNKNOWN, UNSAT, Session
from pipelink_rules.solver.text import Text

SHOWN = 8  # holders listed one by one
MINIMIZE = 12  # questions spent on making the core smaller


def infeasibilities(problem: PlacementProblem, rlimit: int) -> tuple[Diagnostic, ...]:
    """What arithmetic alone refuses: one finding per resource, with changes that would fit."""
    return (
        *_shared(problem, rlimit),
        *columns_exceeded(problem, lambda: tensor_changes(problem, rlimit)),
        *_named(problem),
        *launch_shortages(problem, rlimit),
    )


def refused(problem: PlacementProblem, rlimit: int) -> tuple[Diagnostic, ...]:
    """Why the solver found nothing: the resources, each asked alone."""
    verdicts = {
        "shared memory": solve(only_shared(problem), None, rlimit),
        "named barriers": solve(only_named(problem), None, rlimit),
        "warps and registers": solve(only_launch(problem), None, rlimit),
    }
    if problem.tensor:
        verdicts["tensor memory"] = solve(only_tensor(problem), None, rlimit)
    refusals = {
        "shared memory": _fragmented,
        "tensor memory": columns_fragmented,
        "named barriers": _uncolorable,
        "warps and registers": ungroupable,
    }
    found = [
        refusals[resource](problem, rlimit)
        for resource, verdict in verdicts.items()
        if verdict == UNSAT
    ]
    unknown = [resource for resource, verdict in verdicts.items() if verdict == UNKNOWN]
    if unknown or not found:
        found.append(_unknown(problem, unknown, rlimit))
    return tuple(found)


def lifetime_name(problem: PlacementProblem, index: int) -> str:
    """A phase as it is quoted."""
    return f"phase `{problem.lifetimes[index]}`"


# Shared memory


def _shared(problem: PlacementProblem, rlimit: int) -> Iterator[Diagnostic]:
    items = rectangles(problem, minimum_stages(problem))
    limit = TARGETS[problem.target].shared_limit(problem.occupancy)
    most, phase = bound(items)
    if most <= limit:
        return
    holders = sorted(
        (item for item in items if item.lifetimes >> phase & 1),
        key=lambda item: (-item.bytes, item.name),
    )
    where = lifetime_name(problem, phase)
    notes = [_holder(problem, item) for item in holders[:SHOWN]]
    if len(holders) > SHOWN:
        rest = sum(item.bytes for item in holders[SHOWN:])
        notes.append(f"and {len(holders) - SHOWN} smaller items, {rest:,} bytes")
    notes += [
        f"{lifetime_name(problem, other)} is over the limit too: {size:,} bytes"
        for other, size in sorted(live_bytes(items).items())
        if size > limit and other != phase
    ]
    suggestions = shared_relaxations(problem, rlimit) or (
        f"use smaller tiles: the items alive in {where} must lose "
        f"{most - limit:,} bytes, and no smaller stage count or occupancy gives them",
    )
    yield Diagnostic(
        "PL0101",
        f"`{problem.name}` needs {most:,} bytes of shared memory in {where}",
        labels((problem.span, ""), *_holder_spans(problem, holders)),
        expected=f"at most {limit:,} bytes ({per_sm(problem)})",
        found=f"{most:,} bytes, {most - limit:,} too many, every channel at its minimum of stages",
        notes=tuple(notes),
        suggestions=suggestions,
        subject="shared memory",
    )


def _holder(problem: PlacementProblem, item: Rectangle) -> str:
    if item.name == BARRIER_TABLE:
        return f"mbarriers: {item.bytes:,} bytes = {item.bytes // 8} x 8"
    source = next(entry for entry in problem.items if entry.name == item.name)
    if not source.channel:
        return f"{item.name}: {item.bytes:,} bytes"
    times = f"{item.bytes // source.bytes} x {source.bytes:,}"
    of = "" if source.channel == item.name else f", stages of {source.channel}"
    return f"{item.name}: {item.bytes:,} bytes = {times}{of}"


def _holder_spans(
    problem: PlacementProblem, holders: list[Rectangle]
) -> list[tuple[Span | None, str]]:
    spans = {item.name: item.span for item in problem.items}
    return [(spans.get(h.name), f"`{h.name}` holds {h.bytes:,} bytes") for h in holders[:SHOWN]]


def _fragmented(problem: PlacementProblem, rlimit: int) -> Diagnostic:
    items = rectangles(problem, minimum_stages(problem))
    limit = TARGETS[problem.target].shared_limit(problem.occupancy)
    most, phase = bound(items)
    names = conflict_core(items, limit, rlimit)
    by_name = {item.name: item for item in items}
    odd = [item for item in items if item.bytes % item.align]
    suggestions = list(shared_relaxations(problem, rlimit))
    if odd:
        listed = list_of(item.name for item in odd[:SHOWN])
        suggestions.append(f"round sizes up to their alignment, so that no gaps arise: {listed}")
    return Diagnostic(
        "PL0102",
        f"the shared memory of `{problem.name}` fits by its bytes but has no layout",
        labels((problem.span, ""), *_holder_spans(problem, [by_name[n] for n in names])),
        expected=f"a layout within {limit:,} bytes ({per_sm(problem)})",
        found=f"{most:,} bytes alive in {lifetime_name(problem, phase)}, but alignments leave gaps",
        notes=tuple(
            f"{_holder(problem, by_name[n])}, aligned to {by_name[n].align}" for n in names[:SHOWN]
        ),
        suggestions=tuple(suggestions) or ("use smaller tiles or smaller alignments",),
        subject="shared memory",
    )


def conflict_core(items: Sequence[Rectangle], limit: int, rlimit: int) -> tuple[str, ...]:
    """Names of items that no layout holds together, the biggest first; empty where not shown.

    One literal per item stands for "inside the limit"; that the others do not overlap is given.
    The smallest items are dropped first, so that the message names the big ones.
    """
    ordered = sorted(items, key=lambda item: (-item.bytes, item.name))
    session = Session(_core_text(ordered, limit), rlimit)
    verdict, found = session.core([f"b{index}" for index in range(len(ordered))])
    if verdict != UNSAT:
        return ()
    kept = sorted(int(literal[1:]) for literal in found)
    for index in sorted(kept, reverse=True)[:MINIMIZE]:
        rest = [f"b{other}" for other in kept if other != index]
        verdict, smaller = session.core(rest)
        if verdict == UNSAT:
            kept = sorted(int(literal[1:]) for literal in smaller)
    return tuple(ordered[index].name for index in kept)


def _core_text(items: Sequence[Rectangle], limit: int) -> str:
    text = Text()
    for index, item in enumerate(items):
        text.optional(f"b{index}", f"k{index}", 0, (limit - item.bytes) // item.align)
    for (i, one), (j, other) in itertools.combinations(enumerate(items), 2):
        if one.lifetimes & other.lifetimes:
            low, high = f"(* {one.align} k{i})", f"(* {other.align} k{j})"
            text.apart((low, f"(+ {low} {one.bytes})"), (high, f"(+ {high} {other.bytes})"))
    return str(text)


# Named barriers


def _named(problem: PlacementProblem) -> Iterator[Diagnostic]:
    count = len(ids(problem))
    alive = {
        phase: sorted(need.name for need in problem.barriers if need.lifetimes >> phase & 1)
        for phase in range(len(problem.lifetimes))
    }
    phase = min(alive, key=lambda index: (-len(alive[index]), index))
    names, where = alive[phase], f"in {lifetime_name(problem, phase)}"
    if len(names) <= count:
        names, where = _crowd(problem), "that meet each other in pairs"
    if len(names) <= count:
        return
    spans = {need.name: need.span for need in problem.barriers}
    yield Diagnostic(
        "PL0103",
        f"`{problem.name}` keeps {len(names)} named barriers {where}",
        labels((problem.span, ""), *((spans[name], f"`{name}`") for name in names[:SHOWN])),
        expected=f"at most {count}: ids {_ranges(ids(problem))}",
        found=f"{len(names)}: {', '.join(names)}",
        suggestions=(
            f"use {len(names) - count} fewer of them: an mbarrier can take the place of a named "
            "barrier, and there are as many as shared memory holds",
        ),
        subject="named barriers",
    )


def _crowd(problem: PlacementProblem) -> list[str]:
    """A large set of barriers of which every two share a phase, though no phase holds them all."""
    masks = {need.name: need.lifetimes for need in problem.barriers}
    meets = {
        name: {other for other in masks if other != name and masks[other] & masks[name]}
        for name in masks
    }
    best: list[str] = []
    for first in sorted(masks, key=lambda name: (-len(meets[name]), name)):
        crowd, rest = [first], meets[first]
        while rest:
            following = min(rest, key=lambda name: (-len(meets[name] & rest), name))
            crowd.append(following)
            rest = rest & meets[following]
        if len(crowd) > len(best):
            best = sorted(crowd)
    return best


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}..{r[-1]}" for r in runs)


def _uncolorable(problem: PlacementProblem, rlimit: int) -> Diagnostic:
    return Diagnostic(
        "PL0103",
        f"the named barriers of `{problem.name}` cannot share the ids there are",
        labels((problem.span, "")),
        expected=f"an assignment to ids {_ranges(ids(problem))}",
        found="no phase has too many of them, but no assignment serves all phases",
        suggestions=("let a barrier that returns after a pause live through the phases between",),
        subject="named barriers",
    )


def _unknown(problem: PlacementProblem, resources: list[str], rlimit: int) -> Diagnostic:
    items = rectangles(problem, minimum_stages(problem))
    limit = TARGETS[problem.target].shared_limit(problem.occupancy)
    what = ", ".join(resources) or "all resources together"
    return Diagnostic(
        "PL0105",
        f"no placement of `{problem.name}` was found within the solver's budget",
        labels((problem.span, "")),
        expected="a placement, or a proof that there is none",
        found=f"neither, for {what}, after {rlimit:,} units per question",
        notes=(
            "this is no proof that it does not fit",
            f"the fullest phase holds {bound(items)[0]:,} of {limit:,} bytes",
        ),
        suggestions=(
            "round the sizes of items up to their alignments: mixed sizes are what is hard",
            "raise the budget (`rlimit`)",
        ),
        subject=what,
    )


# Tensor memory


def columns_exceeded(
    problem: PlacementProblem, suggestions: Callable[[], tuple[str, ...]]
) -> Iterator[Diagnostic]:
    """PL0801 where the columns alive in one phase exceed the largest allocation."""
    needs = column_rectangles(problem, minimum_stages(problem))
    most, phase = bound(needs)
    limit = column_limit(problem)
    if most <= limit:
        return
    holders = sorted(
        (need for need in needs if need.lifetimes >> phase & 1),
        key=lambda need: (-need.bytes, need.name),
    )
    yield _columns_refused(problem, holders, most, lifetime_name(problem, phase), suggestions())


def columns_fragmented(problem: PlacementProblem, rlimit: int) -> Diagnostic:
    """PL0801 where every phase fits alone, but no layout serves all of them."""
    needs = column_rectangles(problem, minimum_stages(problem))
    most, phase = bound(needs)
    return _columns_refused(problem, list(needs), most, lifetime_name(problem, phase), ())


def _columns_refused(
    problem: PlacementProblem,
    holders: list[Rectangle],
    most: int,
    where: str,
    suggestions: tuple[str, ...],
) -> Diagnostic:
    """PL0801: who holds what of the tensor memory that does not suffice."""
    spans = {need.name: need.span for need in problem.tensor}
    limit, target = column_limit(problem), TARGETS[problem.target]
    share = f", {problem.occupancy} CTAs per SM" if problem.occupancy > 1 else ""
    return Diagnostic(
        "PL0801",
        f"`{problem.name}` needs {most} columns of tensor memory in {where}",
        labels(
            (problem.span, ""),
            *((spans[h.name], f"`{h.name}` holds {h.bytes} columns") for h in holders[:SHOWN]),
        ),
        expected=f"an allocation of at most {limit} columns "
        f"({target.name}: {target.tmem_columns} per SM{share}; powers of two from 32 up)",
        found=f"{most} columns, {most - limit} too many, every channel at its minimum of stages"
        if most > limit
        else f"{most} columns alive at once, but no layout of all phases",
        notes=tuple(_column_holder(problem, holder) for holder in holders[:SHOWN]),
        suggestions=suggestions or ("use a smaller tile: its accumulator has fewer columns",),
        subject="tensor memory",
    )


def _column_holder(problem: PlacementProblem, need: Rectangle) -> str:
    source = next(item for item in problem.tensor if item.name == need.name)
    times = f" = {need.bytes // source.columns} x {source.columns}" if source.channel else ""
    return f"{need.name}: {need.bytes} columns{times}"
