"""Memory accesses of a role: each lies in what the contract gives, and the contract shows it."""

from pipelink_rules.audit.proof.expressions import product_of, term_of
from pipelink_rules.audit.proof.prover import Prover, Write, shown
from pipelink_rules.audit.proof.state import WarpState
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.contract.item_layout import member_span
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import DTYPES, Operation, Port
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import DATA, Pointer, Term


def port_of(pointer: Term) -> str | None:
    """Return the port whose tensor, tensor map or fragment a pointer reaches."""
    if isinstance(pointer, Pointer) and pointer.region.startswith("port "):
        return pointer.region.removeprefix("port ")
    return None


def home_of(prover: Prover, address: Term) -> str | None:
    """Return the ring or buffer on whose base address a shared address is built."""
    if address is DATA:
        raise UnprovedError("an access to shared memory at an address that depends on data")
    if isinstance(address, int):
        return None
    homes = prover.inputs.homes
    found = [homes[name] for name in terms.variables(address) if name in homes]
    return found[0] if len(found) == 1 else None


def reach_shared(
    prover: Prover, state: WarpState, kind: str, address: Term, size: Term, *, atomic: bool = False
) -> None:
    """Prove that an access lies in the current item of its ring, or in its buffer.

    kind: "read", "write", or "store" (by a bulk copy, which is an operation).  atomic: threads may
    write the same bytes.
    """
    prover.accesses += 1
    if isinstance(address, Pointer):
        address = terms.simplified(terms.bits(terms.bits(address.offset, 64), 32))
    target = home_of(prover, address)
    if target is None:
        prover.refute(state, _nowhere(kind, address))
        return
    if kind != "store":
        allowed_clause(prover, state, kind, target)
    address = terms.bits(address, 32)
    if target in prover.inputs.rings:
        offset, top = _in_ring(prover, state, kind, target, address)
        where = f"the current item of `{target}`"
    else:
        buffer = prover.inputs.buffers[target]
        offset, top = address - buffer.base, buffer.bytes
        where = f"buffer `{target}`"
    offset = terms.bits(terms.simplified(offset), 32)
    if kind != "store":
        oblige_aligned(prover, state, kind, target, address, size)
    error = RefutedError(
        "PL0930",
        f"has a {kind} outside of {where}",
        target=target,
        expected=f"an access to the {top:,} bytes of {where}",
        found=f"a {kind} of {size if isinstance(size, int) else 'some'} bytes that leaves them",
    )
    if target in prover.inputs.rings:
        ring = prover.inputs.rings[target]
        whole = ring.stages * ring.stage_bytes
        error.elsewhere = terms.less(address - terms.bits(ring.base, 32), whole)
    prover.oblige_inside(state, offset, size, top, error)
    if atomic:
        prover.accessed.add(("read", target))  # it does both, whichever the contract shows
    elif kind == "write" and isinstance(size, int):
        after = (state.body.last, state.operations)
        prover.writes.append(Write(target, after, offset, size, state.path))


def oblige_aligned(
    prover: Prover, state: WarpState, kind: str, target: str, address: Term, size: Term
) -> None:
    """An access of 2, 4, 8 or 16 bytes is at a multiple of its size (PTX ISA, "Operands")."""
    if not isinstance(size, int) or size < 2 or size & (size - 1):
        return
    error = RefutedError(
        "PL0930",
        f"has a {kind} of `{target}` that is not aligned",
        target=target,
        expected=f"a multiple of {size} bytes",
        found="another address",
    )
    prover.oblige(state, address & (size - 1) == 0, error)


def _in_ring(
    prover: Prover, state: WarpState, kind: str, ring: str, address: Term
) -> tuple[Term, int]:
    given, held = prover.inputs.rings[ring], state.body.rings[ring].current
    if held is None or given.layout is None:
        prover.refute(state, _not_held(kind, ring))
        raise UnprovedError("an access to a ring without an item")
    top = max(given.offset(member.name) + member_span(member) for member in given.port.members)
    return address - given.base - terms.bits(held[0], 32) * given.layout.stage_bytes, top


def _not_held(kind: str, ring: str) -> RefutedError:
    return RefutedError(
        "PL0930",
        f"has a {kind} of `{ring}` before it holds an item",
        target=ring,
        expected="`wait` or `acquire` first",
        found=f"a {kind} before the first item of the work tile",
    )


def _nowhere(kind: str, address: Term) -> RefutedError:
    return RefutedError(
        "PL0930",
        f"has a {kind} of shared memory outside of its ports and buffers",
        expected="an address in a ring or buffer of the role",
        found=f"{address:#x}" if isinstance(address, int) else "an address built on none of them",
    )


# -- clauses --------------------------------------------------------------------------------------
def allowed_clause(prover: Prover, state: WarpState, kind: str, target: str) -> Operation | None:
    """Return the `read` or `write` that allows an access here, or refute it."""
    port = _port(prover, target)
    if port is not None and port.space == "registers" and kind == "read":
        prover.accessed.add((kind, target))
        return None
    body, last = prover.body, state.body.last
    free = port is not None and port.space in ("registers", "global") and not port.scratch
    clauses = (
        [node.op for node in body.nodes if node.op is not None]
        if free
        else [op for _, op in body.allowed.get(last, ())]
    )
    hits = [op for op in clauses if _is(prover, op, kind, target)]
    if not hits:
        hits = _of_another_turn(prover, state, kind, target)
    if not hits:
        done = body.nodes[last].op if last >= 0 else None
        after = f"after `{shown(done)}`" if done else "before its first operation"
        error = RefutedError(
            "PL0930",
            f"has a {kind} of `{target}` that its contract does not show there",
            target=target,
            expected=f"`{kind} {target}` in the body at this place",
            found=f"a {kind} {after}",
        )
        # An operation that differs on this path says more: it is reported first.
        prover.oblige(state, 0, error)
        return None
    prover.accessed.add((kind, target))
    return hits[0]


def _is(prover: Prover, op: Operation, kind: str, target: str) -> bool:
    return op.verb == kind and prover.in_place.get(op.target, op.target) == target


def _of_another_turn(prover: Prover, state: WarpState, kind: str, target: str) -> list[Operation]:
    """Return clauses of the next turn of a loop, where there is certain to be one."""
    body = prover.body
    for number, op in body.allowed_around.get(state.body.last, ()):
        loop = body.loop_of(number)
        if not _is(prover, op, kind, target) or loop not in state.body.turns:
            continue
        assert loop is not None
        left = prover.turns_left(state, loop)
        if prover.queries.counterexample(state.path, left, "another turn of a loop") is None:
            return [op]
    return []


def _port(prover: Prover, name: str) -> Port | None:
    return next((port for port in prover.inputs.contract.ports if port.name == name), None)


# -- global memory and fragments ------------------------------------------------------------------
def reach_global(
    prover: Prover,
    state: WarpState,
    kind: str,
    pointer: Pointer,
    size: Term,
    clause: Operation | None = None,
    unit: int = 1,
) -> None:
    """Prove that an access lies in its tensor or fragment, or in the slice of scratch memory.

    unit: bytes of one load or store, which its address is a multiple of.
    """
    prover.accesses += 1
    port = prover.inputs.contract.port(pointer.region.removeprefix("port "))
    offset = terms.bits(pointer.offset, 64)
    if not isinstance(size, int):
        size = terms.simplified(size)
    error = RefutedError(
        "PL0930",
        f"has a {kind} outside of `{port.name}`",
        target=port.name,
        expected="an address inside of it for every work tile",
        found=f"a {kind} that leaves it",
    )
    aligned = min(unit, port.align) if port.space == "global" else unit
    oblige_aligned(prover, state, kind, port.name, offset, aligned)
    if port.space == "registers":
        top: Term = evaluate(port.members[0].shape[1], {}) // 2 * 4
    elif clause is not None and clause.index:
        offset, top = _in_slice(prover, port, clause, offset)
    else:
        item = DTYPES[port.members[0].dtype][0]
        shape = port.members[0].shape
        if sum(not isinstance(term_of(e, prover.inputs.env), int) for e in shape) > 1:
            _in_matrix(prover, state, port, offset, size, error)
            return
        top = product_of(shape, prover.inputs.env) * item
    prover.oblige_inside(state, terms.simplified(offset), size, top, error)


def _in_slice(prover: Prover, port: Port, clause: Operation, offset: Term) -> tuple[Term, int]:
    """Return the offset in the slice that the clause names, and the slice's bytes."""
    env, extents = prover.inputs.env, port.members[0].shape
    item = DTYPES[port.members[0].dtype][0]
    inner = [evaluate(extent, {}) for extent in extents[1:]]
    size = item
    for extent in inner:
        size *= extent
    start = terms.bits(term_of(clause.index[0], env), 64) * size
    for extent, index in zip(inner, clause.index[1:], strict=False):
        size //= extent
        start = start + terms.bits(term_of(index, env), 64) * size
    return terms.simplified(offset - start), size


def _in_matrix(
    prover: Prover, state: WarpState, port: Port, offset: Term, size: Term, error: RefutedError
) -> None:
    """Prove (row * N + column) * item with row < M and column + n <= N.

    Both extents are symbols, so the product would be nonlinear.  The row is what the code itself
    multiplies by N: any row and column that fit prove that the address does.
    """
    env, shape = prover.inputs.env, port.members[0].shape
    rows, columns = (terms.bits(term_of(extent, env), 64) for extent in shape[-2:])
    item = DTYPES[port.members[0].dtype][0]
    for product, row in _row_products(offset, terms.variables(columns)):
        free = prover.fresh("product", 64)
        rest = terms.simplified(terms.substituted(offset, (product, free)) - free * item)
        rest = terms.bits(rest, 64)
        if terms.variables(rest) & {str(free)}:
            continue
        inside = terms.both(
            row >= 0, row < rows, rest >= 0, rest + terms.bits(size, 64) <= columns * item
        )
        prover.oblige(state, inside, error)
        return
    raise UnprovedError(f"an address in `{port.name}` that is not row * columns + column")


def _row_products(offset: Term, names: frozenset[str]) -> list[tuple[Term, Term]]:
    found = []
    for term in terms.subterms(offset):
        if terms.is_product(term) and term.size() == 64 and term.num_args() == 2:
            one, other = term.children()
            if terms.variables(one) == names:
                found.append((term, other))
            elif terms.variables(other) == names:
                found.append((term, one))
    return found


# -- generic pointers -----------------------------------------------------------------------------
def access(
    prover: Prover, state: WarpState, kind: str, pointer: Term, size: int, unit: int = 0
) -> bool:
    """Check an access by a generic pointer; return whether it reaches data and not a struct.

    unit: bytes of one instruction, where several adjacent ones are checked together.
    """
    if not isinstance(pointer, Pointer):
        what = "depends on data" if pointer is DATA else "is in no port of the role"
        raise UnprovedError(f"a {kind} at an address that {what}")
    if pointer.region == "shared":
        reach_shared(prover, state, kind, pointer, size)
        return True
    port = port_of(pointer)
    if port is None:
        _in_struct(prover, state, kind, pointer, size)
        return False
    clause = allowed_clause(prover, state, kind, port)
    reach_global(prover, state, kind, pointer, size, clause, unit or size)
    return True


def _in_struct(prover: Prover, state: WarpState, kind: str, pointer: Pointer, size: int) -> None:
    """Refute an access outside of the relocations, the ports or the work tile."""
    most = prover.inputs.structs.get(pointer.region)
    if most is None or not isinstance(pointer.offset, int):
        return
    offset = terms.signed_number(pointer.offset, 64)
    if 0 <= offset <= most - size and offset % min(size, 8) == 0:
        return
    error = RefutedError(
        "PL0930",
        f"has a {kind} outside of its {pointer.region}",
        expected=f"bytes 0 to {most - 1} of the struct, aligned",
        found=f"{size} bytes at byte {offset:,}",
    )
    prover.refute(state, error)


def load(state: WarpState, pointer: Pointer, size: int) -> Term:
    """Return a word of a struct."""
    if not isinstance(pointer.offset, int) or size < 4:
        return DATA
    low = state.memory.get((pointer.region, pointer.offset), DATA)
    if isinstance(low, Pointer):
        return low if size == 8 else DATA
    if size == 4 or low is DATA:
        return low
    high = state.memory.get((pointer.region, pointer.offset + 4), DATA)
    return DATA if high is DATA or isinstance(high, Pointer) else terms.joined(low, high)


def store(prover: Prover, state: WarpState, pointer: Pointer, size: int, value: Term) -> None:
    """Write a word of a struct."""
    scheduler = prover.inputs.role.scheduler
    if pointer.region == "relocations" or (pointer.region == "work" and not scheduler):
        raise UnprovedError("a store to the relocations or the work tile")
    if not isinstance(pointer.offset, int):
        if not pointer.region.startswith("local "):
            raise UnprovedError("a store to a struct at an address that is not constant")
        for place in [place for place in state.memory if place[0] == pointer.region]:
            del state.memory[place]
        return
    words = range(max(1, size // 4))
    for word in words:
        state.memory.pop((pointer.region, pointer.offset // 4 * 4 + 4 * word), None)
    if isinstance(state.memory.get((pointer.region, pointer.offset - 4)), Pointer):
        del state.memory[pointer.region, pointer.offset - 4]  # its upper half is overwritten
    if isinstance(value, Pointer) or value is DATA or size < 4:
        state.memory[pointer.region, pointer.offset] = value if size >= 4 else DATA
        return
    for word in words:
        half = terms.low_half(value) if word == 0 else terms.high_half(value)
        state.memory[pointer.region, pointer.offset + 4 * word] = half
