"""Why do the warps and registers of a launch not suffice, and what would help?"""

from __future__ import annotations

from collections.abc import Iterator

from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.placement import PlacementProblem, entry_registers
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import warps
from pipelink_rules.place.relaxations import launch_changes
from pipelink_rules.place.warps import GROUP


def per_sm(problem: PlacementProblem) -> str:
    """`sm_90a, 2 CTAs per SM`."""
    return f"{problem.target}, {plural(problem.occupancy, 'CTA')} per SM"


def launch_shortages(problem: PlacementProblem, rlimit: int) -> Iterator[Diagnostic]:
    """What arithmetic refuses of the launch: warps, entry registers, values, the pool."""
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
        role
        for role in problem.roles
        if warps.min_registers(role, target) > target.setmaxnreg_maximum
    ]
    for role in above:
        yield Diagnostic(
            "PL0703",
            f"role `{role.name}` needs {role.minimum} registers, setmaxnreg cannot give them",
            labels((role.span, "")),
            expected=f"at most {target.setmaxnreg_maximum} registers",
            found=f"{role.minimum} registers; {shape.warps * 32} threads enter with {shape.entry}",
            suggestions=changes or ("use a smaller tile or fragment",),
            subject=role.name,
        )
    if not above and warps.register_bound(problem) > shape.pool:
        yield _pool_short(problem, shape, changes)


def _warps_short(problem: PlacementProblem, need: int, most: int, rlimit: int) -> Diagnostic:
    target = TARGETS[problem.target]
    suggestions = launch_changes(problem, rlimit) or (
        f"run roles on {need - most} fewer warps: `warps={{...}}` of the declaration moves a "
        "split role onto fewer",
    )
    return Diagnostic(
        "PL0104",
        f"`{problem.name}` needs {need} warps per CTA",
        labels((problem.span, "")),
        expected=f"at most {most}: {target.warps_cta} per CTA and {target.warps_sm} per SM "
        f"({per_sm(problem)})",
        found=f"{need} warps, warpgroups counted whole",
        notes=tuple(
            f"{role.name}: {plural(role.warps, 'warp')}{' in warpgroups' if role.warpgroup else ''}"
            for role in warps.placement_order(problem)
        ),
        suggestions=suggestions,
        subject="warps",
    )


def _entry_short(
    problem: PlacementProblem,
    name: str,
    floor: int,
    shape: warps.LaunchShape,
    span: Span | None,
    changes: tuple[str, ...],
) -> Diagnostic:
    target = TARGETS[problem.target]
    fit = [
        number
        for number in range(1, shape.warps + 1)
        if entry_registers(target, number, problem.occupancy) >= floor
    ]
    limit = (
        f"run all roles on at most {32 * max(fit)} threads, which enter with "
        f"{entry_registers(target, max(fit), problem.occupancy)} registers"
        if fit
        else f"use a smaller fragment: no launch of {per_sm(problem)} enters with {floor}"
    )
    only_ctas = tuple(change for change in changes if change.startswith("place "))
    return Diagnostic(
        "PL0706",
        f"role `{name}` does not compile with the registers that the kernel enters with",
        labels((span, "")),
        expected=f"at least {floor} registers at entry",
        found=f"{shape.entry}: {32 * shape.warps} threads ({per_sm(problem)})",
        notes=("ptxas would stop with C7602 (insufficient registers), whatever setmaxnreg gives",),
        suggestions=(*only_ctas, limit),
        subject=name,
    )


def _plain_short(
    problem: PlacementProblem, shape: warps.LaunchShape, changes: tuple[str, ...]
) -> Iterator[Diagnostic]:
    for role in problem.roles:
        if role.minimum > shape.entry:
            yield Diagnostic(
                "PL0704",
                f"role `{role.name}` needs {role.minimum} registers, every warp has {shape.entry}",
                labels((role.span, "")),
                expected=f"at most {shape.entry}: {problem.target} has no setmaxnreg, all warps "
                "get the same",
                found=f"{role.minimum} registers, {32 * shape.warps} threads ({per_sm(problem)})",
                suggestions=changes or ("use a smaller tile or fewer warps",),
                subject=role.name,
            )


def _pool_short(
    problem: PlacementProblem, shape: warps.LaunchShape, changes: tuple[str, ...]
) -> Diagnostic:
    need = warps.register_bound(problem)
    target = TARGETS[problem.target]
    notes = []
    for role in warps.placement_order(problem):
        groups = -(-role.warps // GROUP)
        where = (
            plural(groups, "warpgroup")
            if role.warpgroup
            else f"{plural(role.warps, 'warp')}, shares a warpgroup"
        )
        notes.append(f"{role.name}: {warps.min_registers(role, target)} registers, {where}")
    return Diagnostic(
        "PL0704",
        f"the roles of `{problem.name}` need more registers than the launch brings",
        labels((problem.span, ""), *((role.span, "") for role in warps.placement_order(problem))),
        expected=f"at most {shape.pool} per thread summed over {shape.groups} warpgroups: "
        f"{shape.entry} x {32 * shape.warps} threads ({per_sm(problem)})",
        found=f"{need} per thread summed over warpgroups, {need - shape.pool} too many",
        at_run_time="setmaxnreg.inc waits for registers that nobody gives back: a hang",
        notes=tuple(notes),
        suggestions=changes or ("use smaller tiles, or run roles on fewer warps",),
        subject="registers",
    )


def ungroupable(problem: PlacementProblem, rlimit: int) -> Diagnostic:
    """The refusal that only the solver sees: roles that share a warpgroup share its registers."""
    shape = warps.moving_shape(problem)
    return Diagnostic(
        "PL0704",
        f"no grouping of the roles of `{problem.name}` into warpgroups serves their registers",
        labels((problem.span, "")),
        expected=f"at most {shape.pool} per thread summed over {shape.groups} warpgroups",
        found="roles that share a warpgroup share its register count, and every grouping needs "
        f"more than the bound of {warps.register_bound(problem)}",
        suggestions=launch_changes(problem, rlimit) or ("use smaller tiles, or fewer loose warps",),
        subject="registers",
    )
