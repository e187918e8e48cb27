"""How many warps may a launch have, and what registers does each of its warpgroups get?

Closed forms: the shapes of a launch worth trying, a bound on its registers, and an assignment
that hints the solver.  Registers are per thread; a warpgroup is 4 warps (128 threads), the unit
of `setmaxnreg`.  Loose roles (not aligned to a warpgroup) come first, wide ones before narrow
ones: so no role straddles warpgroups without need, and the single-warp roles share one and spread
over the four schedulers (warp % 4).
"""

from __future__ import annotations

from dataclasses import dataclass

from pipelink_rules.model.placement import PlacementProblem, RoleRequest, entry_registers
from pipelink_rules.model.target import TARGETS, Target
from pipelink_rules.place.rectangles import round_up

GROUP = 4  # warps of a warpgroup, and schedulers of an SM
UNIT = 8  # registers are given in eights

# Must setmaxnreg hand out exactly what the launch brought?  False: less is allowed, and what is
# left is spread up to `want` first.
POOL_EQUALITY = False


@dataclass(frozen=True)
class LaunchShape:
    """A launch: its warps, the registers it enters with, and whether setmaxnreg moves them."""

    warps: int
    entry: int
    setmaxnreg: bool

    @property
    def groups(self) -> int:
        """Warpgroups, the last one possibly partial where nothing moves registers."""
        return -(-self.warps // GROUP)

    @property
    def pool(self) -> int:
        """Registers per thread, summed over warpgroups, that setmaxnreg may hand out."""
        return self.entry * self.groups // UNIT * UNIT


def min_registers(role: RoleRequest, target: Target) -> int:
    """The smallest setmaxnreg value that serves the role."""
    return max(target.setmaxnreg_minimum, round_up(role.minimum, UNIT))


def useful_registers(role: RoleRequest, target: Target) -> int:
    """The largest setmaxnreg value that still brings something to the role."""
    return max(
        min_registers(role, target), min(target.setmaxnreg_maximum, round_up(role.want, UNIT))
    )


def placement_order(problem: PlacementProblem) -> list[RoleRequest]:
    """Loose roles first, wide before narrow, hungry before modest; then the aligned ones."""
    loose = [role for role in problem.roles if not role.warpgroup]
    aligned = [role for role in problem.roles if role.warpgroup]
    loose.sort(key=lambda role: (-role.warps, -role.minimum, role.name))
    return loose + sorted(aligned, key=lambda role: role.name)


def loose_warps(problem: PlacementProblem) -> int:
    """Warps of the roles that may start anywhere."""
    return sum(role.warps for role in problem.roles if not role.warpgroup)


def aligned_warps(problem: PlacementProblem) -> int:
    """Warps of the roles that start at a warpgroup, whole warpgroups counted."""
    return sum(round_up(role.warps, GROUP) for role in problem.roles if role.warpgroup)


def fewest_warps(problem: PlacementProblem) -> int:
    """Warps of the smallest launch; whole warpgroups as soon as a role is aligned to one."""
    aligned, loose = aligned_warps(problem), loose_warps(problem)
    return aligned + round_up(loose, GROUP) if aligned else loose


def most_warps(problem: PlacementProblem) -> int:
    """Warps one CTA may have at the asked occupancy."""
    target = TARGETS[problem.target]
    return min(target.warps_cta, target.warps_sm // problem.occupancy)


def register_bound(problem: PlacementProblem) -> int:
    """Registers per thread, summed over warpgroups, that every assignment needs at least.

    Loose warps sorted by what they need, four to a warpgroup: no grouping costs less.
    """
    target = TARGETS[problem.target]
    needs = sorted(
        (
            min_registers(role, target)
            for role in problem.roles
            if not role.warpgroup
            for _ in range(role.warps)
        ),
        reverse=True,
    )
    return sum(needs[::GROUP]) + sum(
        -(-role.warps // GROUP) * min_registers(role, target)
        for role in problem.roles
        if role.warpgroup
    )


def plain_shape(problem: PlacementProblem) -> LaunchShape:
    """The smallest launch without setmaxnreg: one register count for all."""
    warps = fewest_warps(problem)
    entry = entry_registers(TARGETS[problem.target], max(1, warps), problem.occupancy)
    return LaunchShape(warps, entry, False)


def moving_shape(problem: PlacementProblem, groups: int | None = None) -> LaunchShape:
    """A launch of whole warpgroups whose registers setmaxnreg moves; the smallest by default."""
    warps = round_up(fewest_warps(problem), GROUP) if groups is None else GROUP * groups
    entry = entry_registers(TARGETS[problem.target], max(1, warps), problem.occupancy)
    return LaunchShape(warps, entry, True)


def admits(problem: PlacementProblem, shape: LaunchShape) -> bool:
    """Does the arithmetic of the shape leave room for every role?  Necessary, not sufficient."""
    target = TARGETS[problem.target]
    if shape.warps > most_warps(problem):
        return False
    if any(role.entry > shape.entry for role in problem.roles):
        return False
    if not shape.setmaxnreg:
        return all(role.minimum <= shape.entry for role in problem.roles)
    idle = shape.groups - moving_shape(problem).groups
    return (
        all(min_registers(role, target) <= target.setmaxnreg_maximum for role in problem.roles)
        and register_bound(problem) + idle * target.setmaxnreg_minimum <= shape.pool
    )


def setmaxnreg_unneeded(problem: PlacementProblem, shape: LaunchShape) -> bool:
    """Would setmaxnreg bring nothing?  A loose role never asks for registers of its own."""
    return admits(problem, shape) and all(
        role.want <= shape.entry for role in problem.roles if role.warpgroup
    )


def shapes(problem: PlacementProblem) -> list[LaunchShape]:
    """The launches that the arithmetic admits, best first.

    Without setmaxnreg where every role is content with the entry registers; else the fewest
    warpgroups that hold everything.
    """
    plain = plain_shape(problem)
    if not TARGETS[problem.target].setmaxnreg or setmaxnreg_unneeded(problem, plain):
        return [plain] if admits(problem, plain) else []
    tried = [
        moving_shape(problem, groups)
        for groups in range(moving_shape(problem).groups, most_warps(problem) // GROUP + 1)
    ]
    return [shape for shape in [*tried, plain] if admits(problem, shape)]


@dataclass(frozen=True)
class Assignment:
    """First warp of each role and the registers of each warpgroup; a hint, not a result."""

    starts: dict[str, int]
    registers: dict[str, int]
    groups: tuple[int, ...]


def assign(problem: PlacementProblem, shape: LaunchShape) -> Assignment:
    """Roles in order at their lowest free warp, registers by water filling.

    Kept from straddling warpgroups where the launch has room for that.
    """
    apart = _starts(problem, apart=True)
    if any(apart[role.name] + role.warps > shape.warps for role in problem.roles):
        return _fill(problem, shape, _starts(problem, apart=False))
    return _fill(problem, shape, apart)


def slack(role: RoleRequest) -> int:
    """How far past a warpgroup's start the role may begin without touching one more."""
    return round_up(role.warps, GROUP) - role.warps


def _starts(problem: PlacementProblem, apart: bool) -> dict[str, int]:
    starts: dict[str, int] = {}
    taken: set[int] = set()
    for role in placement_order(problem):
        start = 0
        while (
            any(warp in taken for warp in range(start, start + role.warps))
            or (role.warpgroup and start % GROUP)
            or (apart and start % GROUP > slack(role))
        ):
            start += 1
        starts[role.name] = start
        taken.update(range(start, start + role.warps))
    return starts


def warpgroups_used(start: int, warps: int) -> range:
    """Indices of the warpgroups that hold one of the warps."""
    return range(start // GROUP, (start + warps - 1) // GROUP + 1)


def _fill(problem: PlacementProblem, shape: LaunchShape, starts: dict[str, int]) -> Assignment:
    if not shape.setmaxnreg:
        every = {role.name: shape.entry for role in problem.roles}
        return Assignment(starts, every, (shape.entry,) * shape.groups)
    target = TARGETS[problem.target]
    family = list(range(shape.groups))  # warpgroup -> the first one that must have the same count
    for role in problem.roles:
        groups = [family[group] for group in warpgroups_used(starts[role.name], role.warps)]
        family = [min(groups) if entry in groups else entry for entry in family]
    level = dict.fromkeys(family, target.setmaxnreg_minimum)
    want = dict(level)
    for role in problem.roles:
        group = family[starts[role.name] // GROUP]
        level[group] = max(level[group], min_registers(role, target))
        want[group] = max(want[group], useful_registers(role, target))
    spare = shape.pool - sum(level[group] for group in family)
    while True:
        hungry = [g for g in level if level[g] < want[g] and family.count(g) * UNIT <= spare]
        if not hungry:
            break
        poorest = min(hungry, key=lambda group: (level[group], group))
        level[poorest] += UNIT
        spare -= family.count(poorest) * UNIT
    registers = {role.name: level[family[starts[role.name] // GROUP]] for role in problem.roles}
    return Assignment(starts, registers, tuple(level[group] for group in family))
