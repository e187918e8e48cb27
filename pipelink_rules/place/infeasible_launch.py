"""Diagnostics for roles whose warps or registers exceed every launch of the target."""

from collections.abc import Iterator

from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.placement import PlacementProblem, RoleRequest, entry_registers
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import warps
from pipelink_rules.place.relaxations import launch_relaxations
from pipelink_rules.place.warps import GROUP


def per_sm(problem: PlacementProblem) -> str:
    """Return `sm_90a, 2 CTAs per SM`."""
    return f"{problem.target}, {plural(problem.occupancy, 'CTA')} per SM"


def launch_infeasibilities(problem: PlacementProblem, rlimit: int) -> Iterator[Diagnostic]:
    """Yield what arithmetic excludes: warps, entry registers, setmaxnreg values, the pool."""
    if warps.shapes(problem):
        return
    target = TARGETS[problem.target]
    plain = warps.plain_shape(problem)
    shape = warps.moving_shape(problem) if target.setmaxnreg else plain
    most = warps.most_warps(problem)
    if shape.warps > most:
        yield _too_many_warps(problem, shape.warps, most, rlimit)
        return
    relaxations = launch_relaxations(problem, rlimit)
    for role in problem.roles:
        if role.entry > shape.entry:
            yield _entry_registers_exceeded(problem, role, shape, relaxations)
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
                    found=f"{role.minimum} registers, {launch} ({per_sm(problem)})",
                    suggestions=relaxations or ("use a smaller tile or fewer warps",),
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
            suggestions=relaxations or ("use a smaller tile or fragment",),
            subject=role.name,
        )
    if not above and warps.register_bound(problem) > shape.pool:
        yield _register_pool_exceeded(problem, shape, relaxations)


def _too_many_warps(problem: PlacementProblem, need: int, most: int, rlimit: int) -> Diagnostic:
    target = TARGETS[problem.target]
    suggestions = launch_relaxations(problem, rlimit) or (
        f"run roles on {need - most} fewer warps: set `warps={{...}}` in the declaration",
    )
    return report(
        "PL0104",
        f"`{problem.name}` needs {need} warps per CTA; {most} are available",
        problem.span,
        expected=f"at most {most} warps: {target.warps_cta} per CTA and {target.warps_sm} per SM "
        f"({per_sm(problem)})",
        found=f"{need} warps, counted in whole warpgroups",
        notes=tuple(
            f"{role.name}: {plural(role.warps, 'warp')}{' in warpgroups' if role.warpgroup else ''}"
            for role in warps.placement_order(problem)
        ),
        suggestions=suggestions,
        subject="warps",
    )


def _entry_registers_exceeded(
    problem: PlacementProblem,
    role: RoleRequest,
    shape: warps.LaunchShape,
    relaxations: tuple[str, ...],
) -> Diagnostic:
    target = TARGETS[problem.target]
    limit = f"use a smaller fragment: no launch of {per_sm(problem)} enters with {role.entry}"
    for number in range(shape.warps, 0, -1):
        entry = entry_registers(target, number, problem.occupancy)
        if entry >= role.entry:
            threads = f"at most {32 * number} threads"
            limit = f"run all roles on {threads}, which enter with {entry} registers"
            break
    fewer_ctas = tuple(text for text in relaxations if text.startswith("place "))
    return report(
        "PL0706",
        f"role `{role.name}` needs {role.entry} registers at kernel entry; the launch provides "
        f"{shape.entry}",
        role.span,
        expected=f"at least {role.entry} registers at entry",
        found=f"{shape.entry} registers: {32 * shape.warps} threads ({per_sm(problem)})",
        notes=("ptxas reports C7602 (insufficient registers) regardless of setmaxnreg",),
        suggestions=(*fewer_ctas, limit),
        subject=role.name,
    )


def _register_pool_exceeded(
    problem: PlacementProblem, shape: warps.LaunchShape, relaxations: tuple[str, ...]
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
        f"{shape.entry} each ({32 * shape.warps} threads, {per_sm(problem)})",
        found=f"{need} registers, {need - shape.pool} too many",
        at_run_time="setmaxnreg.inc blocks for registers that no warpgroup releases: always a hang",
        notes=tuple(notes),
        suggestions=relaxations or ("use smaller tiles, or run roles on fewer warps",),
        subject="registers",
    )


def ungroupable(problem: PlacementProblem, rlimit: int) -> Diagnostic:
    """Return the error that only the solver finds: roles of one warpgroup share its registers."""
    shape = warps.moving_shape(problem)
    return report(
        "PL0704",
        f"no grouping of the roles of `{problem.name}` into warpgroups provides their registers",
        problem.span,
        expected=f"at most {shape.pool} registers per thread summed over {shape.groups} warpgroups",
        found=f"more than {warps.register_bound(problem)} registers in every grouping",
        notes=("roles that share a warpgroup share its register count",),
        suggestions=launch_relaxations(problem, rlimit)
        or ("use smaller tiles, or fewer warps outside of warpgroups",),
        subject="registers",
    )
