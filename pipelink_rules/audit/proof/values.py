"""Rings and cursors behind the pointers of a runtime call."""

from pipelink_rules.audit.proof.body import Cursor
from pipelink_rules.audit.proof.machine import Machine
from pipelink_rules.audit.proof.state import State
from pipelink_rules.audit.proof.verdict import UnprovedError
from pipelink_rules.solver.terms import DATA, Pointer, Term


def ring_of(machine: Machine, at: Term) -> str:
    """Return the ring of a relocation; UnprovedError where it is none."""
    if isinstance(at, Pointer) and at.region == "relocations" and isinstance(at.offset, int):
        name = machine.inputs.relocations.get(at.offset)
        if name in machine.inputs.rings:
            return name
    raise UnprovedError("a ring that is not a relocation of this role")


def cursor_at(state: State, place: Term) -> Cursor:
    """Return stage and phase of a cursor in a struct."""
    if not isinstance(place, Pointer) or not isinstance(place.offset, int):
        raise UnprovedError("a cursor at an address that is not constant")
    stage = state.memory.get((place.region, place.offset), DATA)
    phase = state.memory.get((place.region, place.offset + 4), DATA)
    if stage is DATA or phase is DATA:
        raise UnprovedError("a cursor that depends on data")
    return stage, phase
