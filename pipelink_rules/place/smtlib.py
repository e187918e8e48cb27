"""The joint problem as one SMT-LIB text.

All resources are one set of linear constraints over integers, for one shape of the launch: stage
counts, shared offsets and the mbarrier table, named-barrier ids, first warps, registers of roles
and warpgroups.  Variables are numbered in a canonical order, so that names from declarations never
enter the text:

    s<i>  stages of a channel                k<i>  offset of an allocation / its alignment
    v<i>  1 if a kept allocation moves       n<i>  id of a named barrier
    w<i>  first warp of a role               x<g>  registers of a warpgroup / 8
    r<i>  registers of a role / 8            c<i>  useful registers of a role / 8
    u<i>  1 if a role is not split           p     1 if single-warp roles are spread evenly
    q<i>  first warpgroup of a loose role    t<i>  first column of a tensor memory request
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

from pipelink_rules.model.placement import BARRIER_TABLE, PlacementProblem
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import warps
from pipelink_rules.place.greedy import ids
from pipelink_rules.place.rectangles import (
    MBARRIER_BYTES,
    TABLE_ALIGN,
    all_lifetimes,
    column_limit,
    rows,
)
from pipelink_rules.place.warps import GROUP, UNIT, LaunchShape
from pipelink_rules.solver.text import Text, product, total

Interval = tuple[str, str]  # start and end, as terms


@dataclass(frozen=True)
class Encoding:
    """The text, and the variable of each quantity that the placement decides."""

    text: str
    stages: dict[str, str]
    offsets: dict[str, tuple[str, int]]  # allocation -> (variable, bytes per unit of it)
    moved: dict[str, str]  # kept allocation -> its v
    named: dict[str, str]
    starts: dict[str, str]
    aligned: dict[str, str]  # aligned role -> the variable that is its start / 4
    useful: dict[str, str]  # role -> its c; empty without setmaxnreg
    registers: dict[str, str]
    groups: tuple[str, ...]
    compact: dict[str, str]  # loose role of several warps -> its u
    spread: str  # "p", or empty
    columns: dict[str, tuple[str, int]]  # tensor request -> (variable, columns per unit of it)


def encode(
    problem: PlacementProblem, shape: LaunchShape, limit: int, keep: Mapping[str, int] | None = None
) -> Encoding:
    """Return the joint text for one shape; `limit` in bytes, `keep`: offsets worth keeping."""
    writer = Text()
    stages = _stages(writer, problem)
    offsets, moved = _shared(writer, problem, stages, limit, keep or {})
    columns = _columns(writer, problem, stages)
    named = _named(writer, problem)
    starts, aligned = _warps(writer, problem, shape)
    compact, spread = _spread(writer, problem, starts)
    useful, registers, groups = _registers(writer, problem, shape, starts)
    return Encoding(
        text=str(writer),
        stages=stages,
        offsets=offsets,
        moved=moved,
        named=named,
        starts=starts,
        aligned=aligned,
        useful=useful,
        registers=registers,
        groups=groups,
        compact=compact,
        spread=spread,
        columns=columns,
    )


def _stages(writer: Text, problem: PlacementProblem) -> dict[str, str]:
    ordered = sorted(problem.stages, key=lambda stage: stage.name)
    return {
        stage.name: writer.integer(f"s{index}", stage.minimum, stage.maximum)
        for index, stage in enumerate(ordered)
    }


def quantum(problem: PlacementProblem) -> int:
    """Return the largest unit of bytes that divides every size and alignment."""
    unit = 0
    for item in problem.items:
        unit = math.gcd(unit, item.bytes, item.align)
    if problem.mbarriers_per_stage or problem.mbarriers_fixed:
        unit = math.gcd(unit, MBARRIER_BYTES)
    return max(1, unit)


def _shared(
    writer: Text,
    problem: PlacementProblem,
    stages: Mapping[str, str],
    limit: int,
    keep: Mapping[str, int],
) -> tuple[dict[str, tuple[str, int]], dict[str, str]]:
    unit = quantum(problem)
    room = limit // unit

    def size(constant: int, coefficients: list[tuple[str, int]]) -> str:
        terms = [product(factor // unit, stages[name]) for name, factor in coefficients]
        return total(terms + ([str(constant // unit)] if constant or not terms else []))

    allocations = [
        (
            item.name,
            item.align,
            item.lifetimes,
            size(0, [(item.channel, item.bytes)]) if item.channel else size(item.bytes, []),
        )
        for item in problem.items
    ]
    if problem.mbarriers_per_stage or problem.mbarriers_fixed:
        per_stage = [(name, MBARRIER_BYTES * n) for name, n in sorted(problem.mbarriers_per_stage)]
        table = size(MBARRIER_BYTES * problem.mbarriers_fixed, per_stage)
        allocations.append((BARRIER_TABLE, TABLE_ALIGN, all_lifetimes(problem), table))
    offsets: dict[str, tuple[str, int]] = {}
    moved: dict[str, str] = {}
    boxes: list[tuple[int, Interval]] = []
    for index, (name, align, lifetimes, extent) in enumerate(sorted(allocations)):
        variable = writer.integer(f"k{index}", 0, limit // align)
        start = product(align // unit, variable)
        end = f"(+ {start} {extent})"
        writer.claim(f"(<= {end} {room})")
        offsets[name] = (variable, align)
        boxes.append((lifetimes, (start, end)))
        if name in keep:
            moved[name] = writer.integer(f"v{index}", 0, 1)
            writer.claim(f"(or (= v{index} 1) (= {variable} {keep[name] // align}))")
    _keep_apart(writer, boxes)
    for row in rows(problem):  # redundant, but makes unsat answers fast
        writer.claim(f"(<= {size(row.constant, list(row.coefficients))} {room})")
    return offsets, moved


def _keep_apart(writer: Text, boxes: list[tuple[int, Interval]]) -> None:
    """Assert that two intervals that share a lifetime do not overlap."""
    for (one, low), (other, high) in itertools.combinations(boxes, 2):
        if one & other:
            writer.apart(low, high)


def _columns(
    writer: Text, problem: PlacementProblem, stages: Mapping[str, str]
) -> dict[str, tuple[str, int]]:
    """Assert that requests do not overlap within the largest allocation of tensor memory."""
    limit = column_limit(problem)
    found: dict[str, tuple[str, int]] = {}
    boxes: list[tuple[int, Interval]] = []
    for index, need in enumerate(sorted(problem.tensor, key=lambda need: need.name)):
        variable = writer.integer(f"t{index}", 0, limit)
        extent = product(need.columns, stages[need.channel]) if need.channel else str(need.columns)
        writer.claim(f"(<= (+ {variable} {extent}) {limit})")
        found[need.name] = (variable, 1)
        boxes.append((need.lifetimes, (variable, f"(+ {variable} {extent})")))
    _keep_apart(writer, boxes)
    return found


def _named(writer: Text, problem: PlacementProblem) -> dict[str, str]:
    allowed = ids(problem)
    ordered = sorted(problem.barriers, key=lambda barrier: barrier.name)
    named: dict[str, str] = {}
    for index, barrier in enumerate(ordered):
        named[barrier.name] = writer.integer(f"n{index}", min(allowed), max(allowed))
        for hole in range(min(allowed), max(allowed)):
            if hole not in allowed:
                writer.claim(f"(not (= n{index} {hole}))")
    for one, other in itertools.combinations(ordered, 2):
        if one.lifetimes & other.lifetimes:
            writer.claim(f"(not (= {named[one.name]} {named[other.name]}))")
    return named


def _warps(
    writer: Text, problem: PlacementProblem, shape: LaunchShape
) -> tuple[dict[str, str], dict[str, str]]:
    roles = warps.placement_order(problem)
    starts: dict[str, str] = {}
    aligned: dict[str, str] = {}
    for index, role in enumerate(roles):
        starts[role.name] = writer.integer(f"w{index}", 0, shape.warps - role.warps)
        if role.warpgroup:
            aligned[role.name] = writer.integer(f"a{index}", 0, shape.warps // GROUP)
            writer.claim(f"(= w{index} (* {GROUP} a{index}))")
    for one, other in itertools.combinations(roles, 2):
        low, high = starts[one.name], starts[other.name]
        writer.apart((low, f"(+ {low} {one.warps})"), (high, f"(+ {high} {other.warps})"))
    return starts, aligned


def _spread(
    writer: Text, problem: PlacementProblem, starts: Mapping[str, str]
) -> tuple[dict[str, str], str]:
    """Define u (a loose role spans as few warpgroups as possible) and p (single warps spread)."""
    compact: dict[str, str] = {}
    singles: list[str] = []  # warp % 4 of each
    for index, role in enumerate(warps.placement_order(problem)):
        if role.warpgroup:
            continue
        writer.integer(f"q{index}", 0, warps.most_warps(problem) // GROUP)
        rest = f"(- {starts[role.name]} (* {GROUP} q{index}))"
        writer.claim(f"(<= 0 {rest} {GROUP - 1})")
        if role.warps == 1:
            singles.append(rest)
        else:
            compact[role.name] = writer.integer(f"u{index}", 0, 1)
            writer.claim(f"(=> (= u{index} 1) (<= {rest} {warps.slack(role)}))")
    if len(singles) < 2:
        return compact, ""
    writer.integer("p", 0, 1)
    share = -(-len(singles) // GROUP)
    for scheduler in range(GROUP):
        here = [f"(ite (= {rest} {scheduler}) 1 0)" for rest in singles]
        writer.claim(f"(=> (= p 1) (<= {total(here)} {share}))")
    return compact, "p"


def _registers(
    writer: Text, problem: PlacementProblem, shape: LaunchShape, starts: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str], tuple[str, ...]]:
    if not shape.setmaxnreg:
        return {}, {}, ()
    target = TARGETS[problem.target]
    low, high = target.setmaxnreg_minimum // UNIT, target.setmaxnreg_maximum // UNIT
    roles = warps.placement_order(problem)
    groups = tuple(writer.integer(f"x{index}", low, high) for index in range(shape.groups))
    registers: dict[str, str] = {}
    useful: dict[str, str] = {}
    for index, role in enumerate(roles):
        least, wanted = (
            warps.min_registers(role, target) // UNIT,
            warps.useful_registers(role, target) // UNIT,
        )
        registers[role.name] = writer.integer(f"r{index}", least, high)
        useful[role.name] = writer.integer(f"c{index}", low, wanted)
        writer.claim(f"(<= c{index} r{index})")
    for position, group in enumerate(groups):
        first, last = GROUP * position, GROUP * position + GROUP
        served = [f"(= {group} {low})"]
        for index, role in enumerate(roles):
            start = starts[role.name]
            inside = f"(and (< {start} {last}) (< {first} (+ {start} {role.warps})))"
            writer.claim(f"(=> {inside} (= r{index} {group}))")
            served.append(
                f"(and {inside} (<= {group} {warps.useful_registers(role, target) // UNIT}))"
            )
        if not warps.POOL_EQUALITY:  # unused registers stay free
            writer.claim(f"(or {' '.join(served)})")
    relation = "=" if warps.POOL_EQUALITY else "<="
    writer.claim(f"({relation} {total(list(groups))} {shape.pool // UNIT})")
    return useful, registers, groups
