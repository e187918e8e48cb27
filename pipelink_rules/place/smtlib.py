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


class Encoding:
    """The joint text for one shape, and the variable of each quantity that the placement decides.

    `limit` in bytes; `keep`: offsets worth keeping.
    """

    def __init__(
        self, problem: PlacementProblem, shape: LaunchShape, limit: int, keep: Mapping[str, int]
    ):
        self.problem, self.shape = problem, shape
        self.writer = Text()
        self.stages: dict[str, str] = {}
        self.offsets: dict[str, tuple[str, int]] = {}  # allocation -> (variable, bytes per unit)
        self.moved: dict[str, str] = {}  # kept allocation -> its v
        self.columns: dict[str, tuple[str, int]] = {}  # tensor request -> (variable, columns)
        self.named: dict[str, str] = {}
        self.starts: dict[str, str] = {}
        self.aligned: dict[str, str] = {}  # aligned role -> the variable that is its start / 4
        self.compact: dict[str, str] = {}  # loose role of several warps -> its u
        self.spread = ""  # "p", if there are several single-warp roles
        self.useful: dict[str, str] = {}  # role -> its c; empty without setmaxnreg
        self.registers: dict[str, str] = {}
        self.groups: tuple[str, ...] = ()
        for index, stage in enumerate(sorted(problem.stages, key=lambda stage: stage.name)):
            variable = self.writer.integer(f"s{index}", stage.minimum, stage.maximum)
            self.stages[stage.name] = variable
        self._shared(limit, keep)
        self._columns()
        self._named()
        self._warps()
        self._spread()
        if shape.setmaxnreg:
            self._registers()

    def _quantum(self) -> int:
        """Return the largest unit of bytes that divides every size and alignment."""
        sizes = [size for item in self.problem.items for size in (item.bytes, item.align)]
        if self.problem.mbarriers_per_stage or self.problem.mbarriers_fixed:
            sizes.append(MBARRIER_BYTES)
        return math.gcd(*sizes) or 1

    def _shared(self, limit: int, keep: Mapping[str, int]) -> None:
        writer, problem = self.writer, self.problem
        unit = self._quantum()
        room = limit // unit

        def size(constant: int, coefficients: list[tuple[str, int]]) -> str:
            terms = [product(factor // unit, self.stages[name]) for name, factor in coefficients]
            return total(terms + ([str(constant // unit)] if constant or not terms else []))

        allocations = []
        for item in problem.items:
            extent = size(0, [(item.channel, item.bytes)]) if item.channel else size(item.bytes, [])
            allocations.append((item.name, item.align, item.lifetimes, extent))
        if problem.mbarriers_per_stage or problem.mbarriers_fixed:
            per_stage = [(name, MBARRIER_BYTES * n) for name, n in problem.mbarriers_per_stage]
            table = size(MBARRIER_BYTES * problem.mbarriers_fixed, sorted(per_stage))
            allocations.append((BARRIER_TABLE, TABLE_ALIGN, all_lifetimes(problem), table))
        boxes: list[tuple[int, Interval]] = []
        for index, (name, align, lifetimes, extent) in enumerate(sorted(allocations)):
            variable = writer.integer(f"k{index}", 0, limit // align)
            start = product(align // unit, variable)
            end = f"(+ {start} {extent})"
            writer.claim(f"(<= {end} {room})")
            self.offsets[name] = (variable, align)
            boxes.append((lifetimes, (start, end)))
            if name in keep:
                self.moved[name] = writer.integer(f"v{index}", 0, 1)
                writer.claim(f"(or (= v{index} 1) (= {variable} {keep[name] // align}))")
        self._keep_apart(boxes)
        for row in rows(problem):  # redundant, but makes unsat answers fast
            writer.claim(f"(<= {size(row.constant, list(row.coefficients))} {room})")

    def _keep_apart(self, boxes: list[tuple[int, Interval]]) -> None:
        """Assert that two intervals that share a lifetime do not overlap."""
        for (one, low), (other, high) in itertools.combinations(boxes, 2):
            if one & other:
                self.writer.apart(low, high)

    def _columns(self) -> None:
        """Assert that requests do not overlap within the largest allocation of tensor memory."""
        limit = column_limit(self.problem)
        boxes: list[tuple[int, Interval]] = []
        for index, need in enumerate(sorted(self.problem.tensor, key=lambda need: need.name)):
            variable = self.writer.integer(f"t{index}", 0, limit)
            extent = str(need.columns)
            if need.channel:
                extent = product(need.columns, self.stages[need.channel])
            end = f"(+ {variable} {extent})"
            self.writer.claim(f"(<= {end} {limit})")
            self.columns[need.name] = (variable, 1)
            boxes.append((need.lifetimes, (variable, end)))
        self._keep_apart(boxes)

    def _named(self) -> None:
        allowed, named = ids(self.problem), self.named
        ordered = sorted(self.problem.barriers, key=lambda barrier: barrier.name)
        for index, barrier in enumerate(ordered):
            named[barrier.name] = self.writer.integer(f"n{index}", min(allowed), max(allowed))
            for hole in range(min(allowed), max(allowed)):
                if hole not in allowed:
                    self.writer.claim(f"(not (= n{index} {hole}))")
        for one, other in itertools.combinations(ordered, 2):
            if one.lifetimes & other.lifetimes:
                self.writer.claim(f"(not (= {named[one.name]} {named[other.name]}))")

    def _warps(self) -> None:
        writer, warps_of_launch = self.writer, self.shape.warps
        roles = warps.placement_order(self.problem)
        for index, role in enumerate(roles):
            self.starts[role.name] = writer.integer(f"w{index}", 0, warps_of_launch - role.warps)
            if role.warpgroup:
                self.aligned[role.name] = writer.integer(f"a{index}", 0, warps_of_launch // GROUP)
                writer.claim(f"(= w{index} (* {GROUP} a{index}))")
        for one, other in itertools.combinations(roles, 2):
            low, high = self.starts[one.name], self.starts[other.name]
            writer.apart((low, f"(+ {low} {one.warps})"), (high, f"(+ {high} {other.warps})"))

    def _spread(self) -> None:
        """Define u (a loose role spans few warpgroups) and p (single warps are spread)."""
        writer = self.writer
        singles: list[str] = []  # warp % 4 of each
        for index, role in enumerate(warps.placement_order(self.problem)):
            if role.warpgroup:
                continue
            writer.integer(f"q{index}", 0, warps.most_warps(self.problem) // GROUP)
            rest = f"(- {self.starts[role.name]} (* {GROUP} q{index}))"
            writer.claim(f"(<= 0 {rest} {GROUP - 1})")
            if role.warps == 1:
                singles.append(rest)
            else:
                self.compact[role.name] = writer.integer(f"u{index}", 0, 1)
                writer.claim(f"(=> (= u{index} 1) (<= {rest} {warps.slack(role)}))")
        if len(singles) < 2:
            return
        self.spread = writer.integer("p", 0, 1)
        share = -(-len(singles) // GROUP)
        for scheduler in range(GROUP):
            here = [f"(ite (= {rest} {scheduler}) 1 0)" for rest in singles]
            writer.claim(f"(=> (= p 1) (<= {total(here)} {share}))")

    def _registers(self) -> None:
        writer, target = self.writer, TARGETS[self.problem.target]
        low, high = target.setmaxnreg_minimum // UNIT, target.setmaxnreg_maximum // UNIT
        roles = warps.placement_order(self.problem)
        useful = [warps.useful_registers(role, target) // UNIT for role in roles]
        groups = [writer.integer(f"x{index}", low, high) for index in range(self.shape.groups)]
        self.groups = tuple(groups)
        for index, role in enumerate(roles):
            least = warps.min_registers(role, target) // UNIT
            self.registers[role.name] = writer.integer(f"r{index}", least, high)
            self.useful[role.name] = writer.integer(f"c{index}", low, useful[index])
            writer.claim(f"(<= c{index} r{index})")
        for position, group in enumerate(groups):
            first, last = GROUP * position, GROUP * position + GROUP
            served = [f"(= {group} {low})"]
            for index, role in enumerate(roles):
                start = self.starts[role.name]
                inside = f"(and (< {start} {last}) (< {first} (+ {start} {role.warps})))"
                writer.claim(f"(=> {inside} (= r{index} {group}))")
                served.append(f"(and {inside} (<= {group} {useful[index]}))")
            if not warps.POOL_EQUALITY:  # unused registers stay free
                writer.claim(f"(or {' '.join(served)})")
        relation = "=" if warps.POOL_EQUALITY else "<="
        writer.claim(f"({relation} {total(groups)} {self.shape.pool // UNIT})")
