"""How is a role with raw ports run?  Every lane by itself, with waits that fail and that do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pipelink_rules.audit.compare import Difference, StageRotation
from pipelink_rules.audit.decode_ptx import Value
from pipelink_rules.audit.eager import eager_difference
from pipelink_rules.audit.execution_log import ExecutionLog
from pipelink_rules.audit.expected_trace import Expansion, ExpectedTile
from pipelink_rules.audit.input_cases import InputCase, scenario_of
from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.machine_state import PORTS, RELOCATIONS, WORK
from pipelink_rules.audit.together import Lane, LaneMerger, without_marks
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Role
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import Module

_FEW = 3  # work items of lanes that are not the first of their role
_OTHER_STAGES = 3  # a number that a source with a fixed count of stages does not have


@dataclass(frozen=True)
class LaneFound:
    """A difference, in which work item, by which warp."""

    difference: Difference
    item: dict[str, int]
    warp: int
    trace: ExecutionLog


@dataclass
class _Runs:
    """The lanes of a role on one series of work items."""

    module: Module
    variant: Variant
    role: Role
    scenario: InputCase
    codes: Interpreter | None = None
    shuffles: list[Value] = field(default_factory=list)  # of lane 0 of the warp

    def lane(self, lane: Lane, items: int, *, eager: bool = False) -> list[ExecutionLog]:
        """One lane's traces of the first work items."""
        warp, number = lane
        first = self.codes
        shuffles: list[Value] = self.shuffles if number else []
        machine = Interpreter(
            self.module,
            self.scenario.names,
            self.scenario.state(),
            number,
            shuffles,
            first.codes if first else {},
            32 * warp + number,
            eager=eager,
        )
        self.codes = first or machine
        traces = []
        for item in self.scenario.items[:items]:
            self.scenario.give(machine.state, item)
            machine.state.trace = ExecutionLog()
            machine.run(
                self.variant.symbol(self.role.name),
                [RELOCATIONS, PORTS, WORK, machine.thread],
            )
            machine.finish()
            traces.append(machine.state.trace)
        if number == 0:
            self.shuffles = machine.shuffles
        return traces


def compare_lanes(
    module: Module, variant: Variant, role: Role, done: set[tuple[str, str]]
) -> Iterator[LaneFound]:
    """Differences of a role with raw ports; `done` gets the accesses that were made."""
    scenario = scenario_of(variant.contract, role)
    runs = _Runs(module, variant, role, scenario)
    promises = _promises(scenario)
    lanes = [(warp, lane) for warp in range(evaluate(role.warps, {})) for lane in range(32)]
    traces: dict[Lane, list[ExecutionLog]] = {}
    for lane in lanes:
        everything = lane[0] == 0
        count = len(scenario.items) if everything else min(_FEW, len(scenario.items))
        traces[lane] = runs.lane(lane, count)
        done |= {
            (access.kind, access.target)
            for trace in traces[lane]
            for found in trace.accesses
            for access in found
        }
    yield from _judge(scenario, promises, traces, variant)
    lead = max(traces, key=lambda lane: sum(len(trace.events) for trace in traces[lane]))
    yield from _eager(runs, scenario, traces[lead], lead)
    other = scenario_of(variant.contract, role, _OTHER_STAGES)
    again = _Runs(module, variant, role, other, runs.codes)
    warp = {lane: again.lane(lane, len(other.items)) for lane in lanes if lane[0] == lead[0]}
    yield from _judge(other, _promises(other), warp, variant, whole=len(lanes) == len(warp))


def _promises(scenario: InputCase) -> list[ExpectedTile]:
    expansion = Expansion(scenario)
    return [expansion.work_item(item) for item in scenario.items]


def _judge(
    scenario: InputCase,
    promises: list[ExpectedTile],
    traces: dict[Lane, list[ExecutionLog]],
    variant: Variant,
    *,
    whole: bool = True,
) -> Iterator[LaneFound]:
    """whole: the lanes are all of the role."""
    raw, turns = scenario.names.raw, StageRotation(variant.contract)
    for number, item in enumerate(scenario.items):
        seen = {lane: found[number] for lane, found in traces.items() if number < len(found)}
        if len(seen) < len(traces):
            return  # the other warps were not run so far
        found = LaneMerger(promises[number], variant.contract, raw).judge(seen, whole=whole)
        if found is not None:
            (warp, lane), difference = found
            yield LaneFound(difference, item, warp, without_marks(seen[warp, lane]))
            return
        lead = max(seen, key=lambda lane: len(seen[lane].events))
        difference_in_turn = turns.check(without_marks(seen[lead]))
        if difference_in_turn is not None:
            yield LaneFound(difference_in_turn, item, lead[0], without_marks(seen[lead]))
            return


def _eager(
    runs: _Runs, scenario: InputCase, patient: list[ExecutionLog], lead: Lane
) -> Iterator[LaneFound]:
    """The same lane where no wait ever fails."""
    runs.lane((lead[0], 0), len(patient), eager=True)  # what lane 0 shares with its warp
    eager = runs.lane(lead, len(patient), eager=True)
    for item, before, after in zip(scenario.items, patient, eager, strict=False):
        difference = eager_difference(before.events, after.events)
        if difference is not None:
            yield LaneFound(difference, item, lead[0], without_marks(after))
            return
