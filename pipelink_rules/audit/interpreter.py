"""Abstract interpreter of a role's PTX: one lane of one warp, with unknown data.

A branch on data is interpreted on both sides up to their join.  If the sides differ in anything
that other threads observe, the audit is inconclusive; otherwise their states are merged.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pipelink_rules.audit.control_flow import FunctionCode, function_code
from pipelink_rules.audit.decode_ptx import Registers, Value, operand
from pipelink_rules.audit.execution_log import Event, ExecutionLog
from pipelink_rules.audit.instruction_semantics import effect_of
from pipelink_rules.audit.machine_state import (
    LOCAL,
    THIS_CTA,
    Effect,
    InconclusiveError,
    Names,
    PendingOperations,
    State,
)
from pipelink_rules.audit.runtime_calls import call_runtime, operand_stage
from pipelink_rules.toolkit.ptx import Module, Statement

MOST_INSTRUCTIONS = 100_000  # of one lane, to end a loop on data: shipped roles need 4,000
_LOCAL = re.compile(r"\.local\b.*?([\w$]+)\s*\[")


Key = TypeVar("Key")
Entry = TypeVar("Entry")


@dataclass(frozen=True)
class _Side:
    """The state after one side of a branch."""

    registers: Registers
    memory: dict[int, int]
    log: ExecutionLog
    pending: PendingOperations


def _equal_entries(left: dict[Key, Entry], right: dict[Key, Entry]) -> dict[Key, Entry]:
    return {key: left[key] for key in left if left[key] == right.get(key)}


@dataclass
class Interpreter:
    """One lane.  `shuffles`: values of lane 0 at each uniform shuffle; recorded by lane 0."""

    module: Module
    names: Names
    state: State
    lane: int = 0
    shuffles: list[Value] = field(default_factory=list)
    codes: dict[str, tuple[FunctionCode, list[Effect]]] = field(default_factory=dict)  # decoded
    thread: int = 0
    first_try: bool = False  # its own waits succeed at their first try
    pending: PendingOperations = field(default_factory=PendingOperations)
    _shuffles: int = 0  # passed so far
    _executed: int = 0  # instructions
    _fenced: bool = False
    _group: set[tuple[str, int]] = field(default_factory=set)

    def run(self, name: str, arguments: Sequence[Value]) -> None:
        """Interpret a function from its beginning to its end."""
        code, effects = self._decoded(name)
        regs: Registers = dict(zip(code.parameters, arguments, strict=False))
        regs["%laneid"], regs["%cluster_ctarank"] = self.lane, THIS_CTA
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
                raise InconclusiveError("a loop whose end depends on data")
            following = effects[position](self, regs)
            if following is None:
                position += 1
            elif following >= 0:
                position = following
            elif position in forks:  # another iteration of a loop whose length depends on data
                if self.state.log.events:
                    raise InconclusiveError("operations in a loop whose length depends on data")
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
        self.state.log = before.log
        common = _equal_entries(left.registers, right.registers)
        regs.clear()
        regs.update(common)
        self.state.memory = _equal_entries(left.memory, right.memory)
        return join

    def _forget(self, code: FunctionCode, regs: Registers, position: int) -> None:
        targets = [item for item in code.successors(position) if item <= position]
        first = min([*targets, *self._loop_heads(code, position)], default=position)
        for name in code.written(first, position):
            regs[name] = None

    def _loop_heads(self, code: FunctionCode, position: int) -> list[int]:
        return [target for jump, target in code.jumps if target <= position <= jump]

    def finish(self) -> None:
        """End a work tile: an operation that is still pending is a separate event."""
        if self._group:
            self.state.emit(Event("wgmma without wgmma.commit_group"))
        for event in self.pending.stores:
            self.state.emit(Event("store without cp.async.bulk.commit_group", event.target))
        if self.pending.announced:
            self.state.emit(Event("mbarrier.expect_tx without an arrival"))

    def call(self, name: str, arguments: Sequence[Value]) -> None:
        """Interpret a call of a function of the module or of the runtime."""
        if self.module.function(name) is not None:
            self.run(name, arguments)
        else:
            call_runtime(self.state, self.names, name, arguments)

    def wgmma(self, statement: Statement, regs: Registers) -> None:
        """Interpret fence, mma_async, commit_group or wait_group."""
        arguments = statement.arguments()
        if statement.opcode.startswith("wgmma.fence"):
            self._fenced = True
        elif statement.opcode.startswith("wgmma.mma_async"):
            if not self._fenced:
                self.state.emit(Event("wgmma without wgmma.fence"))
                self._fenced = True
            shared = [text for text in arguments[1:3] if not text.startswith("{")]
            descriptors = [operand(text)(regs) for text in shared]
            self._group.add(operand_stage(self.state, descriptors))
        elif statement.opcode.startswith("wgmma.commit_group"):
            for ring, stage in sorted(self._group):
                self.state.emit(Event("mma", ring, stage))
            self._group.clear()
        elif statement.opcode.startswith("wgmma.wait_group"):
            self._fenced = False  # accumulators may be accessed now: the next wgmma needs a fence
            self.state.emit(Event("await", "mma", count=operand(arguments[0])(regs)))

    def shuffle(self, value: Value, source: Value) -> Value:
        """Return the result of `shfl.idx`; None if the source lane has not been interpreted."""
        if source is None or source & 31:
            return None
        self._shuffles += 1
        if self.lane == 0:
            self.shuffles[self._shuffles - 1 :] = [value]
            return value
        return self.shuffles[self._shuffles - 1] if self._shuffles <= len(self.shuffles) else None
