"""The lexicographic objective that selects one placement among all solutions.

In this order: stages (per priority class the smallest count, then their sum, then by name),
registers (the least useful count, then their sum, then by role), few roles that straddle
warpgroups, even spread of single-warp roles, few moved bytes, then the smallest warps, ids and
offsets in canonical order.  Each objective takes a few solver checks, and its optimum is required
from then on.  The placement is therefore unique by definition, not by the solver's choice.

An allocation of a previous placement (same name) moves if its offset changes, at the cost of all
its bytes.  Stages and registers come first: no offset is kept at the cost of a stage.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pipelink_rules.model.placement import Placement, PlacementProblem, StageVariable
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import greedy, warps
from pipelink_rules.place.rectangles import Rectangle, Row, admits, minimum_stages, rectangles
from pipelink_rules.place.smtlib import Encoding
from pipelink_rules.place.warps import UNIT
from pipelink_rules.solver.session import SAT, UNKNOWN, Bound, Session, at_least, at_most, equal

Floor = Callable[[str, Mapping[str, int]], int]  # (variable, those fixed) -> no less than this


class Search:
    """A session and its current solution; `unproved` lists objectives that the budget cut short."""

    def __init__(self, encoding: Encoding, session: Session):
        self.encoding, self.problem, self.session = encoding, encoding.problem, session
        self.values = dict(session.values)
        self.unproved: list[str] = []

    @property
    def stages(self) -> dict[str, int]:
        """The stage counts of the current solution."""
        return {name: self.values[variable] for name, variable in self.encoding.stages.items()}

    def ask(self, step: str, conditions: Sequence[Bound]) -> bool:
        """Return whether a solution meets these conditions too; it becomes the current one."""
        verdict = self.session.check(conditions, self.values)
        if verdict == SAT:
            self.values = dict(self.session.values)
            return True
        if verdict == UNKNOWN and step and step not in self.unproved:
            self.unproved.append(step)
        return False

    def highest(
        self, step: str, low: int, high: int, conditions: Callable[[int], list[Bound]]
    ) -> int:
        """Return the largest level in low..high whose conditions hold, and require them.

        `low` must be known to hold.  The next level is tried first because the hints are usually
        optimal, then the top; bisection is the exception.
        """
        probes = [low + 1, high]
        while low < high:
            probe = probes.pop(0) if probes else (low + high + 1) // 2
            if probe <= low:
                continue
            if self.ask(step, conditions(probe)):
                low = probe
            else:
                high = probe - 1
        self.session.require(conditions(low))
        return low

    def total(self, variables: Mapping[str, int]) -> int:
        """Return the weighted sum of variables in the current solution."""
        return sum(factor * self.values[name] for name, factor in variables.items())

    def maximize(self, step: str, weights: Mapping[str, int], ceiling: int) -> int:
        """Return the largest weighted sum, and require it."""
        terms = tuple(weights.items())
        return self.highest(
            step, self.total(weights), ceiling, lambda level: [Bound(terms, ">=", level)]
        )

    def fix(self, step: str, variables: Sequence[str], floor: Floor) -> None:
        """Fix each variable in turn to its smallest value.

        `floor` returns a lower bound given the variables fixed before.  If all lower bounds hold
        together (the usual case), one check is enough.
        """
        lowest: dict[str, int] = {}
        for name in variables:
            lowest[name] = floor(name, lowest)
        wanted = [equal(name, value) for name, value in lowest.items()]
        if not wanted or self.ask("", wanted):
            self.session.require(wanted)
            return
        fixed: dict[str, int] = {}
        for name in variables:
            low, high = floor(name, fixed), self.values[name]
            probe = low
            while low < high:
                if self.ask(step, [at_most(name, probe)]):
                    high = self.values[name]
                else:
                    low = probe + 1
                probe = (low + high) // 2
            fixed[name] = high
            self.session.require([equal(name, high)])


def maximize_stages(search: Search, form: Sequence[Row], limit: int) -> None:
    """Fix every stage count, class by class."""
    variables = search.encoding.stages
    counts = minimum_stages(search.problem)
    for group in greedy.stage_classes(search.problem):
        if len(group) > 1:
            _maximize_together(search, group, counts, form, limit)
            tops = {s.name: _ceiling(s, counts, form, limit) for s in group}
            weights = {variables[s.name]: 1 for s in group}
            search.maximize("stages", weights, sum(tops.values()))
        for stage in group:
            top = _ceiling(stage, counts, form, limit)
            counts[stage.name] = search.maximize("stages", {variables[stage.name]: 1}, top)


def _maximize_together(
    search: Search,
    group: Sequence[StageVariable],
    counts: dict[str, int],
    form: Sequence[Row],
    limit: int,
) -> None:
    variables = search.encoding.stages
    high = max(s.maximum for s in group)
    current = [(search.values[variables[s.name]], s.maximum) for s in group]
    low = min((count for count, most in current if count < most), default=high)
    while high > low and not admits(form, {**counts, **greedy.at_level(group, high)}, limit):
        high -= 1
    level = search.highest(
        "stages",
        low,
        high,
        lambda level: [
            at_least(variables[name], count)
            for name, count in greedy.at_level(group, level).items()
        ],
    )
    counts.update(greedy.at_level(group, level))


def _ceiling(
    stage: StageVariable, counts: Mapping[str, int], form: Sequence[Row], limit: int
) -> int:
    """Return the most stages that the live bytes allow, given the other stage counts."""
    top = stage.maximum
    while top > stage.minimum and not admits(form, {**counts, stage.name: top}, limit):
        top -= 1
    return top


def assign_registers(search: Search) -> None:
    """Fix the registers of every role and warpgroup."""
    useful = search.encoding.useful
    if not useful:
        return
    target = TARGETS[search.problem.target]
    roles = {role.name: role for role in search.problem.roles}
    wanted = {name: warps.useful_registers(role, target) // UNIT for name, role in roles.items()}
    top = max(wanted.values())
    current = {name: search.values[variable] for name, variable in useful.items()}
    search.highest(
        "registers",
        min((count for name, count in current.items() if count < wanted[name]), default=top),
        top,
        lambda level: [
            at_least(variable, min(level, wanted[name])) for name, variable in useful.items()
        ],
    )
    weights = {variable: roles[name].warps for name, variable in useful.items()}
    search.maximize("registers", weights, sum(roles[name].warps * wanted[name] for name in useful))
    for name, variable in sorted(useful.items()):
        search.maximize("registers", {variable: 1}, wanted[name])


def pack_roles(search: Search) -> None:
    """Pack loose roles into few warpgroups and spread single warps over schedulers."""
    compact, spread = search.encoding.compact, search.encoding.spread
    if compact:
        search.maximize("warps", dict.fromkeys(compact.values(), 1), len(compact))
        for variable in compact.values():
            search.maximize("warps", {variable: 1}, 1)
    if spread and search.ask("", [at_least(spread, 1)]):
        search.session.require([at_least(spread, 1)])


def keepable_offsets(
    problem: PlacementProblem, previous: Placement | None, limit: int
) -> dict[str, int]:
    """Return offsets of the previous placement that are valid for the allocation of that name."""
    if previous is None:
        return {}
    before = dict(previous.offsets)
    return {
        item.name: before[item.name]
        for item in rectangles(problem, minimum_stages(problem))
        if item.name in before
        and before[item.name] % item.align == 0
        and 0 <= before[item.name] <= limit - item.bytes
    }


def keepable_ids(problem: PlacementProblem, previous: Placement | None) -> dict[str, int]:
    """Return ids of the previous placement that do not conflict now."""
    if previous is None:
        return {}
    before, allowed = dict(previous.named), set(greedy.ids(problem))
    kept: dict[str, int] = {}
    masks = {barrier.name: barrier.lifetimes for barrier in problem.barriers}
    for name in sorted(masks):
        number = before.get(name)
        if number in allowed and not any(
            kept[other] == number and masks[other] & masks[name] for other in kept
        ):
            kept[name] = number
    return kept


def keep_offsets(
    search: Search, keep: Mapping[str, int], sizes: Sequence[Rectangle]
) -> dict[str, int]:
    """Fix which allocations stay so that the fewest bytes move; return the offsets that stay."""
    if not keep:
        return {}
    items = {item.name: item for item in sizes}
    moved = search.encoding.moved
    flags = {moved[name]: items[name].bytes for name in keep}
    stay = [equal(flag, 0) for flag in flags]
    if search.ask("moved bytes", stay):
        search.session.require(stay)
        return dict(keep)
    terms = tuple(flags.items())
    while search.ask("moved bytes", [Bound(terms, "<=", search.total(flags) - 1)]):
        pass
    search.session.require([Bound(terms, "<=", search.total(flags))])
    kept: dict[str, int] = {}
    for item in sorted((items[name] for name in keep), key=greedy.canonical_order):
        flag = moved[item.name]
        stays = search.values[flag] == 0 or search.ask("moved bytes", [equal(flag, 0)])
        search.session.require([equal(flag, 0 if stays else 1)])
        if stays:
            kept[item.name] = keep[item.name]
    return kept


def keep_ids(search: Search, keep: Mapping[str, int]) -> dict[str, int]:
    """Fix the ids that stay: all valid ones, or none if a new barrier would get no id."""
    stay = [equal(search.encoding.named[name], number) for name, number in sorted(keep.items())]
    if not stay or not search.ask("", stay):
        return {}
    search.session.require(stay)
    return dict(keep)


def fix_warps(search: Search) -> None:
    """Fix the first warp of every role, in the order of `warps.placement_order`."""
    starts = search.encoding.starts
    roles = {starts[role.name]: role for role in warps.placement_order(search.problem)}

    def floor(variable: str, fixed: Mapping[str, int]) -> int:
        taken = {
            warp
            for other, start in fixed.items()
            for warp in range(start, start + roles[other].warps)
        }
        return warps.first_free(roles[variable], taken)

    search.fix("warps", list(roles), floor)
    if warps.POOL_EQUALITY:  # else registers follow from what is useful: they have one value
        search.fix("registers", search.encoding.groups, lambda name, fixed: 0)


def fix_ids(search: Search, kept: Mapping[str, int]) -> None:
    """Fix the id of every named barrier: earliest lifetime first, the lowest free id."""
    problem, named = search.problem, search.encoding.named
    names = {variable: name for name, variable in named.items()}

    def floor(variable: str, fixed: Mapping[str, int]) -> int:
        assigned = {**kept, **{names[other]: number for other, number in fixed.items()}}
        placed = {*assigned, names[variable]}
        barriers = tuple(need for need in problem.barriers if need.name in placed)
        lowest = greedy.lowest_ids(replace(problem, barriers=barriers), assigned)[names[variable]]
        return search.values[variable] if lowest is None else lowest

    search.fix("ids", [named[name] for name in greedy.id_order(problem)], floor)


def fix_offsets(
    search: Search,
    places: Mapping[str, tuple[str, int]],
    sizes: Sequence[Rectangle],
    kept: Mapping[str, int],
) -> None:
    """Fix every offset or first column, in order: the lowest that extends to a full layout."""
    ordered = sorted(sizes, key=greedy.canonical_order)
    items = {places[item.name][0]: item for item in ordered}

    def floor(variable: str, fixed: Mapping[str, int]) -> int:
        item = items[variable]
        offsets = {**kept, **{items[v].name: n * items[v].align for v, n in fixed.items()}}
        if item.name in kept:
            return kept[item.name] // item.align
        neighbors = [other for other in ordered if other.name in offsets]
        return greedy.first_fit([*neighbors, item], offsets)[0][item.name] // item.align

    search.fix("offsets", list(items), floor)
