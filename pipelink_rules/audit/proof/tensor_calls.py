"""Calls of the runtime for tensor memory (sm_100a): tcgen05.mma, commit, load, store and fences."""

from collections.abc import Callable, Sequence

from pipelink_rules.audit.proof.memory import allowed_clause
from pipelink_rules.audit.proof.prover import Prover, shown
from pipelink_rules.audit.proof.state import WarpState
from pipelink_rules.audit.proof.values import ring_and_cursor
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.audit.proof.wgmma import (
    OperandTile,
    check_operand,
    operand_ring,
    require_accumulation,
    require_step,
    require_steps,
)
from pipelink_rules.contract.item_layout import tensor_columns
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Operation
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import DATA, Term

Call = Callable[[Prover, WarpState, Sequence[Term]], list[WarpState] | None]
_LOADED = 32  # columns of one tcgen05.ld.32x32b.x32 (PTX ISA, tcgen05.ld)
_FORMATS = {"f16": 0, "bf16": 1}  # of an operand, kind::f16


def _mma(prover: Prover, state: WarpState, arguments: Sequence[Term]) -> list[WarpState] | None:
    """One k-step of an item; the k-steps of one item are one `mma` of the contract."""
    accumulators, cursor = ring_and_cursor(prover, state, arguments)
    ring = operand_ring(prover, state, arguments[2:4])

    def check(one: WarpState, op: Operation) -> None:
        if op.source != accumulators:
            wanted, found = f"mma {ring} -> {op.source}", f"mma {ring} -> {accumulators}"
            message = f"performs `{found}` where its contract declares `{wanted}`"
            error = RefutedError(
                "PL0915", message, op=op, target=ring, expected=wanted, found=found
            )
            prover.refute(one, error)
        prover.same_item(one, accumulators, cursor, "mma")
        _operands(prover, one, ring, accumulators, arguments[2:4])
        _instruction(prover, one, ring, accumulators, arguments[4])
        require_accumulation(prover, one, ring, arguments[5], of_tile=False)
        one.group = (*one.group, ring)

    done = prover.body.nodes[state.body.last].op if state.body.last >= 0 else None
    if done is not None and (done.verb, done.target, done.source) == ("mma", ring, accumulators):
        prover.converged(state, f"mma {ring}")
        check(state, done)
        return None
    return prover.event(state, "mma", ring, check)


def _operands(
    prover: Prover, state: WarpState, ring: str, accumulators: str, descriptors: Sequence[Term]
) -> None:
    rows, columns = (
        evaluate(extent, {})
        for extent in prover.inputs.contract.port(accumulators).members[0].shape
    )
    members = prover.inputs.rings[ring].port.members
    offsets = []
    for number, (descriptor, extent) in enumerate(zip(descriptors, (rows, columns), strict=True)):
        tile = OperandTile(members[number], "AB"[number], extent, version=2)
        offsets.append(check_operand(prover, state, ring, tile, descriptor))
    require_step(prover, state, ring, offsets)


def _instruction(
    prover: Prover, state: WarpState, ring: str, accumulators: str, found: Term
) -> None:
    """The instruction descriptor: dtypes and extents of the operands (PTX ISA, tcgen05)."""
    first, second = prover.inputs.rings[ring].port.members[:2]
    rows, columns = (
        evaluate(extent, {})
        for extent in prover.inputs.contract.port(accumulators).members[0].shape
    )
    wanted = 1 << 4 | _FORMATS[first.dtype] << 7 | _FORMATS[second.dtype] << 10
    wanted |= columns // 8 << 17 | rows // 16 << 24
    if found != wanted:
        error = RefutedError(
            "PL0915",
            f"multiplies an item of `{ring}` by another instruction",
            target=ring,
            expected=f"{first.dtype} x {second.dtype}, {rows} x {columns}, K-major: {wanted:#x}",
            found=f"{found:#x}"
            if isinstance(found, int)
            else "an instruction that is not constant",
        )
        prover.refute(state, error)


def _commit(direction: str) -> Call:
    """tcgen05.commit on the empty barrier of a ring that is read, on the full one of another."""

    def call(prover: Prover, state: WarpState, arguments: Sequence[Term]) -> list[WarpState]:
        ring, cursor = ring_and_cursor(prover, state, arguments)
        right = prover.inputs.rings[ring].port.direction == direction
        group, state.group = state.group, ()

        def check(one: WarpState, op: Operation) -> None:
            if not op.source or not right:
                found = f"commit mma -> {ring}" + ("" if right else ", on the other barrier")
                message = f"performs `{found}` where its contract declares `{shown(op)}`"
                error = RefutedError(
                    "PL0915", message, op=op, target=ring, expected=shown(op), found=found
                )
                prover.refute(one, error)
            prover.same_item(one, ring, cursor, "commit")
            if direction == "in":
                require_steps(prover, one, ring, group)

        return prover.event(state, "commit", ring, check)

    return call


def _columns(kind: str) -> Call:
    def call(prover: Prover, state: WarpState, arguments: Sequence[Term]) -> None:
        ring, cursor = ring_and_cursor(prover, state, arguments)
        prover.converged(state, f"{kind} {ring}")
        prover.accesses += 1
        if state.body.rings[ring].current is None:
            raise UnprovedError("an access to tensor memory before an item is held")
        allowed_clause(prover, state, kind, ring)
        prover.same_item(state, ring, cursor, kind)
        thread, first = arguments[2], arguments[3]
        if thread is DATA or first is DATA:
            raise UnprovedError("an access to tensor memory at a place that depends on data")
        _place(prover, state, kind, ring, thread, first)

    return call


def _place(
    prover: Prover, state: WarpState, kind: str, ring: str, thread: Term, first: Term
) -> None:
    columns = tensor_columns(prover.inputs.rings[ring].port)
    error = RefutedError(
        "PL0930",
        f"has a {kind} outside of the current item of `{ring}`",
        target=ring,
        expected=f"columns 0 to {columns - 1}, the rows of the thread",
        found="other columns or rows",
    )
    rows = terms.bits(thread, 32) & 127 == terms.bits(prover.inputs.thread, 32) & 127
    prover.oblige(state, rows, error)
    prover.oblige_inside(state, terms.bits(first, 32), _LOADED, columns, error)


def _await(kind: str) -> Call:
    return lambda prover, state, _: prover.event(state, "await", f"tensor {kind}", _nothing)


def _fence(place: str) -> Call:
    return lambda prover, state, _: prover.event(state, "fence", f"tensor {place}", _nothing)


def _nothing(state: WarpState, op: Operation) -> None:
    return


TENSOR_CALLS: dict[str, Call] = {
    "pl_tensor_mma": _mma,
    "pl_mma_commit_empty": _commit("in"),
    "pl_mma_commit_full": _commit("out"),
    "pl_tensor_load_32": _columns("read"),
    "pl_tensor_store_32": _columns("write"),
    "pl_tensor_await_load": _await("load"),
    "pl_tensor_await_store": _await("store"),
    "pl_tensor_fence_before": _fence("before"),
    "pl_tensor_fence_after": _fence("after"),
}
