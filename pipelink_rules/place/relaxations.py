"""The cheapest relaxations that make a problem feasible, each verified by placing again.

One stage less costs 1, one CTA per SM less costs 2.  Proposals are enumerated by cost and filtered
by the bytes live in each lifetime before the solver runs; supersets of a relaxation that was found
are skipped.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.model.placement import Placement, PlacementProblem
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import warps
from pipelink_rules.place.rectangles import admits, columns_fit, minimum_stages, rows
from pipelink_rules.place.solve import solve
from pipelink_rules.place.warps import UNIT

OCCUPANCY_COST = 2
TRIES = 20_000  # proposals enumerated
PLACINGS = 8  # proposals placed
MOST = 3  # relaxations that are listed


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


def _fits(problem: PlacementProblem, rlimit: int) -> bool:
    return bool(warps.shapes(problem)) and isinstance(solve(problem, None, rlimit), Placement)


def shared_relaxations(problem: PlacementProblem, rlimit: int) -> tuple[str, ...]:
    """Return minimal relaxations with which shared memory fits, cheapest first."""
    problem = only_shared(problem)
    form, target = rows(problem), TARGETS[problem.target]
    return _relaxations(
        problem, lambda counts, ctas: admits(form, counts, target.shared_limit(ctas)), rlimit
    )


def tensor_relaxations(problem: PlacementProblem, rlimit: int) -> tuple[str, ...]:
    """Return the same for tensor memory."""
    problem = only_tensor(problem)
    return _relaxations(problem, partial(columns_fit, problem), rlimit)


def _relaxations(
    problem: PlacementProblem, admitted: Callable[[Mapping[str, int], int], bool], rlimit: int
) -> tuple[str, ...]:
    minimum = minimum_stages(problem)
    found: list[tuple[int, ...]] = []
    texts: list[str] = []
    placings = 0
    for tries, proposal in enumerate(_proposals(problem)):
        if tries == TRIES or len(texts) == MOST or placings == PLACINGS:
            break
        if any(all(a <= b for a, b in zip(old, proposal, strict=True)) for old in found):
            continue
        fewer, *lower = proposal
        counts = {name: minimum[name] - by for name, by in zip(sorted(minimum), lower, strict=True)}
        occupancy = problem.occupancy - fewer
        if not admitted(counts, occupancy):
            continue
        placings += 1
        changed = replace(
            problem,
            occupancy=occupancy,
            stages=tuple(replace(s, minimum=counts[s.name]) for s in problem.stages),
        )
        if _fits(changed, rlimit):
            found.append(proposal)
            texts.append(_describe(problem, occupancy, counts))
    return tuple(texts)


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


def _describe(problem: PlacementProblem, occupancy: int, counts: Mapping[str, int]) -> str:
    parts = [_fewer_ctas(problem, occupancy)] if occupancy != problem.occupancy else []
    for stage in sorted(problem.stages, key=lambda stage: stage.name):
        if counts[stage.name] != stage.minimum:
            fewer = plural(counts[stage.name], "stage")
            parts.append(f"lower the minimum of `{stage.name}` from {stage.minimum} to {fewer}")
    return " and ".join(parts)


def _fewer_ctas(problem: PlacementProblem, occupancy: int) -> str:
    return f"place {plural(occupancy, 'CTA')} per SM instead of {problem.occupancy}"


def launch_relaxations(problem: PlacementProblem, rlimit: int) -> tuple[str, ...]:
    """Return up to three: fewer CTAs per SM, or one role that needs fewer registers."""
    problem = only_launch(problem)
    target = TARGETS[problem.target]
    texts = []
    for occupancy in range(problem.occupancy - 1, 0, -1):
        if _fits(replace(problem, occupancy=occupancy), rlimit):
            texts.append(_fewer_ctas(problem, occupancy))
            break
    for role in sorted(problem.roles, key=lambda role: (-role.minimum, role.name)):
        most, least = warps.min_registers(role, target) - UNIT, target.setmaxnreg_minimum
        for minimum in range(most, least - 1, -UNIT):
            smaller = replace(role, minimum=minimum, want=minimum)
            others = tuple(r for r in problem.roles if r.name != role.name)
            changed = replace(problem, roles=(*others, smaller))
            if warps.shapes(changed):
                if _fits(changed, rlimit):
                    texts.append(
                        f"reduce the registers of `{role.name}` from {role.minimum} to {minimum} "
                        "with a smaller tile or fragment"
                    )
                break
        if len(texts) == MOST:
            break
    return tuple(texts)
