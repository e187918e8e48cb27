"""Brute force over tiny problems: what the placement must be, without a solver or a bound."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from pipelink_rules.model.placement import Placement, PlacementProblem, RoleRequest
from pipelink_rules.model.target import TARGETS

Box = tuple[str, int, int, int]  # name, bytes, align, phases


def boxes(problem: PlacementProblem, stages: Mapping[str, int]) -> list[Box]:
    """All rectangles, the mbarrier table included, biggest alignment first (canonical order)."""
    found = [
        (i.name, i.bytes * (stages[i.channel] if i.channel else 1), i.align, i.lifetimes)
        for i in problem.items
    ]
    table = 8 * (
        problem.mbarriers_fixed + sum(n * stages[name] for name, n in problem.mbarriers_per_stage)
    )
    if table:
        found.append(("barriers", table, 16, (1 << len(problem.lifetimes)) - 1))

    def span(mask: int) -> int:
        bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
        return bits[-1] - bits[0] + 1

    return sorted(found, key=lambda box: (-box[2], -box[1], -span(box[3]), box[0]))


def layouts(todo: list[Box], limit: int, placed: list[tuple[Box, int]]) -> Iterator[dict[str, int]]:
    """Every layout, in lexicographic order of the offsets."""
    if not todo:
        yield {box[0]: start for box, start in placed}
        return
    box, *rest = todo
    _, size, align, phases = box
    for start in range(0, limit - size + 1, align):
        if all(
            not phases & other[3] or start + size <= at or at + other[1] <= start
            for other, at in placed
        ):
            yield from layouts(rest, limit, [*placed, (box, start)])


def vectors(problem: PlacementProblem) -> list[dict[str, int]]:
    """Every stage vector, the best first."""
    names = sorted(problem.stages, key=lambda stage: stage.name)
    found = [
        dict(zip((s.name for s in names), counts, strict=True))
        for counts in itertools.product(*(range(s.minimum, s.maximum + 1) for s in names))
    ]

    def worth(counts: dict[str, int]) -> list[int]:
        key: list[int] = []
        for priority in sorted({s.priority for s in names}):
            group = [s for s in names if s.priority == priority]
            open_ = [counts[s.name] for s in group if counts[s.name] < s.maximum]
            key.append(min(open_, default=10**6))
            key.append(sum(counts[s.name] for s in group))
            key += [counts[s.name] for s in group]
        return key

    return sorted(found, key=worth, reverse=True)


def best_shared(
    problem: PlacementProblem, limit: int
) -> tuple[dict[str, int], dict[str, int]] | None:
    """The best stages that have a layout, and its lexicographically smallest offsets."""
    for stages in vectors(problem):
        for offsets in layouts(boxes(problem, stages), limit, []):
            return stages, offsets
    return None


def fewest_moved(problem: PlacementProblem, before: Placement, stages: dict[str, int]) -> int:
    """The fewest bytes that leave their offset, by trying every set of items that stays."""
    limit, was = TARGETS[problem.target].shared_limit(problem.occupancy), dict(before.offsets)
    items = boxes(problem, stages)
    known = [box for box in items if box[0] in was]
    best = sum(box[1] for box in known)
    for flags in itertools.product((True, False), repeat=len(known)):
        stay = [box for box, stays in zip(known, flags, strict=True) if stays]
        cost = sum(box[1] for box in known) - sum(box[1] for box in stay)
        legal = all(was[b[0]] % b[2] == 0 and was[b[0]] + b[1] <= limit for b in stay)
        apart = all(
            not a[3] & b[3] or was[a[0]] + a[1] <= was[b[0]] or was[b[0]] + b[1] <= was[a[0]]
            for a, b in itertools.combinations(stay, 2)
        )
        rest = [box for box in items if box not in stay]
        if cost < best and legal and apart:
            fixed = [(box, was[box[0]]) for box in stay]
            if next(layouts(rest, limit, fixed), None) is not None:
                best = cost
    return best


def overlaps(problem: PlacementProblem, placement: Placement) -> set[frozenset[str]]:
    """Pairs of items that share a byte in a phase, by looking at every pair."""
    offsets = dict(placement.offsets)
    found = set()
    for one, other in itertools.combinations(boxes(problem, dict(placement.stages)), 2):
        low, high = offsets[one[0]], offsets[other[0]]
        if one[3] & other[3] and low < high + other[1] and high < low + one[1]:
            found.add(frozenset((one[0], other[0])))
    return found


Launch = tuple[dict[str, int], list[int]]  # first warps, registers of the warpgroups


def best_launch(problem: PlacementProblem, warps: int, entry: int) -> Launch | None:
    """The best first warps and setmaxnreg values for a launch of `warps` warps."""
    target = TARGETS[problem.target]
    groups = warps // 4
    values = range(target.setmaxnreg_minimum, target.setmaxnreg_maximum + 1, 8)
    roles = sorted(
        problem.roles,
        key=lambda r: (
            (r.warpgroup, 0, 0, r.name) if r.warpgroup else (False, -r.warps, -r.minimum, r.name)
        ),
    )
    best: tuple[list[int], Launch] | None = None
    for starts in _starts(roles, warps):
        held = [
            {
                r.name
                for r in roles
                if starts[r.name] < 4 * g + 4 and 4 * g < starts[r.name] + r.warps
            }
            for g in range(groups)
        ]
        for given in itertools.product(values, repeat=groups):
            if sum(given) > entry * groups or not _serves(roles, held, given, target):
                continue
            worth = _worth(roles, starts, held, given, target)
            if best is None or worth > best[0]:
                best = (worth, (starts, list(given)))
    return best[1] if best else None


def _starts(roles: list[RoleRequest], warps: int) -> Iterator[dict[str, int]]:
    choices = [range(0, warps - role.warps + 1, 4 if role.warpgroup else 1) for role in roles]
    for starts in itertools.product(*choices):
        taken = [w for role, s in zip(roles, starts, strict=True) for w in range(s, s + role.warps)]
        if len(taken) == len(set(taken)):
            yield {role.name: s for role, s in zip(roles, starts, strict=True)}


def _up(value: int, target: object) -> int:
    low, high = target.setmaxnreg_minimum, target.setmaxnreg_maximum  # type: ignore[attr-defined]
    return max(low, min(high, -(-value // 8) * 8))


def _serves(
    roles: list[RoleRequest], held: list[set[str]], given: tuple[int, ...], target: object
) -> bool:
    for role in roles:
        numbers = {value for value, names in zip(given, held, strict=True) if role.name in names}
        if len(numbers) > 1 or min(numbers) < role.minimum:
            return False
    for value, names in zip(given, held, strict=True):
        most = max(
            (_up(max(r.want, r.minimum), target) for r in roles if r.name in names), default=0
        )
        if value > max(_up(0, target), most):
            return False
    return True


def _worth(
    roles: list[RoleRequest],
    starts: dict[str, int],
    held: list[set[str]],
    given: tuple[int, ...],
    target: object,
) -> list[int]:
    want = {r.name: _up(max(r.want, r.minimum), target) for r in roles}
    useful = {r.name: min(want[r.name], given[starts[r.name] // 4]) for r in roles}
    short = [value for name, value in useful.items() if value < want[name]]
    loose = [r for r in roles if not r.warpgroup]
    compact = [
        int(sum(r.name in names for names in held) == -(-r.warps // 4))
        for r in loose
        if r.warps > 1
    ]
    singles = [starts[r.name] % 4 for r in loose if r.warps == 1]
    even = all(singles.count(lane) <= -(-len(singles) // 4) for lane in range(4))
    return [
        min(short, default=10**6),
        sum(r.warps * useful[r.name] for r in roles),
        *(useful[name] for name in sorted(useful)),
        sum(compact),
        *compact,
        int(even),
        *(-starts[r.name] for r in roles),
    ]
