"""Closed forms for warps and registers: launch shapes, a lower bound on registers, an assignment.

The assignment is a hint for the solver.  Registers are per thread; a warpgroup is 4 warps (128
threads), the unit of `setmaxnreg`.  Loose roles (not aligned to a warpgroup) come first, wide
before narrow.  No role is then split without need, and single-warp roles share one warpgroup and
are spread over the four schedulers (warp % 4).
"""

from dataclasses import dataclass

from pipelink_rules.model.placement import PlacementProblem, RoleRequest, entry_registers
from pipelink_rules.model.target import TARGETS, Target
from pipelink_rules.place.rectangles import round_up

GROUP = 4  # warps of a warpgroup, and schedulers of an SM
UNIT = 8  # granularity of setmaxnreg

# Whether setmaxnreg must assign every register of the launch.  False: the rest stays free after
# roles got up to `want`.
POOL_EQUALITY = False


@dataclass(frozen=True)
class LaunchShape:
    """A launch: its warps, its entry registers, and whether setmaxnreg redistributes them."""

    warps: int
    entry: int
    setmaxnreg: bool

    @property
    def groups(self) -> int:
        """Number of warpgroups; the last one may be partial without setmaxnreg."""
        return -(-self.warps // GROUP)

    @property
    def pool(self) -> int:
        """Registers per thread, summed over warpgroups, that setmaxnreg may assign."""
        return self.entry * self.groups // UNIT * UNIT


def min_registers(role: RoleRequest, target: Target) -> int:
    """Return the smallest setmaxnreg value that is enough for the role."""
    return max(target.setmaxnreg_minimum, round_up(role.minimum, UNIT))


def useful_registers(role: RoleRequest, target: Target) -> int:
    """Return the largest setmaxnreg value that the role can use."""
    return max(
        min_registers(role, target), min(target.setmaxnreg_maximum, round_up(role.want, UNIT))
    )


def placement_order(problem: PlacementProblem) -> list[RoleRequest]:
    """Return loose roles first (by warps, then registers, descending), then aligned ones."""
    loose = [role for role in problem.roles if not role.warpgroup]
    aligned = [role for role in problem.roles if role.warpgroup]
    loose.sort(key=lambda role: (-role.warps, -role.minimum, role.name))
    return loose + sorted(aligned, key=lambda role: role.name)


def fewest_warps(problem: PlacementProblem) -> int:
    """Return the warps of the smallest launch; whole warpgroups if a role is aligned to one."""
    loose = sum(role.warps for role in problem.roles if not role.warpgroup)
    aligned = sum(round_up(role.warps, GROUP) for role in problem.roles if role.warpgroup)
    return aligned + round_up(loose, GROUP) if aligned else loose


def most_warps(problem: PlacementProblem) -> int:
    """Return the most warps of a CTA at the requested occupancy."""
    target = TARGETS[problem.target]
    return min(target.warps_cta, target.warps_sm // problem.occupancy)


def register_bound(problem: PlacementProblem) -> int:
    """Return a lower bound on the registers per thread, summed over warpgroups.

    Loose warps are sorted by registers, four to a warpgroup: no grouping needs fewer.
    """
    target = TARGETS[problem.target]
    aligned, loose = 0, []
    for role in problem.roles:
        if role.warpgroup:
            aligned += -(-role.warps // GROUP) * min_registers(role, target)
        else:
            loose += [min_registers(role, target)] * role.warps
    return aligned + sum(sorted(loose, reverse=True)[::GROUP])


def plain_shape(problem: PlacementProblem) -> LaunchShape:
    """Return the smallest launch without setmaxnreg: one register count for all."""
    warps = fewest_warps(problem)
    entry = entry_registers(TARGETS[problem.target], max(1, warps), problem.occupancy)
    return LaunchShape(warps, entry, False)


def moving_shape(problem: PlacementProblem, groups: int | None = None) -> LaunchShape:
    """Return a launch of whole warpgroups with setmaxnreg, by default the smallest."""
    warps = round_up(fewest_warps(problem), GROUP) if groups is None else GROUP * groups
    entry = entry_registers(TARGETS[problem.target], max(1, warps), problem.occupancy)
    return LaunchShape(warps, entry, True)


def admits(problem: PlacementProblem, shape: LaunchShape) -> bool:
    """Return whether the shape can hold every role by arithmetic: necessary, not sufficient."""
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


def shapes(problem: PlacementProblem) -> list[LaunchShape]:
    """Return the launches that arithmetic allows, best first.

    Without setmaxnreg if the entry registers are enough for every role; otherwise by the number of
    warpgroups.
    """
    plain = plain_shape(problem)
    admitted = [plain] if admits(problem, plain) else []
    # loose roles never benefit from setmaxnreg
    served = all(role.want <= plain.entry for role in problem.roles if role.warpgroup)
    if not TARGETS[problem.target].setmaxnreg or (admitted and served):
        return admitted
    tried = [
        moving_shape(problem, groups)
        for groups in range(moving_shape(problem).groups, most_warps(problem) // GROUP + 1)
    ]
    return [*(shape for shape in tried if admits(problem, shape)), *admitted]


@dataclass(frozen=True)
class Assignment:
    """First warp of each role and the registers of each warpgroup; a hint, not a result."""

    starts: dict[str, int]
    registers: dict[str, int]
    groups: tuple[int, ...]


def assign(problem: PlacementProblem, shape: LaunchShape) -> Assignment:
    """Place roles in order at their lowest free warp and distribute registers by water filling.

    No role is split between warpgroups if the launch has room for that.
    """
    starts = _starts(problem, apart=True)
    if any(starts[role.name] + role.warps > shape.warps for role in problem.roles):
        starts = _starts(problem, apart=False)
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


def slack(role: RoleRequest) -> int:
    """Return how far into a warpgroup the role may start without spanning one more."""
    return round_up(role.warps, GROUP) - role.warps


def first_free(role: RoleRequest, taken: set[int], apart: bool = False) -> int:
    """Return the lowest first warp of a role; `apart`: without spanning one more warpgroup."""
    start = 0
    while (
        not taken.isdisjoint(range(start, start + role.warps))
        or (role.warpgroup and start % GROUP)
        or (apart and start % GROUP > slack(role))
    ):
        start += 1
    return start


def _starts(problem: PlacementProblem, apart: bool) -> dict[str, int]:
    starts: dict[str, int] = {}
    taken: set[int] = set()
    for role in placement_order(problem):
        start = starts[role.name] = first_free(role, taken, apart)
        taken.update(range(start, start + role.warps))
    return starts


def warpgroups_used(start: int, warps: int) -> range:
    """Return the indices of the warpgroups that the warps span."""
    return range(start // GROUP, (start + warps - 1) // GROUP + 1)
