"""wgmma: operands are members of the current item, with the dtype, layout and rows of the contract.

PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions": a matrix descriptor holds the address
in bits 0-13, the distance of groups of eight rows in bits 32-45 (both in units of 16 bytes) and the
swizzle in bits 62-63.  Operands are K-major under the 128-byte swizzle: rows of 128 bytes, of which
one instruction multiplies 32.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pipelink_rules.audit.proof.memory import home_of
from pipelink_rules.audit.proof.prover import Prover
from pipelink_rules.audit.proof.state import WarpState
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.contract.item_layout import member_span
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Member, Operation
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import DATA, Pointer, Term

_SHAPE = re.compile(r"\.m64n(\d+)k16\.f32\.(bf16|f16)\.(bf16|f16)$")
_ROW, _GROUP, _STEP = 128, 1024, 32  # bytes of a row, of eight rows, of one instruction in a row
_ROWS = 64  # of one instruction
_FLAGS = [1, 1, 0, 0]  # scale-a, scale-b: no negation; both operands K-major


@dataclass(frozen=True)
class OperandTile:
    """An operand: the member that holds it, its letter, its rows, the version of its descriptor."""

    member: Member
    letter: str
    rows: int
    version: int = 1  # 1: wgmma, 2: tcgen05.mma


def operand_ring(prover: Prover, state: WarpState, descriptors: Sequence[Term]) -> str:
    """Return the ring that holds both operands."""
    homes = set()
    for descriptor in descriptors:
        if descriptor is DATA or isinstance(descriptor, Pointer):
            raise UnprovedError("a matrix descriptor that depends on data")
        homes.add(home_of(prover, descriptor))
    ring = next(iter(homes))
    if len(homes) > 1:
        raise UnprovedError("operands of one multiplication in two rings")
    if ring not in prover.inputs.rings:
        prover.refute(
            state,
            RefutedError(
                "PL0915",
                "multiplies an operand outside of its rings",
                expected="the current item of a ring",
                found="another address",
            ),
        )
    assert ring is not None
    if state.body.rings[ring].current is None:
        raise UnprovedError("a multiplication before an item is held")
    return ring


def check_operand(
    prover: Prover, state: WarpState, ring: str, tile: OperandTile, descriptor: Term
) -> Term:
    """Prove layout and place of an operand; return its offset in the member, in bytes."""
    given, held = prover.inputs.rings[ring], state.body.rings[ring].current
    assert held is not None
    member = tile.member
    descriptor = terms.bits(descriptor, 64)
    zeros = terms.bits(0, 4)
    distance = terms.concatenated(terms.field(descriptor, 45, 32), zeros)
    layout = [distance == _GROUP]
    if tile.version == 1:
        layout += [terms.field(descriptor, 63, 62) == 1, terms.field(descriptor, 51, 49) == 0]
    else:
        layout += [terms.field(descriptor, 63, 61) == 2, terms.field(descriptor, 47, 46) == 1]
    wrong = RefutedError(
        "PL0915",
        f"multiplies `{ring}.{member.name}` with another layout",
        target=ring,
        expected="rows of 128 bytes under the 128-byte swizzle, as the ring declares",
        found="another matrix descriptor",
    )
    prover.oblige_any_stage(state, ring, terms.both(*layout), wrong)
    address = terms.concatenated(terms.field(descriptor, 13, 0), zeros)
    offset = terms.bits(address, 32) - given.base
    offset = offset - terms.bits(held[0], 32) * given.stage_bytes - given.offset(member.name)
    # Descriptors hold 18 bits of the address; shared memory has no more.
    last = (tile.rows // 8 - 1) * _GROUP + 7 * _ROW + _STEP
    room = terms.bits(member_span(member) - last, 32)
    inside = terms.both(
        terms.at_most(offset, room), terms.less(offset & (_ROW - 1), terms.bits(97, 32))
    )
    error = RefutedError(
        "PL0915",
        f"multiplies an operand {tile.letter} outside of `{ring}.{member.name}` of its item",
        target=ring,
        expected=f"{tile.rows} rows of `{ring}.{member.name}`",
        found="another place in shared memory",
    )
    prover.oblige_any_stage(state, ring, inside, error)
    return offset


def multiply(prover: Prover, state: WarpState, opcode: str, operands: Sequence[Term]) -> None:
    """Check one wgmma.mma_async: descriptors a and b, accumulate, then the flags."""
    prover.converged(state, "wgmma.mma_async")
    shape = _SHAPE.search(opcode)
    if shape is None:
        raise UnprovedError(f"`{opcode}`, whose operands are not modeled")
    if not state.fenced:
        prover.refute(state, _not_fenced())
    columns, *dtypes = shape.groups()
    descriptors, accumulate, flags = operands[:2], operands[2], list(operands[3:])
    ring = operand_ring(prover, state, descriptors)
    members = prover.inputs.rings[ring].port.members
    if len(members) < 2:
        raise UnprovedError("operands that are not two members of one ring")
    if flags != _FLAGS:
        prover.refute(state, _other_flags(ring))
    offsets = []
    for number, (descriptor, rows) in enumerate(
        zip(descriptors, (_ROWS, int(columns)), strict=True)
    ):
        member = members[number]
        if member.dtype != dtypes[number]:
            prover.refute(state, _other_dtype(ring, member, dtypes[number]))
        tile = OperandTile(member, "AB"[number], rows)
        offsets.append(check_operand(prover, state, ring, tile, descriptor))
    require_step(prover, state, ring, offsets)
    _require_rows(prover, state, ring, offsets[0])
    require_accumulation(prover, state, ring, accumulate)
    state.group = (*state.group, ring)


def require_step(prover: Prover, state: WarpState, ring: str, offsets: Sequence[Term]) -> None:
    """Prove that both operands are at the next step of K of their item."""
    step = state.group.count(ring) * _STEP
    first, second = prover.inputs.rings[ring].port.members[:2]
    error = RefutedError(
        "PL0915",
        f"multiplies other columns of `{ring}.{first.name}` than of `{ring}.{second.name}`",
        target=ring,
        expected=f"{_STEP} bytes of each row after the other, the same of both operands",
        found=f"another step than byte {step}",
    )
    here = terms.both(*(offset & (_ROW - 1) == step for offset in offsets))
    prover.oblige_any_stage(state, ring, here, error)


def _require_rows(prover: Prover, state: WarpState, ring: str, offset: Term) -> None:
    """Prove that A has the rows of the warpgroup, where each warpgroup has its 64 rows of it."""
    first, step = prover.inputs.rings[ring].port.members[0], state.group.count(ring) * _STEP
    rows = evaluate(first.shape[0], {})
    if rows * 4 != prover.inputs.warps * _ROWS:
        return
    warpgroup = terms.bits(prover.inputs.warp, 32)
    warpgroup = terms.shifted_right(warpgroup, terms.bits(2, 32))
    right = offset - step == warpgroup * (_ROWS * _ROW)
    error = RefutedError(
        "PL0915",
        f"multiplies rows of `{ring}.{first.name}` that are another warpgroup's",
        target=ring,
        expected="rows 64 w to 64 w + 63 in warpgroup w",
        found="other rows",
    )
    prover.oblige_any_stage(state, ring, right, error)


def require_accumulation(
    prover: Prover, state: WarpState, ring: str, accumulate: Term, *, of_tile: bool = True
) -> None:
    """The first multiplication of a work tile overwrites the accumulators, all others add.

    Decided where the body has one `mma`.  Where the code never reads the accumulators that an
    earlier work tile left, it has initialized them itself, and may add from the first on.
    of_tile: they are a fragment; those in tensor memory always hold an earlier tile.
    """
    nodes = [n for n, node in enumerate(prover.body.nodes) if node.op and node.op.verb == "mma"]
    if len(nodes) != 1:
        return
    loop = prover.body.loop_of(nodes[0])
    turns = state.body.turns.get(loop, 0) if loop is not None else 0
    later = terms.truth(1) if state.group else terms.bits(turns, 32) != 0
    if accumulate is DATA or isinstance(accumulate, Pointer):
        raise UnprovedError("a multiplication that accumulates by data")
    adds = terms.truth(accumulate)
    error = RefutedError(
        "PL0915",
        f"drops what it has accumulated from earlier items of `{ring}`",
        target=ring,
        expected="accumulation from the second multiplication of a work tile on",
        found="a later multiplication that overwrites the accumulators",
    )
    prover.need(state, terms.either(terms.negated(later), adds), error)
    fragments = {port.name for port in prover.inputs.contract.ports if port.space == "registers"}
    if not of_tile or prover.reads_of(fragments):
        error = RefutedError(
            "PL0915",
            "accumulates on the result of an earlier work tile",
            target=ring,
            expected="a first multiplication that overwrites the accumulators",
            found="one that adds to what the registers hold",
        )
        prover.need(state, terms.either(later, terms.negated(adds)), error)


def commit(prover: Prover, state: WarpState) -> list[WarpState]:
    """wgmma.commit_group: one `mma` for each ring whose items the group reads."""
    group, state.group = state.group, ()
    states = [state]
    for ring in sorted(set(group)):

        def check(one: WarpState, op: Operation, ring: str = ring) -> None:
            require_steps(prover, one, ring, group)

        states = [found for one in states for found in prover.event(one, "mma", ring, check)]
    return states


def require_steps(prover: Prover, state: WarpState, ring: str, group: tuple[str, ...]) -> None:
    """Refute a group that does not multiply all of an item."""
    row = prover.inputs.rings[ring].port.members[0]
    steps = member_span(row) // evaluate(row.shape[0], {}) // _STEP
    if group.count(ring) != steps:
        prover.refute(state, _other_steps(ring, steps, group.count(ring)))


def _not_fenced() -> RefutedError:
    return RefutedError(
        "PL0919",
        "issues wgmma without wgmma.fence",
        expected="wgmma.fence after the accumulators were accessed",
        found="no fence on some path",
    )


def _other_flags(ring: str) -> RefutedError:
    return RefutedError(
        "PL0915",
        f"multiplies an item of `{ring}` negated or transposed",
        target=ring,
        expected="both operands as they are, K-major",
        found="other immediate operands of wgmma",
    )


def _other_dtype(ring: str, member: Member, found: str) -> RefutedError:
    return RefutedError(
        "PL0915",
        f"multiplies `{ring}.{member.name}` as {found}",
        target=ring,
        expected=member.dtype,
        found=found,
    )


def _other_steps(ring: str, wanted: int, found: int) -> RefutedError:
    return RefutedError(
        "PL0915",
        f"multiplies a part of an item of `{ring}`",
        target=ring,
        expected=f"{wanted} multiplications of {_STEP} bytes of each row",
        found=f"{found}",
    )
