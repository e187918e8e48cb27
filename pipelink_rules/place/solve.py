"""The search for a placement: launch shapes, solver, objective, verification.

Every shape of the launch that arithmetic allows is one joint SMT-LIB text.  The best shape with a
solution is optimized and then verified.  A greedy layout and a closed-form assignment provide
hints.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.model.placement import BARRIER_TABLE, Placement, PlacementProblem, Warpgroup
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import objective, stage_search, warps
from pipelink_rules.place.greedy import first_fit, lowest_ids, suggest_stages
from pipelink_rules.place.objective import Search
from pipelink_rules.place.rectangles import (
    allocation,
    bound,
    column_rectangles,
    columns_fit,
    rectangles,
    round_up,
    rows,
    table_parts,
)
from pipelink_rules.place.smtlib import Encoding
from pipelink_rules.place.stacking import Exhausted
from pipelink_rules.place.stage_search import Stacked
from pipelink_rules.place.verify import verify
from pipelink_rules.place.warps import GROUP, UNIT, LaunchShape
from pipelink_rules.solver.session import SAT, UNKNOWN, UNSAT, Bound, Session, equal, version

RLIMIT = 4_000_000  # units of the solver for one check; about a second


def solve(
    problem: PlacementProblem, previous: Placement | None = None, rlimit: int = RLIMIT
) -> Placement | str:
    """Return the placement, or the verdict (unsat, unknown), without an explanation."""
    known: Stacked | None = None
    if stage_search.applies(problem):
        with contextlib.suppress(Exhausted):
            known = stage_search.best(problem)
            if known is None:
                return UNSAT
    unknown = ""
    for shape in warps.shapes(problem):
        found = _solve_shape(problem, shape, previous, rlimit, known)
        if isinstance(found, Placement):
            plain = warps.plain_shape(problem)
            if shape.setmaxnreg and _moves_nothing(problem, found, plain):
                attempt = _solve_shape(problem, plain, previous, rlimit, known)
                return attempt if isinstance(attempt, Placement) else found
            return found
        unknown = unknown or (found if found == UNKNOWN else "")
    return unknown or UNSAT


def _moves_nothing(problem: PlacementProblem, found: Placement, plain: LaunchShape) -> bool:
    """Return whether entry registers provide every role as much as setmaxnreg does."""
    return warps.admits(problem, plain) and all(
        min(found.registers(role.name), role.want) <= plain.entry for role in problem.roles
    )


def _solve_shape(
    problem: PlacementProblem,
    shape: LaunchShape,
    previous: Placement | None,
    rlimit: int,
    known: Stacked | None = None,
) -> Placement | str:
    limit = TARGETS[problem.target].shared_limit(problem.occupancy)
    keep = objective.keepable_offsets(problem, previous, limit)
    encoding = Encoding(problem, shape, limit, keep)
    session = Session(str(encoding.writer), rlimit)
    stages, offsets = (
        (known.stages, known.offsets)
        if known
        else suggest_stages(
            problem, limit, lambda counts: columns_fit(problem, counts, problem.occupancy)
        )
    )
    start = hints(encoding, stages, offsets)
    if known:
        session.require(_known(encoding, known, offsets=previous is None))
    if session.check([equal(name, value) for name, value in start.items()]) != SAT:
        verdict = session.check((), near=start)
        if verdict != SAT:
            return verdict
    search = Search(encoding, session)
    if known:
        search.unproved += known.unproved
    else:
        objective.maximize_stages(search, rows(problem), limit)
    objective.assign_registers(search)
    objective.pack_roles(search)
    sizes = rectangles(problem, search.stages)
    kept = objective.keep_offsets(search, keep, sizes)
    kept_ids = objective.keep_ids(search, objective.keepable_ids(problem, previous))
    objective.fix_warps(search)
    objective.fix_ids(search, kept_ids)
    if not (known and previous is None):
        objective.fix_offsets(search, encoding.offsets, sizes, kept)
    columns = column_rectangles(problem, search.stages)
    objective.fix_offsets(search, encoding.columns, columns, {})
    placement = _placement(search, previous)
    faults = verify(problem, placement)
    if faults:
        raise error(
            "PL9901",
            f"internal error: the placement of `{problem.name}` fails its verification",
            problem.span,
            found="; ".join(faults),
            suggestions=("report this with the .program.json; no placement was written",),
        )
    return placement


def _known(encoding: Encoding, known: Stacked, offsets: bool) -> Iterator[Bound]:
    """Yield the values that were found without the solver."""
    for name, variable in encoding.stages.items():
        yield equal(variable, known.stages[name])
    if offsets:
        for name, (variable, align) in encoding.offsets.items():
            yield equal(variable, known.offsets[name] // align)


def _placement(search: Search, previous: Placement | None) -> Placement:
    values, encoding, problem = search.values, search.encoding, search.problem
    shape, stages = encoding.shape, search.stages
    sizes, needs = rectangles(problem, stages), column_rectangles(problem, stages)
    columns = {name: values[variable] for name, (variable, _) in encoding.columns.items()}
    offsets = {name: values[variable] * unit for name, (variable, unit) in encoding.offsets.items()}
    named = {name: values[variable] for name, variable in encoding.named.items()}
    starts = {name: values[variable] for name, variable in encoding.starts.items()}
    height = max((offsets[item.name] + item.bytes for item in sizes), default=0)
    table = offsets.get(BARRIER_TABLE, 0)
    notes = [f"the budget ended before `{step}` was proved best" for step in search.unproved]
    placement = Placement(
        name=problem.name,
        target=problem.target,
        stages=_sorted(stages),
        offsets=_sorted(offsets),
        barriers=tuple((name, table + start) for name, start, _ in table_parts(problem, stages)),
        shared_bytes=round_up(height, 16),
        bound_bytes=bound(sizes)[0],
        named=_sorted(named),
        warps=_sorted(starts),
        threads=32 * shape.warps,
        entry_registers=shape.entry,
        setmaxnreg=shape.setmaxnreg,
        warpgroups=_warpgroups(search, starts),
        occupancy=problem.occupancy,
        proved="stages" not in search.unproved,
        solver=version(),
        notes=tuple(notes),
        columns=_sorted(columns),
        tensor_columns=allocation(max((columns[n.name] + n.bytes for n in needs), default=0)),
    )
    if previous is None:
        return placement
    changes = tuple(_changes(previous, placement))
    return replace(placement, notes=(*changes, *notes), kept=not changes)


def _sorted(numbers: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(numbers.items()))


def _warpgroups(search: Search, starts: Mapping[str, int]) -> tuple[Warpgroup, ...]:
    shape, counts = search.encoding.shape, search.encoding.groups
    groups = []
    for index in range(shape.groups):
        roles = tuple(
            role.name
            for role in sorted(search.problem.roles, key=lambda role: starts[role.name])
            if index in warps.warpgroups_used(starts[role.name], role.warps)
        )
        registers = search.values[counts[index]] * UNIT if counts else shape.entry
        groups.append(Warpgroup(index, roles, registers))
    return tuple(groups)


def _changes(previous: Placement, placement: Placement) -> Iterator[str]:
    """Yield notes about what changed since the previous placement."""
    for what, before, now in (
        ("stages of", previous.stages, placement.stages),
        ("offset of", previous.offsets, placement.offsets),
        ("id of", previous.named, placement.named),
        ("first column of", previous.columns, placement.columns),
    ):
        known = dict(before)
        for name, number in now:
            if known.get(name, number) != number:
                yield f"{what} {name}: {known[name]:,} before, {number:,} now"


def hints(
    encoding: Encoding, stages: Mapping[str, int], offsets: Mapping[str, int]
) -> dict[str, int]:
    """Return values of the variables from a greedy layout and a closed-form assignment."""
    problem = encoding.problem
    assignment = warps.assign(problem, encoding.shape)
    found = {encoding.stages[name]: count for name, count in stages.items()}
    for name, (variable, align) in encoding.offsets.items():
        found[variable] = offsets[name] // align
    for name, column in first_fit(column_rectangles(problem, stages))[0].items():
        found[encoding.columns[name][0]] = column
    for role in problem.roles:
        start = assignment.starts[role.name]
        found[encoding.starts[role.name]] = start
        if role.name in encoding.aligned:
            found[encoding.aligned[role.name]] = start // GROUP
        else:
            found[f"q{encoding.starts[role.name][1:]}"] = start // GROUP
        if role.name in encoding.compact:
            found[encoding.compact[role.name]] = int(start % GROUP <= warps.slack(role))
        if encoding.useful:
            assigned = assignment.registers[role.name]
            useful = warps.useful_registers(role, TARGETS[problem.target])
            found[encoding.registers[role.name]] = assigned // UNIT
            found[encoding.useful[role.name]] = min(assigned, useful) // UNIT
    for variable, registers in zip(encoding.groups, assignment.groups, strict=False):
        found[variable] = registers // UNIT
    if encoding.spread:
        found[encoding.spread] = 1
    numbers = lowest_ids(problem)
    if all(number is not None for number in numbers.values()):
        found.update({encoding.named[name]: number or 0 for name, number in numbers.items()})
    return found
