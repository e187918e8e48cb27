"""The cheapest relaxations that make a problem feasible, each verified by placing again.

One stage less costs 1, one CTA per SM less costs 2.  Proposals are enumerated by cost and filtered
by the bytes live in each lifetime before the solver runs; supersets of a relaxation that was found
are skipped.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pipelink_rules.diagnostics.wording import list_of, plural
from pipelink_rules.model.placement import PlacementProblem, SharedAllocation
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import warps
from pipelink_rules.place.advice import MOST, Advisor, Change, with_role
from pipelink_rules.place.rectangles import admits, columns_fit, minimum_stages, round_up, rows
from pipelink_rules.place.warps import GROUP, UNIT

OCCUPANCY_COST = 2
TRIES = 20_000  # proposals enumerated
PLACINGS = 8  # proposals placed
SHOWN = 8  # names in one text


def only_shared(problem: PlacementProblem) -> PlacementProblem:
    """Return the problem reduced to shared memory."""
    return replace(problem, roles=(), barriers=(), tensor=())


def only_launch(problem: PlacementProblem) -> PlacementProblem:
    """Return the problem reduced to warps and registers."""
    return replace(only_named(problem), roles=problem.roles, barriers=())


def only_named(problem: PlacementProblem) -> PlacementProblem:
    """Return the problem reduced to named barriers."""
    return replace(
        problem, items=(), stages=(), mbarriers_per_stage=(), mbarriers_fixed=0, roles=(), tensor=()
    )


def only_tensor(problem: PlacementProblem) -> PlacementProblem:
    """Return the problem reduced to tensor memory."""
    used = {need.channel for need in problem.tensor}
    stages = tuple(stage for stage in problem.stages if stage.name in used)
    return replace(only_named(problem), barriers=(), stages=stages, tensor=problem.tensor)


@dataclass(frozen=True)
class Relaxed:
    """Texts of changes that were accepted, and of those that were tried in vain."""

    accepted: tuple[str, ...]
    tried: tuple[str, ...] = ()


def shared_relaxations(advisor: Advisor) -> Relaxed:
    """Return minimal relaxations with which shared memory fits, cheapest first."""
    form, target = rows(only_shared(advisor.problem)), TARGETS[advisor.problem.target]
    return _relaxations(
        advisor,
        only_shared,
        lambda counts, ctas: admits(form, counts, target.shared_limit(ctas)),
    )


def tensor_relaxations(advisor: Advisor) -> Relaxed:
    """Return the same for tensor memory."""
    problem = only_tensor(advisor.problem)
    return _relaxations(advisor, only_tensor, partial(columns_fit, problem))


def _relaxations(
    advisor: Advisor,
    only: Callable[[PlacementProblem], PlacementProblem],
    admitted: Callable[[Mapping[str, int], int], bool],
) -> Relaxed:
    whole = advisor.problem
    minimum = minimum_stages(only(whole))
    done: list[tuple[int, ...]] = []  # accepted, or refused by a check that more would not please
    accepted: list[str] = []
    tried: list[str] = []
    placings = 0
    for tries, proposal in enumerate(_proposals(only(whole))):
        if tries == TRIES or len(accepted) == MOST or placings == PLACINGS:
            break
        if any(all(a <= b for a, b in zip(old, proposal, strict=True)) for old in done):
            continue
        fewer, *lower = proposal
        counts = {name: minimum[name] - by for name, by in zip(sorted(minimum), lower, strict=True)}
        occupancy = whole.occupancy - fewer
        if not admitted(counts, occupancy):
            continue
        placings += 1
        change = _lowered(advisor, occupancy, counts)
        if not advisor.placed(only(change.problem)):
            continue
        done.append(proposal)
        codes = advisor.refused(change)
        if codes:
            tried.append(f"{change.text} gives {codes}")
        else:
            accepted.append(advisor.shown(change))
    return Relaxed(tuple(accepted), tuple(tried))


def _lowered(advisor: Advisor, occupancy: int, counts: Mapping[str, int]) -> Change:
    """Return the change to an occupancy and to minimum stage counts."""
    whole, parts, stages = advisor.problem, [], []
    if occupancy != whole.occupancy:
        parts.append(_fewer_ctas(whole, occupancy))
    for stage in sorted(whole.stages, key=lambda stage: stage.name):
        count = counts.get(stage.name, stage.minimum)
        if count != stage.minimum:
            parts.append(advisor.changes.lower(stage, count))
        pinned = stage.minimum == stage.maximum
        stages.append(replace(stage, minimum=count, maximum=count if pinned else stage.maximum))
    changed = replace(whole, occupancy=occupancy, stages=tuple(stages))
    return Change(" and ".join(parts), changed)


def _proposals(problem: PlacementProblem) -> Iterator[tuple[int, ...]]:
    """Yield (CTAs per SM less, stages less per channel by name) by rising cost."""
    room = [stage.minimum - 1 for stage in sorted(problem.stages, key=lambda stage: stage.name)]
    most = OCCUPANCY_COST * (problem.occupancy - 1) + sum(room)
    for cost in range(1, most + 1):
        for fewer in range(min(problem.occupancy - 1, cost // OCCUPANCY_COST) + 1):
            for lower in _splits(cost - OCCUPANCY_COST * fewer, room):
                yield (fewer, *lower)


def _splits(total: int, room: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not room:
        if total == 0:
            yield ()
        return
    for first in range(min(total, room[0]), -1, -1):
        for rest in _splits(total - first, room[1:]):
            yield (first, *rest)


def _fewer_ctas(problem: PlacementProblem, occupancy: int) -> str:
    return f"place {plural(occupancy, 'CTA')} per SM instead of {problem.occupancy}"


def launch_relaxations(advisor: Advisor) -> Relaxed:
    """Return up to three: fewer CTAs per SM, fewer warps of a role, or fewer registers of one."""
    ways = (*_fewer_per_sm(advisor), *_fewer_warps(advisor), *_fewer_registers(advisor))
    accepted = tuple(advisor.shown(change) for change in ways[:MOST])
    names = sorted(role.name for role in advisor.problem.roles)
    vain = f"neither fewer warps nor fewer registers of one of {list_of(names)} are enough"
    return Relaxed(accepted, () if accepted else (vain,))


def _launches(advisor: Advisor, problem: PlacementProblem) -> bool:
    return advisor.placed(only_launch(problem)) is not None


def _fewer_per_sm(advisor: Advisor) -> Iterator[Change]:
    for occupancy in range(advisor.problem.occupancy - 1, 0, -1):
        changed = replace(advisor.problem, occupancy=occupancy)
        if _launches(advisor, changed):
            yield Change(_fewer_ctas(advisor.problem, occupancy), changed)
            return


def _fewer_warps(advisor: Advisor) -> list[Change]:
    """Return for each role the most warps that launch and are not refused, small changes first."""
    found: list[tuple[int, str, Change]] = []
    for role in advisor.problem.roles:
        step = GROUP if role.warpgroup else 1
        for count in range(role.warps - step, 0, -step):
            fewer = with_role(advisor.problem, replace(role, warps=count))
            if not (warps.shapes(fewer) and _launches(advisor, fewer)):
                continue
            change = advisor.changes.fewer_warps(role, count)
            if change and _launches(advisor, change.problem):
                found.append((role.warps - count, role.name, change))
                break
    return [change for _, _, change in sorted(found, key=lambda entry: entry[:2])]


def _fewer_registers(advisor: Advisor) -> Iterator[Change]:
    problem, target = advisor.problem, TARGETS[advisor.problem.target]
    for role in sorted(problem.roles, key=lambda role: (-role.minimum, role.name)):
        most, least = warps.min_registers(role, target) - UNIT, target.setmaxnreg_minimum
        for minimum in range(most, least - 1, -UNIT):
            smaller = replace(role, minimum=minimum, want=minimum)
            changed = with_role(problem, smaller)
            if not warps.shapes(changed):
                continue
            if _launches(advisor, changed):
                text = (
                    f"reduce the registers of `{role.name}` from {role.minimum} to {minimum} "
                    "with a smaller tile or fragment"
                )
                yield Change(text, changed)
            break


def smaller_buffers(advisor: Advisor) -> Relaxed:
    """Return sizes of single buffers with which shared memory fits: the largest that do."""
    found: list[tuple[int, str, str]] = []
    buffers = [item for item in advisor.problem.items if not item.channel]  # rings hold tiles
    for item in sorted(buffers, key=lambda item: (-item.bytes, item.name))[:SHOWN]:
        size = _largest(advisor, item)
        if size:
            text = (
                f"shrink `{item.name}` by {item.bytes - size:,} to {size:,} bytes, if its "
                "component needs no more"
            )
            shown = advisor.shown(Change(text, _sized(advisor, item, size)))
            found.append((item.bytes - size, item.name, shown))
    return Relaxed(tuple(text for _, _, text in sorted(found)[:MOST]))


def _sized(advisor: Advisor, item: SharedAllocation, size: int) -> PlacementProblem:
    items = advisor.problem.items
    changed = tuple(replace(one, bytes=size) if one is item else one for one in items)
    return replace(advisor.problem, items=changed)


def _largest(advisor: Advisor, item: SharedAllocation) -> int:
    """Return the most bytes of an allocation with which shared memory fits, 0 if none."""

    def enough(size: int) -> bool:
        return advisor.placed(only_shared(_sized(advisor, item, size))) is not None

    low, high = 1, item.bytes  # the first fits, the last does not
    if not enough(low):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def rounded(advisor: Advisor) -> Relaxed:
    """Return that all odd sizes be rounded up to their alignment, if that fits."""
    problem = advisor.problem
    odd = [item.name for item in problem.items if item.bytes % item.align]
    items = tuple(replace(i, bytes=round_up(i.bytes, i.align)) for i in problem.items)
    text = f"round these sizes up to their alignment: {list_of(odd[:SHOWN])}"
    change = Change(text, replace(problem, items=items))
    if odd and advisor.placed(only_shared(change.problem)):
        return Relaxed((advisor.shown(change),))
    return Relaxed((), ("rounding sizes up to their alignment needs more",) if odd else ())


def fewer_named(advisor: Advisor, names: Sequence[str], excess: int) -> str:
    """Return how many named barriers to replace by mbarriers, "" if that alone is not enough."""
    problem = advisor.problem
    gone = set(names[-excess:])
    changed = replace(
        problem,
        barriers=tuple(need for need in problem.barriers if need.name not in gone),
        mbarriers_fixed=problem.mbarriers_fixed + excess,
    )
    if not advisor.placed(only_named(changed)):
        return ""
    text = (
        f"replace {plural(excess, 'named barrier')} by mbarriers, whose number only shared memory "
        "limits"
    )
    return advisor.shown(Change(text, changed))
