"""Diagnostics for a problem without a placement: what exceeds a limit, what uses it, what fits.

Arithmetic comes first and reports every exceeded resource in one run.  Only what it cannot see
(fragmentation, groupings) is left to the solver, whose answer "unknown" is reported as unknown.
"""

import itertools
from collections.abc import Iterator, Sequence

from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.placement import (
    BARRIER_TABLE,
    PlacementProblem,
    RoleRequest,
)
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import relaxations, warps
from pipelink_rules.place.advice import Advisor
from pipelink_rules.place.greedy import ids
from pipelink_rules.place.rectangles import (
    Rectangle,
    bound,
    column_limit,
    column_rectangles,
    live_bytes,
    minimum_stages,
    rectangles,
)
from pipelink_rules.place.solve import solve
from pipelink_rules.place.warps import GROUP
from pipelink_rules.solver.session import UNKNOWN, UNSAT, Session
from pipelink_rules.solver.text import Text

SHOWN = 8  # allocations listed one by one
MINIMIZE = 12  # solver calls spent on making the core smaller


def infeasibilities(advisor: Advisor) -> tuple[Diagnostic, ...]:
    """Return what arithmetic alone excludes: one error per resource, with changes that fit."""
    return (*_shared(advisor), *_columns(advisor), *_named(advisor), *_launch(advisor))


def refused(advisor: Advisor) -> tuple[Diagnostic, ...]:
    """Return why the solver found no placement: each resource is solved alone."""
    problem, rlimit = advisor.problem, advisor.rlimit
    found, unknown = [], []
    resources = [
        ("shared memory", relaxations.only_shared, _fragmented),
        ("named barriers", relaxations.only_named, _uncolorable),
        ("warps and registers", relaxations.only_launch, _ungroupable),
    ]
    if problem.tensor:
        resources.append(("tensor memory", relaxations.only_tensor, _columns_refused))
    for resource, only, refusal in resources:
        verdict = solve(only(problem), None, rlimit)
        if verdict == UNSAT:
            found.append(refusal(advisor))
        elif verdict == UNKNOWN:
            unknown.append(resource)
    if unknown or not found:
        found.append(_unknown(advisor, unknown))
    return tuple(found)


def lifetime_name(problem: PlacementProblem, index: int) -> str:
    """Return a lifetime as messages quote it."""
    return f"lifetime `{problem.lifetimes[index]}`"


def _per_sm(problem: PlacementProblem) -> str:
    """Return `sm_90a, 2 CTAs per SM`."""
    return f"{problem.target}, {plural(problem.occupancy, 'CTA')} per SM"


# Shared memory


def _shared(advisor: Advisor) -> Iterator[Diagnostic]:
    problem = advisor.problem
    items = rectangles(problem, minimum_stages(problem))
    limit = TARGETS[problem.target].shared_limit(problem.occupancy)
    most, phase = bound(items)
    if most <= limit:
        return
    holders = _holders(items, phase)
    where = lifetime_name(problem, phase)
    notes = [_holder(problem, item) for item in holders[:SHOWN]]
    if len(holders) > SHOWN:
        rest = sum(item.bytes for item in holders[SHOWN:])
        notes.append(f"and {plural(len(holders) - SHOWN, 'smaller allocation')}, {rest:,} bytes")
    notes += [
        f"{lifetime_name(problem, other)} exceeds the limit too: {size:,} bytes"
        for other, size in sorted(live_bytes(items).items())
        if size > limit and other != phase
    ]
    found = relaxations.shared_relaxations(advisor)
    smaller = found.accepted or advisor.others() or relaxations.smaller_buffers(advisor).accepted
    suggestions = advisor.helps(
        smaller,
        found.tried,
        f"use smaller tiles: {where} must shrink by at least {most - limit:,} bytes, and no "
        "smaller stage count or occupancy achieves that",
    )
    yield report(
        "PL0101",
        f"`{problem.name}` needs {most:,} bytes of shared memory; {limit:,} are available",
        problem.span,
        *_holder_spans(problem, holders),
        expected=f"at most {limit:,} bytes ({_per_sm(problem)})",
        found=f"{most:,} bytes, {most - limit:,} too many, in {where} with every ring at its "
        "minimum stage count",
        notes=tuple(notes),
        suggestions=suggestions,
        subject="shared memory",
    )


def _holders(items: Sequence[Rectangle], phase: int) -> list[Rectangle]:
    """Return the allocations of a lifetime, the largest first."""
    alive = [item for item in items if item.lifetimes >> phase & 1]
    return sorted(alive, key=lambda item: (-item.bytes, item.name))


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
    return [(spans.get(h.name), f"`{h.name}` uses {h.bytes:,} bytes") for h in holders[:SHOWN]]


def _fragmented(advisor: Advisor) -> Diagnostic:
    problem = advisor.problem
    items = rectangles(problem, minimum_stages(problem))
    limit = TARGETS[problem.target].shared_limit(problem.occupancy)
    most, phase = bound(items)
    names = conflict_core(items, limit, advisor.rlimit)
    by_name = {item.name: item for item in items}
    lowered, rounded = relaxations.shared_relaxations(advisor), relaxations.rounded(advisor)
    better = (*lowered.accepted, *rounded.accepted) or advisor.others()
    suggestions = advisor.helps(
        better or relaxations.smaller_buffers(advisor).accepted,
        (*lowered.tried, *rounded.tried),
        "use smaller tiles or smaller alignments",
    )
    return report(
        "PL0102",
        f"no layout of the shared memory of `{problem.name}` fits: alignment leaves gaps",
        problem.span,
        *_holder_spans(problem, [by_name[n] for n in names]),
        expected=f"a layout within {limit:,} bytes ({_per_sm(problem)})",
        found=f"{most:,} bytes in {lifetime_name(problem, phase)}, plus the gaps of every layout",
        notes=tuple(
            f"{_holder(problem, by_name[n])}, aligned to {by_name[n].align}" for n in names[:SHOWN]
        ),
        suggestions=suggestions,
        subject="shared memory",
    )


def conflict_core(items: Sequence[Rectangle], limit: int, rlimit: int) -> tuple[str, ...]:
    """Return names of allocations that no layout can hold together, largest first.

    Empty if the solver does not prove a conflict.  One literal per allocation states that it lies
    inside the limit; that allocations do not overlap is asserted.  The smallest are dropped first,
    so that the message names the large ones.
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


def _named(advisor: Advisor) -> Iterator[Diagnostic]:
    problem = advisor.problem
    count = len(ids(problem))
    alive = {
        phase: sorted(need.name for need in problem.barriers if need.lifetimes >> phase & 1)
        for phase in range(len(problem.lifetimes))
    }
    phase = min(alive, key=lambda index: (-len(alive[index]), index))
    names, where = alive[phase], "at the same time"
    if len(names) <= count:
        names, where = _clique(problem), "of which every two are live at the same time"
    if len(names) <= count:
        return
    spans = {need.name: need.span for need in problem.barriers}
    yield report(
        "PL0103",
        f"`{problem.name}` needs {len(names)} named barriers {where}; {count} are available",
        problem.span,
        *((spans[name], f"`{name}`") for name in names[:SHOWN]),
        expected=f"at most {count}: ids {_ranges(ids(problem))}",
        found=f"{len(names)}: {', '.join(names)}",
        suggestions=(
            relaxations.fewer_named(advisor, names, len(names) - count)
            or "use mbarriers, whose number only shared memory limits",
        ),
        subject="named barriers",
    )


def _clique(problem: PlacementProblem) -> list[str]:
    """Return a large set of barriers of which every two share a lifetime, found greedily."""
    masks = {need.name: need.lifetimes for need in problem.barriers}
    meets = {
        name: {other for other in masks if other != name and masks[other] & masks[name]}
        for name in masks
    }
    best: list[str] = []
    for first in sorted(masks, key=lambda name: (-len(meets[name]), name)):
        clique, rest = [first], meets[first]
        while rest:
            following = min(rest, key=lambda name: (-len(meets[name] & rest), name))
            clique.append(following)
            rest = rest & meets[following]
        if len(clique) > len(best):
            best = sorted(clique)
    return best


def _ranges(numbers: list[int]) -> str:
    firsts = [number for number in numbers if number - 1 not in numbers]
    lasts = [number for number in numbers if number + 1 not in numbers]
    runs = zip(firsts, lasts, strict=True)
    return ", ".join(f"{low}..{high}" if low < high else str(low) for low, high in runs)


def _uncolorable(advisor: Advisor) -> Diagnostic:
    problem = advisor.problem
    return report(
        "PL0103",
        f"no assignment of ids to the named barriers of `{problem.name}` exists",
        problem.span,
        expected=f"an assignment to ids {_ranges(ids(problem))}",
        found="every lifetime alone fits, but no assignment serves all lifetimes",
        suggestions=("let a barrier that is used again later live through the time between",),
        subject="named barriers",
    )


def _unknown(advisor: Advisor, resources: list[str]) -> Diagnostic:
    problem, rlimit = advisor.problem, advisor.rlimit
    items = rectangles(problem, minimum_stages(problem))
    limit = TARGETS[problem.target].shared_limit(problem.occupancy)
    what = ", ".join(resources) or "all resources together"
    return report(
        "PL0105",
        f"the solver exhausted its budget without a placement of `{problem.name}`",
        problem.span,
        expected="a placement, or a proof that none exists",
        found=f"neither, for {what}, after {rlimit:,} units per solver call",
        notes=(
            "a placement may still exist",
            f"the fullest lifetime uses {bound(items)[0]:,} of {limit:,} bytes",
        ),
        suggestions=(*relaxations.rounded(advisor).accepted, "raise the budget (`rlimit`)"),
        subject=what,
    )


# Tensor memory


def _columns(advisor: Advisor) -> Iterator[Diagnostic]:
    problem = advisor.problem
    most, _ = bound(column_rectangles(problem, minimum_stages(problem)))
    if most > column_limit(problem):
        yield _columns_refused(advisor)


def _columns_refused(advisor: Advisor) -> Diagnostic:
    """Return PL0801: a lifetime exceeds the limit, or none does but no layout serves all."""
    problem = advisor.problem
    holders = column_rectangles(problem, minimum_stages(problem))
    most, phase = bound(holders)
    if most > column_limit(problem):
        holders = tuple(_holders(holders, phase))
    found = relaxations.tensor_relaxations(advisor)
    smaller = "use a smaller tile: its accumulator has fewer columns"
    spans = {need.name: need.span for need in problem.tensor}
    limit, target = column_limit(problem), TARGETS[problem.target]
    share = f", {problem.occupancy} CTAs per SM" if problem.occupancy > 1 else ""
    where = lifetime_name(problem, phase)
    return report(
        "PL0801",
        f"`{problem.name}` needs {most} columns of tensor memory; {limit} are available"
        if most > limit
        else f"no layout of the tensor memory of `{problem.name}` fits",
        problem.span,
        *((spans[h.name], f"`{h.name}` uses {h.bytes} columns") for h in holders[:SHOWN]),
        expected=f"an allocation of at most {limit} columns "
        f"({target.name}: {target.tmem_columns} per SM{share}; powers of two from 32 up)",
        found=f"{most} columns, {most - limit} too many, in {where} with every channel at its "
        "minimum stage count"
        if most > limit
        else f"{most} columns in {where}, but no layout of all lifetimes",
        notes=tuple(_column_holder(problem, holder) for holder in holders[:SHOWN]),
        suggestions=advisor.helps(found.accepted, found.tried, smaller),
        subject="tensor memory",
    )


def _column_holder(problem: PlacementProblem, need: Rectangle) -> str:
    source = next(item for item in problem.tensor if item.name == need.name)
    times = f" = {need.bytes // source.columns} x {source.columns}" if source.channel else ""
    return f"{need.name}: {need.bytes} columns{times}"


# Warps and registers


def _launch(advisor: Advisor) -> Iterator[Diagnostic]:
    """Yield what arithmetic excludes: warps, entry registers, setmaxnreg values, the pool."""
    problem = advisor.problem
    if warps.shapes(problem):
        return
    target = TARGETS[problem.target]
    plain = warps.plain_shape(problem)
    shape = warps.moving_shape(problem) if target.setmaxnreg else plain
    most, fewest = warps.most_warps(problem), warps.fewest_warps(problem)
    found = relaxations.launch_relaxations(advisor)

    def fixes(otherwise: str) -> tuple[str, ...]:
        return advisor.helps(found.accepted, found.tried, otherwise)

    if shape.warps > most:
        need = fewest if fewest > most else shape.warps
        over = f"run roles on at least {plural(need - most, 'warp')} less"
        yield _too_many_warps(problem, need, most, fixes(over))
        return
    for role in problem.roles:
        if role.entry > shape.entry:
            yield _entry_registers_exceeded(
                problem, role, shape, fixes("use smaller tiles or fragments")
            )
    launch = f"{32 * shape.warps} threads"
    if not target.setmaxnreg:
        for role in problem.roles:
            if role.minimum > shape.entry:
                yield report(
                    "PL0704",
                    f"role `{role.name}` needs {role.minimum} registers; every warp has "
                    f"{shape.entry}",
                    role.span,
                    expected=f"at most {shape.entry} registers: {problem.target} has no "
                    "setmaxnreg, so all warps have the same number",
                    found=f"{role.minimum} registers, {launch} ({_per_sm(problem)})",
                    suggestions=fixes("use smaller tiles or fragments"),
                    subject=role.name,
                )
        return
    most = target.setmaxnreg_maximum
    above = [role for role in problem.roles if warps.min_registers(role, target) > most]
    for role in above:
        yield report(
            "PL0703",
            f"role `{role.name}` needs {role.minimum} registers; setmaxnreg provides at most "
            f"{most}",
            role.span,
            expected=f"at most {most} registers",
            found=f"{role.minimum} registers; {launch} enter with {shape.entry}",
            suggestions=fixes("use smaller tiles or fragments"),
            subject=role.name,
        )
    if not above and warps.register_bound(problem) > shape.pool:
        smaller = "use smaller tiles or fragments"
        yield _register_pool_exceeded(problem, shape, fixes(smaller))


def _too_many_warps(
    problem: PlacementProblem, need: int, most: int, fixes: tuple[str, ...]
) -> Diagnostic:
    target = TARGETS[problem.target]
    whole = need % GROUP == 0 and need > sum(role.warps for role in problem.roles)
    return report(
        "PL0104",
        f"`{problem.name}` needs {need} warps per CTA; {most} are available",
        problem.span,
        expected=f"at most {most} warps: {target.warps_cta} per CTA and {target.warps_sm} per SM "
        f"({_per_sm(problem)})",
        found=f"{need} warps{', counted in whole warpgroups' if whole else ''}",
        notes=tuple(
            f"{role.name}: {plural(role.warps, 'warp')}{' in warpgroups' if role.warpgroup else ''}"
            for role in warps.placement_order(problem)
        ),
        suggestions=fixes,
        subject="warps",
    )


def _entry_registers_exceeded(
    problem: PlacementProblem,
    role: RoleRequest,
    shape: warps.LaunchShape,
    fixes: tuple[str, ...],
) -> Diagnostic:
    return report(
        "PL0706",
        f"role `{role.name}` needs {role.entry} registers at kernel entry; the launch provides "
        f"{shape.entry}",
        role.span,
        expected=f"at least {role.entry} registers at entry",
        found=f"{shape.entry} registers: {32 * shape.warps} threads ({_per_sm(problem)})",
        notes=("ptxas reports C7602 (insufficient registers) regardless of setmaxnreg",),
        suggestions=fixes,
        subject=role.name,
    )


def _register_pool_exceeded(
    problem: PlacementProblem, shape: warps.LaunchShape, fixes: tuple[str, ...]
) -> Diagnostic:
    need = warps.register_bound(problem)
    target = TARGETS[problem.target]
    notes = []
    for role in warps.placement_order(problem):
        where = f"{plural(role.warps, 'warp')}, shares a warpgroup"
        if role.warpgroup:
            where = plural(-(-role.warps // GROUP), "warpgroup")
        notes.append(f"{role.name}: {warps.min_registers(role, target)} registers, {where}")
    return report(
        "PL0704",
        f"roles of `{problem.name}` need {need} registers per thread summed over warpgroups; "
        f"the launch provides {shape.pool}",
        problem.span,
        *(role.span for role in warps.placement_order(problem)),
        expected=f"at most {shape.pool} registers: {shape.groups} warpgroups that enter with "
        f"{shape.entry} each ({32 * shape.warps} threads, {_per_sm(problem)})",
        found=f"{need} registers, {need - shape.pool} too many",
        at_run_time="setmaxnreg.inc blocks for registers that no warpgroup releases: always a hang",
        notes=tuple(notes),
        suggestions=fixes,
        subject="registers",
    )


def _ungroupable(advisor: Advisor) -> Diagnostic:
    """Return what only the solver finds: roles of one warpgroup share its registers."""
    problem = advisor.problem
    shape = warps.moving_shape(problem)
    changes = relaxations.launch_relaxations(advisor)
    smaller = "use smaller tiles or fragments"
    return report(
        "PL0704",
        f"no grouping of the roles of `{problem.name}` into warpgroups provides their registers",
        problem.span,
        expected=f"at most {shape.pool} registers per thread summed over {shape.groups} warpgroups",
        found=f"more than {warps.register_bound(problem)} registers in every grouping",
        notes=("roles that share a warpgroup share its register count",),
        suggestions=advisor.helps(changes.accepted, changes.tried, smaller),
        subject="registers",
    )
