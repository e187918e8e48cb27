"""Abstract interpreter of a role's PTX: a group of warps or a single lane, with unknown data.

A branch on data is interpreted on both sides up to their join.  If the sides differ in anything
that other threads observe, the audit is inconclusive; otherwise their states are merged.  A branch
on which the lanes of a warp differ is interpreted for each part of the lanes; what a whole warp
must execute may not occur there.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pipelink_rules.audit.control_flow import FunctionCode, function_code, written_registers
from pipelink_rules.audit.decode_ptx import cell_operand, operand, registers_of
from pipelink_rules.audit.execution_log import Event, ExecutionLog
from pipelink_rules.audit.instruction_semantics import effect_of
from pipelink_rules.audit.lanes import (
    Cell,
    DivergedError,
    Lanes,
    Registers,
    Value,
    VariesError,
    WarpsDifferError,
    at,
    cell_of,
    combine,
    uniform,
)
from pipelink_rules.audit.machine_state import (
    DATA_DEPENDENT,
    LOCAL,
    SPLIT,
    THIS_CTA,
    Effect,
    InconclusiveError,
    Names,
    PendingOperations,
    State,
)
from pipelink_rules.audit.runtime_calls import VARYING_ARGUMENTS, call_runtime, operand_member
from pipelink_rules.toolkit.ptx import Module, Statement

MOST_INSTRUCTIONS = 100_000  # of one work tile, to end a loop: shipped roles need 4,000
MOST_SPLITS = 64  # iterations of a loop whose length differs between lanes
WARP = 32
_LOCAL = re.compile(r"\.local\b.*?([\w$]+)\s*\[")


Key = TypeVar("Key")
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class _Side:
    """The state after one side of a branch."""

    registers: Registers
    memory: dict[int, Cell]
    log: ExecutionLog
    pending: PendingOperations


def _equal_entries(left: dict[Key, Entry], right: dict[Key, Entry]) -> dict[Key, Entry]:
    return {key: left[key] for key in left if left[key] == right.get(key)}


def _merged_cells(
    inside: dict[Key, Cell], outside: dict[Key, Cell], positions: tuple[int, ...], size: int
) -> dict[Key, Cell]:
    """Return the cells of the threads at some positions from `inside`, the others' from outside."""
    where = frozenset(positions)
    return {
        key: combine(inside.get(key), outside.get(key), where, size)
        for key in {**inside, **outside}
    }


@dataclass
class Interpreter:
    """One lane, or the threads of one or more warps that run alike (`threads`).

    `shuffles`: values of lane 0 at each uniform shuffle; recorded by lane 0, read by other lanes.
    """

    module: Module
    names: Names
    state: State
    lane: int = 0
    shuffles: list[Value] = field(default_factory=list)
    codes: dict[str, tuple[FunctionCode, list[Effect]]] = field(default_factory=dict)  # decoded
    thread: int = 0
    first_try: bool = False  # its own waits succeed at their first try
    pending: PendingOperations = field(default_factory=PendingOperations)
    threads: tuple[int, ...] = ()  # of whole warps, in order; () = a single lane
    edges: set[tuple[str, int, int]] = field(default_factory=set)  # function, branch, successor
    active: tuple[int, ...] = (0,)
    separated: list[Lanes] = field(default_factory=list)  # conditions on which lanes differed
    _shuffles: int = 0  # passed so far
    _executed: int = 0  # instructions of this work tile
    _fenced: bool = False
    _group: dict[tuple[str, int], set[str]] = field(default_factory=dict)  # ring, stage -> tiles
    _decision: Lanes | None = None
    _splits: int = 0

    def __post_init__(self) -> None:
        if self.threads:
            self.active = tuple(range(len(self.threads)))

    @property
    def argument(self) -> Cell:
        """The last argument of an entry: the thread."""
        return cell_of(self.threads) if self.threads else self.thread

    def run(self, name: str, arguments: Sequence[Cell]) -> None:
        """Interpret a function from its beginning to its end."""
        code, effects = self._decoded(name)
        regs: Registers = dict(zip(code.parameters, arguments, strict=False))
        lanes = cell_of(thread % WARP for thread in self.threads) if self.threads else self.lane
        regs["%laneid"], regs["%cluster_ctarank"] = lanes, THIS_CTA
        for number, local in enumerate(_LOCAL.findall(code.function.body)):
            regs[local] = LOCAL + (len(name) + number << 24)
        self._until(code, effects, regs, 0, len(effects), frozenset())

    def _decoded(self, name: str) -> tuple[FunctionCode, list[Effect]]:
        if name not in self.codes:
            function = self.module.function(name)
            if function is None:
                raise InconclusiveError(f"call of the unknown function `{name}`")
            code = function_code(function)
            self.codes[name] = code, [effect_of(code, item) for item in code.instructions]
        return self.codes[name]

    def _until(
        self,
        code: FunctionCode,
        effects: list[Effect],
        regs: Registers,
        position: int,
        stop: int,
        forks: frozenset[int],
    ) -> None:
        """Interpret up to a position."""
        while position != stop and position < len(effects):
            self._executed += 1
            if self._executed > MOST_INSTRUCTIONS:
                raise InconclusiveError("a loop that does not end")
            following = effects[position](self, regs)
            if following is None:
                position += 1
            elif following >= 0:
                position = following
            elif following == SPLIT:
                position = self._split(code, effects, regs, position, forks)
            elif position in forks:  # another iteration of a loop whose length depends on data
                if self.state.log.events:
                    raise InconclusiveError("operations in a loop whose length depends on data")
                check_progress(code, regs, position)
                self._forget(code, regs, position)
                return
            else:
                position = self._fork(code, effects, regs, position, forks)

    def _fork(
        self,
        code: FunctionCode,
        effects: list[Effect],
        regs: Registers,
        position: int,
        forks: frozenset[int],
    ) -> int:
        """Interpret both sides of a branch on data, merge their states and return the join."""
        join = code.joins.get(position, len(effects))
        before = _Side(regs, self.state.memory, self.state.log, self.pending)
        shuffles = self._shuffles
        sides = []
        for start in code.successors(position):
            registers = dict(regs)
            self.state.memory, self.state.log = dict(before.memory), ExecutionLog()
            self.pending, self._shuffles = before.pending.copy(), shuffles
            self._until(code, effects, registers, start, join, forks | {position})
            sides.append(_Side(registers, self.state.memory, self.state.log, self.pending))
        left, right = sides
        if left.pending != right.pending:
            raise InconclusiveError("a barrier or copy on one side of a branch on data")
        if left.log.events != right.log.events:
            shown = [str(event) for event in (*left.log.events, *right.log.events)]
            raise InconclusiveError(f"`{shown[0]}` on one side of a branch on data")
        for accesses, more in zip(left.log.accesses, right.log.accesses, strict=True):
            accesses |= more
        before.log.extend(left.log)
        before.log.writes += right.log.writes
        self.state.log = before.log
        common = _equal_entries(left.registers, right.registers)
        regs.clear()
        regs.update(common)
        self.state.memory = _equal_entries(left.memory, right.memory)
        return join

    # -- threads that differ
    def decide(self, condition: Lanes, target: int) -> int | None:
        """Return the position after a branch under a condition that varies between threads."""
        found = {condition.values[position] for position in self.active}
        if None in found:
            return DATA_DEPENDENT
        if len(found) == 1:
            return target if found.pop() else None
        self.separated.append(condition)
        self._same_in_all_warps(condition)
        self._decision = condition
        return SPLIT

    def _same_in_all_warps(self, cell: Lanes) -> None:
        """Raise WarpsDifferError unless the active lanes of every warp have the same values."""
        parts: dict[tuple[Value, ...], list[int]] = {}
        for first in range(0, len(self.threads), WARP):
            lanes = tuple(p for p in self.active if first <= p < first + WARP)
            key = tuple(cell.values[position] for position in lanes)
            parts.setdefault(key, []).append(first // WARP)
        if len(parts) > 1:
            raise WarpsDifferError([tuple(part) for part in parts.values()])

    def _split(
        self,
        code: FunctionCode,
        effects: list[Effect],
        regs: Registers,
        position: int,
        forks: frozenset[int],
    ) -> int:
        """Interpret each side of a branch for the lanes that take it, and return the join."""
        assert self._decision is not None
        join, values = code.joins.get(position, len(effects)), self._decision.values
        before, active, diverged = self.state.memory, self.active, self.state.diverged
        self._splits += 1
        if self._splits > MOST_SPLITS:
            raise InconclusiveError("a loop whose length differs between lanes")
        sides: list[tuple[tuple[int, ...], Registers, dict[int, Cell]]] = []
        for start, which in zip(code.successors(position), (True, False), strict=True):
            registers, self.state.memory = dict(regs), dict(before)
            self._restrict(tuple(p for p in active if bool(values[p]) == which))
            self._until(code, effects, registers, start, join, forks)
            sides.append((self.active, registers, self.state.memory))
        self._splits -= 1
        self.active, self.state.diverged = active, diverged
        (inside, left, memory), (_, right, other) = sides
        merged = _merged_cells(left, right, inside, len(self.threads))
        regs.clear()
        regs.update(merged)
        self.state.memory = _merged_cells(memory, other, inside, len(self.threads))
        return join

    def _restrict(self, positions: tuple[int, ...]) -> None:
        self.active = positions
        self.state.diverged = tuple(p for p in positions if p < positions[0] // WARP * WARP + WARP)
        self.state.diverged = tuple(self.threads[p] % WARP for p in self.state.diverged)

    def guarded(
        self, effect: Effect, regs: Registers, condition: Lanes, targets: Sequence[str]
    ) -> None:
        """Perform an instruction in the threads whose condition holds."""
        values, active, diverged = condition.values, self.active, self.state.diverged
        if any(values[position] is None for position in active):
            raise InconclusiveError("an instruction under a condition on data")
        inside = tuple(position for position in active if values[position])
        if not inside:
            return
        before, memory = {name: regs.get(name) for name in targets}, dict(self.state.memory)
        if inside != active:
            self.separated.append(condition)
            self._restrict(inside)
        effect(self, regs)
        self.active, self.state.diverged = active, diverged
        for name, value in before.items():
            regs[name] = combine(regs.get(name), value, inside, len(self.threads))
        self.state.memory = _merged_cells(self.state.memory, memory, inside, len(self.threads))

    def for_each(
        self, effect: Effect, regs: Registers, names: Sequence[str], targets: Sequence[str]
    ) -> None:
        """Perform an instruction once for the threads with equal operands."""
        groups: dict[tuple[Value, ...], list[int]] = {}
        for position in self.active:
            key = tuple(at(regs.get(name), position) for name in names)
            groups.setdefault(key, []).append(position)
        size = len(self.threads)
        number: dict[int, int] = {}
        for index, (values, positions) in enumerate(groups.items()):
            view: Registers = dict(zip(names, values, strict=True))
            effect(self, view)
            for name in targets:
                regs[name] = combine(view.get(name), regs.get(name), positions, size)
            number |= dict.fromkeys(positions, index)
        condition = cell_of(number.get(position) for position in range(size))
        self.separated += [condition] if isinstance(condition, Lanes) else []

    def first_lane(self) -> Cell:
        """Return whether each thread is lane 0 of its warp."""
        if not self.threads:
            return int(self.lane == 0)
        return cell_of(int(thread % WARP == 0) for thread in self.threads)

    def together(self, opcode: str, mask: Cell) -> None:
        """DivergedError unless all lanes of the mask execute an instruction; None: the warp."""
        if not self.state.diverged and mask in (None, 0xFFFFFFFF):
            return
        masks: dict[int, set[int]] = {}  # mask -> lanes that execute with it
        warp = self.active[0] // WARP
        for position in self.active:
            if position // WARP == warp:
                value = at(mask, position)
                masks.setdefault(0xFFFFFFFF if value is None else value, set()).add(position % WARP)
        for value, lanes in masks.items():
            if {lane for lane in range(WARP) if value >> lane & 1} != lanes:
                code = "PL0934" if opcode.startswith(("bar.sync", "barrier", "bar.arrive")) else ""
                raise DivergedError(code or "PL0707", opcode, sorted(lanes))

    def branched(self, edge: tuple[str, int, int]) -> None:
        """Record that a branch was taken, or not."""
        self.edges.add(edge)

    # -- data
    def _forget(self, code: FunctionCode, regs: Registers, position: int) -> None:
        targets = [item for item in code.successors(position) if item <= position]
        first = min([*targets, *self._loop_heads(code, position)], default=position)
        for name in code.written(first, position):
            regs[name] = None

    def _loop_heads(self, code: FunctionCode, position: int) -> list[int]:
        return [target for jump, target in code.jumps if target <= position <= jump]

    def finish(self) -> None:
        """End a work tile: an operation that is still pending is a separate event."""
        self._executed = 0
        if self._group:
            self.state.emit(Event("wgmma without wgmma.commit_group"))
        for event in self.pending.stores:
            self.state.emit(Event("store without cp.async.bulk.commit_group", event.target))
        if self.pending.announced:
            self.state.emit(Event("mbarrier.expect_tx without an arrival"))

    # -- operations
    def call(self, name: str, arguments: Sequence[Cell]) -> None:
        """Interpret a call of a function of the module or of the runtime."""
        if self.module.function(name) is not None:
            self.run(name, arguments)
            return
        if not self.threads:
            call_runtime(self.state, self.names, name, [uniform(cell) for cell in arguments])
            return
        if name != "pl_ring_advance" and self.state.diverged:
            raise DivergedError("PL0934", name, self.state.diverged)
        skipped = VARYING_ARGUMENTS.get(name, -1)  # the runtime uses the value of each thread
        if not any(
            isinstance(cell, Lanes) for number, cell in enumerate(arguments) if number != skipped
        ):
            values = [at(cell, self.active[0]) for cell in arguments]
            call_runtime(self.state, self.names, name, values)
            return
        size = len(self.threads)
        columns = [cell.values if isinstance(cell, Lanes) else (cell,) * size for cell in arguments]
        if skipped >= 0:
            columns[skipped] = (0,) * size
        rows = list(zip(*columns, strict=True))
        varied = {position: rows[position] for position in self.active}
        self._call_for_each(name, varied)

    def _call_for_each(self, name: str, varied: dict[int, tuple[Value, ...]]) -> None:
        """Interpret a call of the runtime with the arguments of every warp: one effect for all."""
        first = next(iter(varied.values()))
        others = {found for found in varied.values() if found != first}
        leaders: dict[int, tuple[Value, ...]] = {}
        for position, found in varied.items():
            if found != leaders.setdefault(position // WARP, found):
                raise VariesError  # the elected lane is not known
        if others:
            log, effects = self.state.log, {}
            for found in (first, *others):
                self.state.log = ExecutionLog()
                call_runtime(self.state, self.names, name, found)
                effects[found] = self.state.log.events, self.state.log.accesses
            self.state.log = log
            if any(effects[found] != effects[first] for found in others):
                raise WarpsDifferError(_alike(varied, effects))
        call_runtime(self.state, self.names, name, first)

    def wgmma(self, statement: Statement, regs: Registers) -> None:
        """Interpret fence, mma_async, commit_group or wait_group."""
        arguments = statement.arguments()
        if statement.opcode.startswith("wgmma.fence"):
            self._fenced = True
        elif statement.opcode.startswith("wgmma.mma_async"):
            if not self._fenced:
                self.state.emit(Event("wgmma without wgmma.fence"))
                self._fenced = True
            for text in arguments[1:3]:
                if not text.startswith("{"):
                    cell = cell_operand(text)(regs)
                    for value in {at(cell, position) for position in self.active}:
                        ring, stage, tile = operand_member(self.state, self.names, value)
                        self._group.setdefault((ring, stage), set()).add(tile)
        elif statement.opcode.startswith("wgmma.commit_group"):
            rings = self.names.multiplied
            order = sorted(
                self._group, key=lambda item: (item[0] in rings and rings.index(item[0]), item)
            )
            for ring, stage in order:
                port, read = self.names.contract.port(ring), self._group[ring, stage]
                whole = port.proxy != "async" or len(read) == len(port.members)
                only = "" if whole else f"{', '.join(sorted(read))} only"
                self.state.emit(Event("mma", ring, stage, member=only))
            self._group.clear()
        elif statement.opcode.startswith("wgmma.wait_group"):
            self._fenced = False  # accumulators may be accessed now: the next wgmma needs a fence
            self.state.emit(Event("await", "mma", count=operand(arguments[0])(regs)))

    def shuffle(self, value: Cell, source: Cell) -> Cell:
        """Return the result of `shfl.idx`; None if the source lane has not been interpreted."""
        if self.threads:
            sources = [at(source, position) for position in range(len(self.threads))]
            return cell_of(
                None if lane is None else at(value, position // WARP * WARP + lane % WARP)
                for position, lane in enumerate(sources)
            )
        lane = uniform(source)
        if lane is None or lane & 31:
            return None
        self._shuffles += 1
        known = uniform(value)
        if self.lane == 0:
            self.shuffles[self._shuffles - 1 :] = [known]
            return known
        return self.shuffles[self._shuffles - 1] if self._shuffles <= len(self.shuffles) else None


def _alike(
    varied: dict[int, tuple[Value, ...]], effects: Mapping[tuple[Value, ...], object]
) -> list[tuple[int, ...]]:
    """Return the warps of a group by the effect of their call."""
    parts: list[tuple[object, list[int]]] = []
    for position in sorted(varied)[::WARP]:
        effect = effects[varied[position]]
        for other, warps in parts:
            if other == effect:
                warps.append(position // WARP)
                break
        else:
            parts.append((effect, [position // WARP]))
    return [tuple(warps) for _, warps in parts]


def check_progress(code: FunctionCode, regs: Registers, position: int) -> None:
    """Raise InconclusiveError for a loop that only a change of memory at one address ends."""
    around = [(first, last) for last, first in code.jumps if first <= position <= last]
    if not around:
        return
    first, last = min(around, key=lambda ends: ends[1] - ends[0])
    if all(first <= following <= last for following in code.successors(position)):
        return
    writers: dict[str, list[Statement]] = {}
    for statement in code.instructions[first : last + 1]:
        for name in written_registers(statement):
            writers.setdefault(name, []).append(statement)
    pending, visited = [code.instructions[position].guard.lstrip("@!")], set[str]()
    polled: list[Statement] = []
    while pending:
        name = pending.pop()
        if name in visited or name not in writers:
            continue
        visited.add(name)
        for statement in writers[name]:
            sources = _sources(statement)
            if name in _reached(sources, writers):
                return  # it counts: each iteration brings the end nearer
            unchanged = all(item not in writers or regs.get(item) is not None for item in sources)
            if statement.base == "ld" and unchanged and regs.get(name) is None:
                polled.append(statement)
            pending += sources
    if polled:
        shown = " ".join(polled[0].text.split())
        raise InconclusiveError(f"a loop that waits until `{shown}` loads another value")


def _sources(statement: Statement) -> list[str]:
    return registers_of(" ".join([*statement.arguments()[1:], statement.guard]))


def _reached(names: list[str], writers: dict[str, list[Statement]]) -> set[str]:
    """Return registers on which some registers depend within a loop."""
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in found and name in writers:
            found.add(name)
            for statement in writers[name]:
                pending += _sources(statement)
    return found
