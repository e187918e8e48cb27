"""Why does it not fit, who holds what, and what would help?

Arithmetic first: every resource that falls short is a finding of its own, all at once.  Only what
arithmetic cannot see (fragmentation, groupings) asks the solver, and "unknown" is said as such.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label
from pipelink_rules.model.placement import BARRIER_TABLE, PlacementProblem, entry_registers
from pipelink_rules.model.source import Span
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import warps
from pipelink_rules.place.bounds import bound, live_bytes
from pipelink_rules.place.changes import (
    launch_changes,
    only_launch,
    only_named,
    only_shared,
    shared_changes,
)
from pipelink_rules.place.encode import ids
from pipelink_rules.place.fragments import core
from pipelink_rules.place.joint import solve
from pipelink_rules.place.sizes import Rectangle, minimum_stages, rectangles
from pipelink_rules.place.solver import UNKNOWN, UNSAT
from pipelink_rules.place.warps import GROUP

SHOWN = 8  # holders listed one by one


def shortages(problem: PlacementProblem, rlimit: int) -> tuple[Diagnostic, ...]:
    """What arithmetic alone refuses: one finding per resource, with changes that would fit."""
    return (*_shared(problem, rlimit), *_named(problem), *_launch(problem, rlimit))


def refused(problem: PlacementProblem, rlimit: int) -> tuple[Diagnostic, ...]:
    """Why the solver found nothing: the resources, each asked alone."""
    verdicts = {
        "shared memory": solve(only_shared(problem), None, rlimit),
        "named barriers": solve(only_named(problem), None, rlimit),
        "warps and registers": solve(only_launch(problem), None, rlimit),
    }
    refusals = {
        "shared memory": _fragmented,
        "named barriers": _uncolourable,
        "warps and registers": _ungroupable,
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


def _labels(*places: tuple[Span | None, str]) -> tuple[Label, ...]:
    return tuple(Label(span, text) for span, text in places if span is not None)


def _per_sm(problem: PlacementProblem) -> str:
    ctas = "1 CTA" if problem.occupancy == 1 else f"{problem.occupancy} CTAs"
    return f"{problem.target}, {ctas} per SM"


def _phase(problem: PlacementProblem, index: int) -> str:
    return f"phase `{problem.phases[index]}`"


# Shared memory


def _shared(problem: PlacementProblem, rlimit: int) -> Iterator[Diagnostic]:
    items = rectangles(problem, minimum_stages(problem))
    limit = TARGETS[problem.target].shared_limit(problem.occupancy)
    most, phase = bound(items)
    if most <= limit:
        return
    holders = sorted(
        (item for item in items if item.phases >> phase & 1),
        key=lambda item: (-item.bytes, item.name),
    )
    notes = [_holder(problem, item) for item in holders[:SHOWN]]
    if len(holders) > SHOWN:
        rest = sum(item.bytes for item in holders[SHOWN:])
        notes.append(f"and {len(holders) - SHOWN} smaller items, {rest:,} bytes")
    notes += [
        f"{_phase(problem, other)} is over the limit too: {size:,} bytes"
        for other, size in sorted(live_bytes(items).items())
        if size > limit and other != phase
    ]
    helps = shared_changes(problem, rlimit) or (
        f"use smaller tiles: the items alive in {_phase(problem, phase)} must lose "
        f"{most - limit:,} bytes, and no smaller stage count or occupancy gives them",
    )
    yield Diagnostic(
        "PL0101",
        f"`{problem.name}` needs {most:,} bytes of shared memory in {_phase(problem, phase)}",
        _labels((problem.span, ""), *_holder_spans(problem, holders)),
        expected=f"at most {limit:,} bytes ({_per_sm(problem)})",
        found=f"{most:,} bytes, {most - limit:,} too many, every channel at its minimum of stages",
        notes=tuple(notes),
        helps=helps,
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
    names = core(items, limit, rlimit)
    by_name = {item.name: item for item in items}
    odd = [item for item in items if item.bytes % item.align]
    helps = list(shared_changes(problem, rlimit))
    if odd:
        listed = ", ".join(f"`{item.name}`" for item in odd[:SHOWN])
        helps.append(f"round sizes up to their alignment, so that no gaps arise: {listed}")
    return Diagnostic(
        "PL0102",
        f"the shared memory of `{problem.name}` fits by its bytes but has no layout",
        _labels((problem.span, ""), *_holder_spans(problem, [by_name[n] for n in names])),
        expected=f"a layout within {limit:,} bytes ({_per_sm(problem)})",
        found=f"{most:,} bytes alive in {_phase(problem, phase)}, but alignments leave gaps",
        notes=tuple(
            f"{_holder(problem, by_name[n])}, aligned to {by_name[n].align}" for n in names[:SHOWN]
        ),
        helps=tuple(helps) or ("use smaller tiles or smaller alignments",),
        subject="shared memory",
    )


# Named barriers


def _named(problem: PlacementProblem) -> Iterator[Diagnostic]:
    count = len(ids(problem))
    alive = {
        phase: sorted(need.name for need in problem.barriers if need.phases >> phase & 1)
        for phase in range(len(problem.phases))
    }
    phase = min(alive, key=lambda index: (-len(alive[index]), index))
    names = alive[phase]
    if len(names) <= count:
        return
    spans = {need.name: need.span for need in problem.barriers}
    yield Diagnostic(
        "PL0103",
        f"`{problem.name}` keeps {len(names)} named barriers in {_phase(problem, phase)}",
        _labels((problem.span, ""), *((spans[name], f"`{name}`") for name in names[:SHOWN])),
        expected=f"at most {count}: ids {_ranges(ids(problem))}",
        found=f"{len(names)}: {', '.join(names)}",
        helps=(
            f"use {len(names) - count} fewer in this phase: an mbarrier can take the place of a "
            "named barrier, and there are as many as shared memory holds",
        ),
        subject="named barriers",
    )


def _ranges(numbers: list[int]) -> str:
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(r[0]) if len(r) == 1 else f"{r[0]}..{r[-1]}" for r in runs)


def _uncolourable(problem: PlacementProblem, rlimit: int) -> Diagnostic:
    return Diagnostic(
        "PL0103",
        f"the named barriers of `{problem.name}` cannot share the ids there are",
        _labels((problem.span, "")),
        expected=f"an assignment to ids {_ranges(ids(problem))}",
        found="no phase has too many of them, but no assignment serves all phases",
        helps=("let a barrier that returns after a pause live through the phases between",),
        subject="named barriers",
    )


# Warps and registers


def _launch(problem: PlacementProblem, rlimit: int) -> Iterator[Diagnostic]:
    if warps.shapes(problem):
        return
    target = TARGETS[problem.target]
    plain = warps.plain_shape(problem)
    shape = warps.moving_shape(problem) if target.setmaxnreg else plain
    most = warps.most_warps(problem)
    if shape.warps > most:
        yield _warps_short(problem, shape.warps, most, rlimit)
        return
    changes = launch_changes(problem, rlimit)
    broken = [role for role in problem.roles if role.entry > shape.entry]
    for role in broken:
        yield _entry_short(problem, role.name, role.entry, shape, role.span, changes)
    if not target.setmaxnreg:
        yield from _plain_short(problem, shape, changes)
        return
    above = [
        role for role in problem.roles if warps.least(role, target) > target.setmaxnreg_maximum
    ]
    for role in above:
        yield Diagnostic(
            "PL0703",
            f"role `{role.name}` needs {role.minimum} registers, setmaxnreg cannot give them",
            _labels((role.span, "")),
            expected=f"at most {target.setmaxnreg_maximum} registers",
            found=f"{role.minimum} registers; {shape.warps * 32} threads enter with {shape.entry}",
            helps=changes or ("use a smaller tile or fragment",),
            subject=role.name,
        )
    if not above and warps.register_bound(problem) > shape.pool:
        yield _pool_short(problem, shape, changes)


def _warps_short(problem: PlacementProblem, need: int, most: int, rlimit: int) -> Diagnostic:
    target = TARGETS[problem.target]
    helps = launch_changes(problem, rlimit) or (
        f"run roles on {need - most} fewer warps: `warps={{...}}` of the declaration moves a "
        "split role onto fewer",
    )
    return Diagnostic(
        "PL0104",
        f"`{problem.name}` needs {need} warps per CTA",
        _labels((problem.span, "")),
        expected=f"at most {most}: {target.warps_cta} per CTA and {target.warps_sm} per SM "
        f"({_per_sm(problem)})",
        found=f"{need} warps, warpgroups counted whole",
        notes=tuple(
            f"{role.name}: {role.warps} {'warp' if role.warps == 1 else 'warps'}"
            f"{' in warpgroups' if role.warpgroup else ''}"
            for role in warps.order(problem)
        ),
        helps=helps,
        subject="warps",
    )


def _entry_short(
    problem: PlacementProblem,
    name: str,
    floor: int,
    shape: warps.Shape,
    span: Span | None,
    changes: tuple[str, ...],
) -> Diagnostic:
    target = TARGETS[problem.target]
    fit = [
        count
        for count in range(1, shape.warps + 1)
        if entry_registers(target, count, problem.occupancy) >= floor
    ]
    limit = (
        f"run all roles on at most {32 * max(fit)} threads, which enter with "
        f"{entry_registers(target, max(fit), problem.occupancy)} registers"
        if fit
        else f"use a smaller fragment: no launch of {_per_sm(problem)} enters with {floor}"
    )
    only_ctas = tuple(change for change in changes if change.startswith("place "))
    return Diagnostic(
        "PL0706",
        f"role `{name}` does not compile with the registers that the kernel enters with",
        _labels((span, "")),
        expected=f"at least {floor} registers at entry",
        found=f"{shape.entry}: {32 * shape.warps} threads ({_per_sm(problem)})",
        at_run_time="ptxas serialises or refuses the wgmma pipeline (C7602), whatever setmaxnreg "
        "says later",
        helps=(*only_ctas, limit),
        subject=name,
    )


def _plain_short(
    problem: PlacementProblem, shape: warps.Shape, changes: tuple[str, ...]
) -> Iterator[Diagnostic]:
    for role in problem.roles:
        if role.minimum > shape.entry:
            yield Diagnostic(
                "PL0704",
                f"role `{role.name}` needs {role.minimum} registers, every warp has {shape.entry}",
                _labels((role.span, "")),
                expected=f"at most {shape.entry}: {problem.target} has no setmaxnreg, all warps "
                "get the same",
                found=f"{role.minimum} registers, {32 * shape.warps} threads ({_per_sm(problem)})",
                helps=changes or ("use a smaller tile or fewer warps",),
                subject=role.name,
            )


def _pool_short(
    problem: PlacementProblem, shape: warps.Shape, changes: tuple[str, ...]
) -> Diagnostic:
    need = warps.register_bound(problem)
    target = TARGETS[problem.target]
    notes = []
    for role in warps.order(problem):
        groups = -(-role.warps // GROUP)
        where = (
            f"{groups} {'warpgroup' if groups == 1 else 'warpgroups'}"
            if role.warpgroup
            else f"{role.warps} {'warp' if role.warps == 1 else 'warps'}, shares a warpgroup"
        )
        notes.append(f"{role.name}: {warps.least(role, target)} registers, {where}")
    return Diagnostic(
        "PL0704",
        f"the roles of `{problem.name}` need more registers than the launch brings",
        _labels((problem.span, ""), *((role.span, "") for role in warps.order(problem))),
        expected=f"at most {shape.pool} per thread summed over {shape.groups} warpgroups: "
        f"{shape.entry} x {32 * shape.warps} threads ({_per_sm(problem)})",
        found=f"{need} per thread summed over warpgroups, {need - shape.pool} too many",
        at_run_time="setmaxnreg.inc waits for registers that nobody gives back: a hang",
        notes=tuple(notes),
        helps=changes or ("use smaller tiles, or run roles on fewer warps",),
        subject="registers",
    )


def _ungroupable(problem: PlacementProblem, rlimit: int) -> Diagnostic:
    shape = warps.moving_shape(problem)
    return Diagnostic(
        "PL0704",
        f"no grouping of the roles of `{problem.name}` into warpgroups serves their registers",
        _labels((problem.span, "")),
        expected=f"at most {shape.pool} per thread summed over {shape.groups} warpgroups",
        found="roles that share a warpgroup share its register count, and every grouping needs "
        f"more than the bound of {warps.register_bound(problem)}",
        helps=launch_changes(problem, rlimit) or ("use smaller tiles, or fewer loose warps",),
        subject="registers",
    )


def _unknown(problem: PlacementProblem, resources: list[str], rlimit: int) -> Diagnostic:
    items = rectangles(problem, minimum_stages(problem))
    limit = TARGETS[problem.target].shared_limit(problem.occupancy)
    what = " and ".join(resources) or "all resources together"
    return Diagnostic(
        "PL0105",
        f"no placement of `{problem.name}` was found within the solver's budget",
        _labels((problem.span, "")),
        expected="a placement, or a proof that there is none",
        found=f"neither, for {what}, after {rlimit:,} units per question",
        notes=(
            "this is no proof that it does not fit",
            f"the fullest phase holds {bound(items)[0]:,} of {limit:,} bytes",
        ),
        helps=(
            "round the sizes of items up to their alignments: mixed sizes are what is hard",
            "raise the budget (`rlimit`)",
        ),
        subject=what,
    )
