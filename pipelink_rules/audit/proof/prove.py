"""The proof of one role: PTX and variant -> Proof, or the difference, or the reason why not.

Proved is, for every number of trips, stage count, first item, work tile, warp and lane that the
contract admits: the operations are those of the body, in order, on the right item, with the right
bytes, destination and coordinates, and every access to memory lies in what the contract gives.
Values are not proved: what is added, multiplied or rounded is the tests' business.
"""

import gc
import re
import time
from dataclasses import replace

from pipelink_rules.audit.control_flow import function_code
from pipelink_rules.audit.proof.body import Body
from pipelink_rules.audit.proof.execute import Executor
from pipelink_rules.audit.proof.inputs import Inputs
from pipelink_rules.audit.proof.prover import Prover, shown
from pipelink_rules.audit.proof.schedule import ScheduleInputs, prove_fields
from pipelink_rules.audit.proof.shared_writes import refuse_races, refuse_same_stage
from pipelink_rules.audit.proof.state import WarpState
from pipelink_rules.audit.proof.verdict import (
    DeadPathError,
    Proof,
    RefutedError,
    UnprovedError,
)
from pipelink_rules.audit.proof.written_bytes import require_written
from pipelink_rules.model.contract import Role
from pipelink_rules.model.variant import Variant
from pipelink_rules.solver import terms
from pipelink_rules.solver.queries import SolverError, UndecidedError, exclusive
from pipelink_rules.solver.terms import Pointer
from pipelink_rules.toolkit.ptx import Function, Module

_LOCAL = re.compile(r"\.local\b[^;]*?([\w$]+)\s*\[")  # variables of the function


def prove_role(module: Module, variant: Variant, role: Role) -> Proof:
    """Prove that a role's code performs its body.

    Raise RefutedError with a counterexample where it does not, UnprovedError where the proof does
    not go through.
    """
    ports = [port for port in variant.contract.ports if port.role == role.name]
    if any(port.raw for port in ports):
        raise UnprovedError("raw ports, whose instructions are not modeled")
    start = time.perf_counter()
    # Terms belong to one context of the solver, and freeing one is a use of it: no other thread may
    # free terms of this proof, and none may be left behind for it.
    with exclusive:
        collects = gc.isenabled()
        gc.disable()
        gc.freeze()  # what is older need not be searched
        try:
            outcome = _outcome(module, variant, role)
        finally:
            terms.forget_terms()
            gc.collect()
            gc.unfreeze()
            if collects:
                gc.enable()
    if isinstance(outcome, Proof):
        return replace(outcome, seconds=time.perf_counter() - start)
    raise outcome


def _outcome(module: Module, variant: Variant, role: Role) -> Proof | RefutedError | UnprovedError:
    """Return the proof, or an error that holds no term: neither a model nor a traceback."""
    try:
        return _prove(module, variant, role)
    except RefutedError as why:
        plain = RefutedError(
            why.code,
            str(why),
            op=why.op,
            target=why.target,
            expected=why.expected,
            found=why.found,
        )
        plain.abstract, plain.values, plain.case = why.abstract, why.values, why.case
        return plain
    except UnprovedError as why:
        return type(why)(str(why))
    except (UndecidedError, SolverError) as why:
        return UnprovedError(f"the solver gave up on: {why}")
    except RecursionError:
        return UnprovedError("code that is nested too deeply")


def _prove(module: Module, variant: Variant, role: Role) -> Proof:
    function = module.function(variant.symbol(role.name))
    if function is None:
        raise UnprovedError("no code for this role")
    if role.scheduler:
        return _prove_schedule(module, variant, role, function)
    inputs = Inputs(variant.contract, role)
    tensor = {port.name for port in variant.contract.ports if port.space == "tensor_memory"}
    prover = Prover(inputs, module, Body(role.body, frozenset(tensor)))
    prover.require_consistent()
    try:
        return _run(prover, function)
    except RefutedError as why:
        if why.model is not None:
            why.values = inputs.values(why.model)
        raise


def _prove_schedule(module: Module, variant: Variant, role: Role, function: Function) -> Proof:
    """Prove that the code of a tile scheduler computes its fields, and does nothing else."""
    inputs = ScheduleInputs(variant.contract, role)
    prover = Prover(inputs, module, Body(()))
    prover.require_consistent()
    code = function_code(function)
    state = WarpState(inputs.body_state(prover.body.start), memory=dict(inputs.memory))
    state.registers = dict(zip(code.parameters, inputs.arguments, strict=False))
    try:
        ends = Executor(prover, code).run(state)
        prover.discharge()
    except RefutedError as why:
        if why.model is not None:
            why.values, why.case = inputs.values(why.model), inputs.case(why.model)
        raise
    return Proof(questions=prove_fields(inputs, ends))


def _run(prover: Prover, function: Function) -> Proof:
    code = function_code(function)
    executor = Executor(prover, code)
    try:
        ends = executor.run(_start(prover, code.parameters, function.body))
        ends = [one for end in ends for one in _finished(prover, end)]
        if not ends:
            raise UnprovedError("no path that reaches the end")
    except UnprovedError:
        prover.discharge(definite=True)  # a difference that has been seen counts more
        raise
    prover.discharge()
    refuse_races(prover)
    refuse_same_stage(prover, ends)
    require_written(prover)
    prover.discharge()
    _require_accesses(prover)
    return Proof(
        executor.relations,
        prover.accesses,
        prover.performed,
        prover.queries.questions,
    )


def _start(prover: Prover, parameters: tuple[str, ...], body_text: str) -> WarpState:
    inputs = prover.inputs
    body = inputs.body_state(prover.body.start)
    if prover.body.nodes[prover.body.start].count is not None:
        body.turns[prover.body.start] = 0
    state = WarpState(body, memory=dict(inputs.memory))
    given = (Pointer("relocations", 0), Pointer("ports", 0), Pointer("work", 0), inputs.thread)
    state.registers = dict(zip(parameters, given, strict=False))
    for name in _LOCAL.findall(body_text):
        state.registers[name] = Pointer(f"local {name}", 0)
    return state


def _finished(prover: Prover, state: WarpState) -> list[WarpState]:
    """Refute an end before the body's end, or with cursors that stand elsewhere."""
    found = []
    for one, number in prover.next_operations(state):
        op = prover.body.nodes[number].op if number is not None else None
        try:
            if op is not None:
                prover.refute(one, _never(shown(op)))
            if one.group:
                prover.refute(one, _never("wgmma.commit_group"))
            for name, offset in prover.inputs.cursors.items():
                cursor = tuple(one.memory["ports", offset + at] for at in (0, 4))
                following = one.body.rings[name].next
                goal = terms.both(
                    *(
                        terms.bits(a, 32) == terms.bits(b, 32)
                        for a, b in zip(cursor, following, strict=True)
                    )
                )
                prover.need(one, goal, _other_end(name))
        except DeadPathError:
            continue
        found.append(one)
    return found


def _never(what: str) -> RefutedError:
    return RefutedError(
        "PL0934",
        f"never performs `{what}`",
        expected=what,
        found="the end of the work tile",
    )


def _other_end(ring: str) -> RefutedError:
    return RefutedError(
        "PL0916",
        f"leaves the cursor of `{ring}` at another item than the next",
        target=ring,
        expected="one pl_ring_advance for each item",
        found="another stage or phase at the end of the work tile",
    )


def _require_accesses(prover: Prover) -> None:
    """Refute a `read` or `write` that no path performs."""
    for node in prover.body.nodes:
        if node.op is None or not node.is_access:
            continue
        home = prover.in_place.get(node.op.target, node.op.target)
        if (node.op.verb, home) not in prover.accessed:
            what = f"{node.op.verb} {node.op.target}"
            raise RefutedError(
                "PL0931",
                f"never performs `{what}`",
                op=node.op,
                target=node.op.target,
                expected=what,
                found="no such access by any warp",
            )
