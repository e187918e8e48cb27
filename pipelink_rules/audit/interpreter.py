"""How does a role's code run, step by step?  One lane of one warp; data are unknown.

Where a branch depends on data both sides run up to the place where they meet again: if others can
see a difference the run ends as unaudited, else what the sides left behind is merged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipelink_rules.audit.control_flow import FunctionCode, code_of
from pipelink_rules.audit.decode_ptx import Registers, Value, operand
from pipelink_rules.audit.execution_log import Event, ExecutionLog
from pipelink_rules.audit.instruction_semantics import Step, step_of
from pipelink_rules.audit.machine_state import LOCAL, InconclusiveError, State
from pipelink_rules.audit.own_memory import THIS_CTA
from pipelink_rules.audit.pending_operations import PendingOperations
from pipelink_rules.audit.runtime_calls import Names, call, mma
from pipelink_rules.toolkit.ptx import Module, Statement

STEPS = 100_000  # of one lane; more is a loop that does not end: shipped roles take 4,000
_LOCAL = re.compile(r"\.local\b.*?([\w$]+)\s*\[")


@dataclass
class Interpreter:
    """One lane.  `shuffles`: what lane 0 gave at each uniform shuffle; recorded by lane 0."""

    module: Module
    names: Names
    state: State
    lane: int = 0
    shuffles: list[Value] = field(default_factory=list)
    codes: dict[str, tuple[FunctionCode, list[Step]]] = field(default_factory=dict)  # decoded once
    thread: int = 0
    performed: set[tuple[str, str]] = field(default_factory=set)
    eager: bool = False  # its own waits succeed at their first try
    begun: PendingOperations = field(default_factory=PendingOperations)
    _shuffle: int = 0
    _steps: int = 0
    _fenced: bool = False
    _group: set[tuple[str, int]] = field(default_factory=set)

    def run(self, name: str, arguments: Sequence[Value]) -> None:
        """Runs a function from its beginning to its end."""
        code, steps = self._compiled(name)
        regs: Registers = dict(zip(code.parameters, arguments, strict=False))
        regs["%laneid"], regs["%cluster_ctarank"] = self.lane, THIS_CTA
        for number, local in enumerate(_LOCAL.findall(code.function.body)):
            regs[local] = LOCAL + (len(name) + number << 24)
        self._until(code, steps, regs, 0, len(steps), frozenset())

    def _compiled(self, name: str) -> tuple[FunctionCode, list[Step]]:
        if name not in self.codes:
            function = self.module.function(name)
            if function is None:
                raise InconclusiveError(f"a call of `{name}`")
            code = code_of(function)
            self.codes[name] = code, [step_of(code, item) for item in code.instructions]
        return self.codes[name]

    def _until(
        self,
        code: FunctionCode,
        steps: list[Step],
        regs: Registers,
        position: int,
        stop: int,
        forks: frozenset[int],
    ) -> None:
        """Runs up to a position; -1 of a step: a branch that depends on data."""
        while position != stop and position < len(steps):
            self._steps += 1
            if self._steps > STEPS:
                raise InconclusiveError("a loop whose end depends on data")
            following = steps[position](self, regs)
            if following is None:
                position += 1
            elif following >= 0:
                position = following
            elif position in forks:  # once more around a loop that data end
                if self.state.trace.events:
                    raise InconclusiveError("operations in a loop whose length depends on data")
                self._forget(code, regs, position)
                return
            else:
                position = self._fork(code, steps, regs, position, forks)

    def _fork(
        self,
        code: FunctionCode,
        steps: list[Step],
        regs: Registers,
        position: int,
        forks: frozenset[int],
    ) -> int:
        join = code.joins.get(position, len(steps))
        before, memory, begun = self.state.trace, dict(self.state.memory), self.begun
        sides = []
        shuffle = self._shuffle
        for start in code.successors(position):
            self.state.trace, self.state.memory = ExecutionLog(), dict(memory)
            self.begun = begun.copy()
            self._shuffle = shuffle
            mine = dict(regs)
            self._until(code, steps, mine, start, join, forks | {position})
            sides.append((mine, self.state.memory, self.state.trace, self.begun))
        (
            (left, left_memory, left_trace, left_begun),
            (
                right,
                right_memory,
                right_trace,
                right_begun,
            ),
        ) = sides
        if left_begun != right_begun:
            raise InconclusiveError(
                "a barrier or copy on one side of a branch that depends on data"
            )
        if left_trace.events != right_trace.events:
            shown = [str(event) for event in (*left_trace.events, *right_trace.events)]
            raise InconclusiveError(f"`{shown[0]}` on one side of a branch that depends on data")
        for seen, more in zip(left_trace.accesses, right_trace.accesses, strict=True):
            seen |= more
        before.extend(left_trace)
        self.state.trace = before
        regs.clear()
        regs.update({key: left[key] for key in left if left[key] == right.get(key)})
        self.state.memory = {
            key: left_memory[key]
            for key in left_memory
            if left_memory[key] == right_memory.get(key)
        }
        return join

    def _forget(self, code: FunctionCode, regs: Registers, position: int) -> None:
        targets = [item for item in code.successors(position) if item <= position]
        first = min([*targets, *self._loop_heads(code, position)], default=position)
        for name in code.written(first, position):
            regs[name] = None

    def _loop_heads(self, code: FunctionCode, position: int) -> list[int]:
        return [target for place, target in code.jumps if target <= position <= place]

    def finish(self) -> None:
        """The end of a work item: what was begun and is not ended is an event of its own."""
        if self._group:
            self.state.emit(Event("wgmma without wgmma.commit_group"))
        for event in self.begun.stores:
            self.state.emit(Event("store without cp.async.bulk.commit_group", event.target))
        if self.begun.announced:
            self.state.emit(Event("mbarrier.expect_tx without an arrival"))

    def do_call(self, name: str, arguments: Sequence[Value]) -> None:
        """A call: of the module's own function, or of the runtime."""
        if self.module.function(name) is not None:
            steps = self._steps
            self.run(name, arguments)
            self._steps = max(self._steps, steps)
        else:
            call(self.state, self.names, name, arguments)

    def do_wgmma(self, statement: Statement, regs: Registers) -> None:
        """fence, mma_async, commit_group, wait_group."""
        arguments = statement.arguments()
        if statement.opcode.startswith("wgmma.fence"):
            self._fenced = True
        elif statement.opcode.startswith("wgmma.mma_async"):
            if not self._fenced:
                self.state.emit(Event("wgmma without wgmma.fence"))
                self._fenced = True
            shared = [text for text in arguments[1:3] if not text.startswith("{")]
            self._group.add(mma(self.state, self.names, [operand(text)(regs) for text in shared]))
        elif statement.opcode.startswith("wgmma.commit_group"):
            for ring, stage in sorted(self._group):
                self.state.emit(Event("mma", ring, stage))
            self._group.clear()
        elif statement.opcode.startswith("wgmma.wait_group"):
            self._fenced = False  # the accumulators may be touched: fence before the next
            self.state.emit(Event("await", "mma", count=operand(arguments[0])(regs)))

    def do_shuffle(self, own: Value, source: Value) -> Value:
        """`shfl.idx`: the value of one lane; known where that lane has been run."""
        if source is None or source & 31:
            return None
        self._shuffle += 1
        if self.lane == 0:
            self.shuffles[self._shuffle - 1 :] = [own]
            return own
        return self.shuffles[self._shuffle - 1] if self._shuffle <= len(self.shuffles) else None
