"""Does a role do what its contract says?  Runs it and compares; findings PL0915..PL0934."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipelink_rules.audit.audit_scheduler import scheduler_difference
from pipelink_rules.audit.compare import Difference, StageRotation, accesses, first_event, missing
from pipelink_rules.audit.copy_coordinates import coordinates_vary
from pipelink_rules.audit.execution_log import ExecutionLog
from pipelink_rules.audit.expected_trace import Expansion, ExpectedTile
from pipelink_rules.audit.input_cases import InputCase, crosses_ctas, scenario_of
from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.lanes import LaneFound, compare_lanes
from pipelink_rules.audit.machine_state import (
    PORTS,
    RELOCATIONS,
    WORK,
    InconclusiveError,
    RestrictionError,
)
from pipelink_rules.audit.pieces import ScratchSlices
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Port, Role
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import Module

_SHOWN = 3  # events before the difference that a finding quotes


def audit_roles(module: Module, variant: Variant, *, strict: bool = False) -> list[Diagnostic]:
    """One finding per role at most: the first difference; a warning where nobody can say.

    strict: what cannot be audited is an error.
    """
    findings = []
    for role in variant.contract.roles:
        if module.function(variant.symbol(role.name)) is None:
            continue
        found = _audit(module, variant, role)
        if found is not None:
            softer = found.code == "PL0932" and not strict
            findings.append(replace(found, severity="warning") if softer else found)
    return findings


def _audit(module: Module, variant: Variant, role: Role) -> Diagnostic | None:
    try:
        if role.schedule:
            promise = scheduler_difference(module, variant, role)
            return None if promise is None else _finding(variant, role, promise)
        return _compare(module, variant, role)
    except RestrictionError as why:
        found = Difference(
            why.code, why.message, None, why.target or role.name, why.expected, why.found
        )
        broken = _finding(variant, role, found)
        return replace(broken, helps=why.helps) if why.helps else broken
    except InconclusiveError as why:
        return _finding(
            variant,
            role,
            Difference(
                "PL0932",
                "cannot be audited",
                None,
                role.name,
                "operations that do not depend on data",
                str(why),
            ),
        )


def _compare(module: Module, variant: Variant, role: Role) -> Diagnostic | None:
    if any(port.raw for port in variant.contract.ports if port.role == role.name):
        return _compare_raw(module, variant, role)
    scenario = scenario_of(variant.contract, role)
    warps = evaluate(role.warps, {})
    expansion = Expansion(scenario)
    promises = [expansion.work_item(item) for item in scenario.items]
    done: set[tuple[str, str]] = set()
    ports = [port for port in variant.contract.ports if port.role == role.name]
    few = len(scenario.items) if any(map(crosses_ctas, ports)) else min(len(scenario.items), 3)
    first = Interpreter(module, scenario.names, scenario.state())
    for warp in range(warps):
        items = len(scenario.items) if warp == 0 else few if warp == warps - 1 else 3
        machine = first if warp == 0 else _machine(first, scenario, 32 * warp)
        for found in _run(machine, variant, role, scenario, promises[:items], warp):
            return _finding(variant, role, found.difference, found)
        done |= machine.performed
        if warp in (0, warps - 1):
            other = _machine(machine, scenario, 32 * warp + 31, alike=True)
            for found in _run(other, variant, role, scenario, promises[:few], warp):
                return _finding(variant, role, _part_of_a_warp(found.difference), found)
            done |= other.performed
    moved = coordinates_vary(module, variant, role, scenario, first)
    if moved is not None:
        return _finding(variant, role, moved)
    return _never(variant, role, done, promises) or _arrivals(variant, role, warps, scenario)


def _compare_raw(module: Module, variant: Variant, role: Role) -> Diagnostic | None:
    done: set[tuple[str, str]] = set()
    for found in compare_lanes(module, variant, role, done):
        return _finding(variant, role, found.difference, found)
    scenario = scenario_of(variant.contract, role)
    expansion = Expansion(scenario)
    promises = [expansion.work_item(item) for item in scenario.items]
    warps = evaluate(role.warps, {})
    return _never(variant, role, done, promises) or _arrivals(variant, role, warps, scenario)


def _never(
    variant: Variant, role: Role, done: set[tuple[str, str]], promises: list[ExpectedTile]
) -> Diagnostic | None:
    for op in missing(done, promises, variant.contract):
        what = f"does not `{op.verb} {op.target}`"
        difference = Difference(
            "PL0931", what, op, op.target, f"{op.verb} {op.target}", "no such access by any warp"
        )
        return _finding(variant, role, difference)
    return None


def _machine(
    first: Interpreter, scenario: InputCase, thread: int, *, alike: bool = False
) -> Interpreter:
    """Another thread; one of the same warp knows what its lane 0 gave."""
    shuffles = first.shuffles if alike else []
    return Interpreter(
        first.module,
        scenario.names,
        scenario.state(),
        thread % 32,
        shuffles,
        first.codes,
        thread,
    )


def _run(
    machine: Interpreter,
    variant: Variant,
    role: Role,
    scenario: InputCase,
    promises: list[ExpectedTile],
    warp: int,
) -> Iterator[LaneFound]:
    turns, pieces = StageRotation(variant.contract), ScratchSlices(variant.contract, role)
    for item, promise in zip(scenario.items, promises, strict=False):
        scenario.give(machine.state, item)
        machine.state.trace, machine.state.touched = ExecutionLog(), set()
        arguments = [RELOCATIONS, PORTS, WORK, machine.thread]
        machine.run(variant.symbol(role.name), arguments)
        machine.finish()
        trace = machine.state.trace
        difference = first_event(promise, trace)
        if difference is not None:
            yield LaneFound(difference, item, warp, trace)
            return
        for difference in accesses(promise, trace, variant.contract):
            yield LaneFound(difference, item, warp, trace)
            return
        environment = {**scenario.symbols, **item}
        difference = turns.check(trace) or pieces.check(environment, machine.state.touched)
        if difference is not None:
            yield LaneFound(difference, item, warp, trace)
            return
        for found in trace.accesses:
            machine.performed |= {(access.kind, access.target) for access in found}


def _part_of_a_warp(difference: Difference) -> Difference:
    return replace(difference, message=f"does not act as whole warps: lane 31 {difference.message}")


def _arrivals(variant: Variant, role: Role, warps: int, scenario: InputCase) -> Diagnostic | None:
    """Every warp of the role arrives once per item: the runtime elects one lane of each."""
    counting = {ring.name for ring in scenario.names.rings.values()}
    counting |= {
        port.name
        for port in variant.contract.ports
        if (port.role, port.space, port.direction) == (role.name, "counter", "out")
    }
    for name in sorted(counting):
        port = variant.contract.port(name)
        promised = evaluate(port.arrivals, {})
        if promised != warps and not port.raw:
            difference = Difference(
                "PL0933",
                f"does not arrive {promised} times per "
                + ("signal" if port.space == "counter" else "item")
                + f" on `{port.name}`",
                None,
                port.name,
                f"arrivals: {promised}",
                f"arrivals: {warps}, one of each warp",
            )
            return _finding(variant, role, difference)
    return None


def _finding(
    variant: Variant, role: Role, difference: Difference, found: LaneFound | None = None
) -> Diagnostic:
    contract = variant.contract
    port = {item.name: item for item in contract.ports}.get(difference.target)
    span = difference.op.span if difference.op else None
    if span is None and port is not None and difference.code in _OF_A_PORT:
        span = port.where("arrivals") if difference.code == "PL0933" else port.span
    if difference.code == "PL0937":
        declared = contract.work.fields if contract.work else ()
        span = next((one.span for one in declared if one.name == difference.target), None)
    span = span or role.where("body") or contract.span
    trace: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    if found is not None:
        events = found.trace.events
        start = max(0, difference.position - _SHOWN)
        trace = tuple(str(event) for event in events[start : difference.position + 1])
        fields = ", ".join(f"{name}={value}" for name, value in found.item.items())
        notes = (f"run as warp {found.warp} with {fields or 'a work item without fields'}",)
    return Diagnostic(
        difference.code,
        f"role `{role.name}` of `{contract.component}` {difference.message}",
        (Label(span, _label(role, difference, port)),) if span else (),
        expected=difference.expected,
        found=difference.found,
        notes=notes,
        trace=trace,
        helps=_HELP.get(
            difference.code, ("make the body and the source say the same, in the same order",)
        ),
        subject=f"{contract.component}.{role.name}",
    )


def _label(role: Role, difference: Difference, port: Port | None) -> str:
    if difference.op is not None:
        return "says so"
    return "this port" if port and difference.code in _OF_A_PORT else f"role `{role.name}`"


_OF_A_PORT = ("PL0933", "PL0935", "PL0936")  # shown at the port, not at the body
_HELP = {
    "PL0807": (
        "name every field that the coordinates depend on",
        "or leave `along` out: every CTA of a cluster then copies for itself",
    ),
    "PL0919": ("call pipelink::wgmma_fence() before the first wgmma after a wait",),
    "PL0932": (
        "let branches around operations depend on the work item and the thread only",
        "use the runtime's operations, or the common forms of barrier and copy instructions",
    ),
    "PL0933": (
        "arrivals: the warps of the role, each arrives once per item; all arrivals of all its "
        "threads where the port is raw",
    ),
    "PL0935": (
        "call the runtime (<pipelink/runtime.cuh>), or say `raw: true` on the port",
        "named barriers of its own a role may have beside a raw port only: pl_barrier_sync",
    ),
    "PL0936": (
        "leave it out: what other CTAs wait for belongs to the linker",
        "sums of the threads of a CTA: in a buffer of shared memory",
    ),
    "PL0937": ("let code and contract of the schedule agree: others rely on it",),
}
