"""Rings and cursors behind the pointers of a runtime call."""

from collections.abc import Sequence

from pipelink_rules.audit.proof.body import Cursor
from pipelink_rules.audit.proof.prover import Prover
from pipelink_rules.audit.proof.state import WarpState
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.solver.terms import DATA, Pointer, Term


def ring_and_cursor(
    prover: Prover, state: WarpState, arguments: Sequence[Term]
) -> tuple[str, Cursor]:
    """Return what the first two arguments of a runtime operation on a ring refer to."""
    ring = _ring(prover, state, arguments[0])
    return ring, _cursor(prover, state, ring, arguments[1])


def _ring(prover: Prover, state: WarpState, at: Term) -> str:
    """Return the ring of a relocation; refute another struct."""
    if not isinstance(at, Pointer) or not isinstance(at.offset, int):
        raise UnprovedError("a ring at an address that is not constant")
    name = prover.inputs.relocations.get(at.offset) if at.region == "relocations" else None
    if name not in prover.inputs.rings:
        prover.refute(state, _no_ring(f"byte {at.offset} of its {at.region}"))
    assert name is not None
    return name


def _no_ring(found: str) -> RefutedError:
    return RefutedError(
        "PL0915",
        "calls the runtime for a ring that is none of its ports",
        expected="a ring of its relocations, and the cursor of that ring",
        found=found,
    )


def _no_cursor(ring: str, found: str) -> RefutedError:
    return RefutedError(
        "PL0916",
        f"calls the runtime with a cursor that is not that of `{ring}`",
        target=ring,
        expected=f"the cursor of `{ring}` among its ports, or a copy of it",
        found=found,
    )


def _cursor(prover: Prover, state: WarpState, ring: str, place: Term) -> Cursor:
    """Return stage and phase of a cursor: that of the ring, or one in a variable of the code."""
    if not isinstance(place, Pointer) or not isinstance(place.offset, int):
        raise UnprovedError("a cursor at an address that is not constant")
    if place.region in prover.inputs.structs and (
        place.region != "ports" or place.offset != prover.inputs.cursors[ring]
    ):
        prover.refute(state, _no_cursor(ring, f"byte {place.offset} of its {place.region}"))
    stage = state.memory.get((place.region, place.offset), DATA)
    phase = state.memory.get((place.region, place.offset + 4), DATA)
    if stage is DATA or phase is DATA:
        raise UnprovedError("a cursor that depends on data")
    return stage, phase
