"""Calls of the device runtime: each is one operation of the contract, with all of its operands."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from pipelink_rules.audit.proof.body import advanced
from pipelink_rules.audit.proof.expressions import term_of
from pipelink_rules.audit.proof.memory import home_of, port_of, reach_global, reach_shared
from pipelink_rules.audit.proof.prover import Prover, Store, shown
from pipelink_rules.audit.proof.state import WarpState
from pipelink_rules.audit.proof.tensor_calls import TENSOR_CALLS
from pipelink_rules.audit.proof.values import ring_and_cursor
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.contract.item_layout import member_bytes, member_span
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import DTYPES, Operation, Port
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import DATA, Pointer, Term

Call = Callable[[Prover, WarpState, Sequence[Term]], list[WarpState] | None]


def call_runtime(
    prover: Prover, state: WarpState, name: str, arguments: Sequence[Term]
) -> list[WarpState] | None:
    """Perform a call; UnprovedError for an unknown function."""
    operation = _CALLS.get(name) or TENSOR_CALLS.get(name)
    if operation is None:
        raise UnprovedError(f"a call of `{name}`, which is not a function of the runtime")
    return operation(prover, state, arguments)


# -- rings ----------------------------------------------------------------------------------------
def _take(verb: str) -> Call:
    def call(prover: Prover, state: WarpState, arguments: Sequence[Term]) -> list[WarpState]:
        ring, cursor = ring_and_cursor(prover, state, arguments)

        def check(one: WarpState, op: Operation) -> None:
            prover.take(one, ring)
            prover.same_item(one, ring, cursor, verb)

        return prover.event(state, verb, ring, check)

    return call


def _commit(prover: Prover, state: WarpState, arguments: Sequence[Term]) -> list[WarpState]:
    ring, cursor = ring_and_cursor(prover, state, arguments)

    def check(one: WarpState, op: Operation) -> None:
        if op.source:
            prover.refute(one, _other_operand(op, f"commit {ring}"))
        prover.same_item(one, ring, cursor, "commit")

    return prover.event(state, "commit", ring, check)


def _expect(prover: Prover, state: WarpState, arguments: Sequence[Term]) -> list[WarpState]:
    ring, cursor = ring_and_cursor(prover, state, arguments)

    def check(one: WarpState, op: Operation) -> None:
        prover.same_item(one, ring, cursor, "expect")
        given = prover.inputs.rings[ring]
        whole = given.layout.data_bytes if given.layout else 0
        wanted = term_of(given.port.tx_bytes, prover.inputs.env) if given.port.tx_bytes else whole
        same_number(prover, one, op, arguments[2], wanted, "bytes")

    return prover.event(state, "expect", ring, check)


def _release(prover: Prover, state: WarpState, arguments: Sequence[Term]) -> list[WarpState]:
    ring, cursor = ring_and_cursor(prover, state, arguments)

    def check(one: WarpState, op: Operation) -> None:
        held = one.body.rings[ring]
        due = terms.bits(held.held, 32) == op.lag + 1
        prover.need(one, due, _out_of_order(op))
        prover.same_item(one, ring, cursor, "release")
        following = advanced(held.released, prover.inputs.rings[ring].stages)
        one.body.rings[ring] = replace(held, released=following, held=op.lag)

    return prover.event(state, "release", ring, check)


def _out_of_order(op: Operation) -> RefutedError:
    return RefutedError(
        "PL0916",
        f"performs `release {op.target}` out of order",
        op=op,
        target=op.target,
        expected=f"one release for each item, {op.lag} items behind",
        found="an item that is left out",
    )


def _advance(prover: Prover, state: WarpState, arguments: Sequence[Term]) -> None:
    (ring, cursor), place = ring_and_cursor(prover, state, arguments), arguments[1]
    stage, phase = advanced(cursor, prover.inputs.rings[ring].stages)
    assert isinstance(place, Pointer) and isinstance(place.offset, int)
    state.memory[place.region, place.offset] = stage
    state.memory[place.region, place.offset + 4] = phase


# -- copies ---------------------------------------------------------------------------------------
def _copy(
    prover: Prover, state: WarpState, arguments: Sequence[Term], *, bulk: bool
) -> list[WarpState]:
    ring, cursor = ring_and_cursor(prover, state, arguments)
    source = _tensor(arguments[3])

    def check(one: WarpState, op: Operation) -> None:
        prover.same_item(one, ring, cursor, "copy")
        if op.source != source:
            prover.refute(one, _other_operand(op, f"copy {source} -> {ring}.{op.member}"))
        _destination(prover, one, op, arguments[2])
        if bulk:
            _bulk_bytes(prover, one, op, arguments)
        else:
            _coordinates(prover, one, op, arguments[4], arguments[5])

    return prover.event(state, "copy", ring, check)


def _tensor(pointer: Term) -> str:
    port = port_of(pointer)
    if port is None:
        raise UnprovedError("a copy with a global address outside of all ports")
    return port


def _other_operand(op: Operation, found: str) -> RefutedError:
    return RefutedError(
        "PL0915",
        f"performs `{found}` where its contract declares `{shown(op)}`",
        op=op,
        target=op.target,
        expected=shown(op),
        found=found,
    )


def _destination(prover: Prover, state: WarpState, op: Operation, offset: Term) -> None:
    given = prover.inputs.rings[op.target]
    begin = given.offset(op.member)
    error = RefutedError(
        "PL0915",
        f"copies `{op.source}` to another place than `{op.target}.{op.member}`",
        op=op,
        target=op.target,
        expected=f"byte {begin:,} of the item, where `{op.member}` begins",
        found=f"byte {offset:,}" if isinstance(offset, int) else "another byte",
    )
    _known(offset, "a destination")
    prover.need(state, terms.bits(offset, 32) == begin, error)
    port = prover.inputs.contract.port(op.source)
    member = next(one for one in given.port.members if one.name == op.member)
    if port.tile is not None and _box_bytes(port) != member_bytes(member):
        prover.refute(state, _other_box(op, member_bytes(member), _box_bytes(port)))


def _other_box(op: Operation, wanted: int, found: int) -> RefutedError:
    return RefutedError(
        "PL0917",
        f"performs `{shown(op)}` with a different count",
        op=op,
        target=op.target,
        expected=f"{wanted:,} bytes, the tile",
        found=f"{found:,} bytes, the box of `{op.source}`",
    )


def _box_bytes(port: Port) -> int:
    size = DTYPES[port.members[0].dtype][0]
    for extent in port.tile.box if port.tile else ():
        size *= evaluate(extent, {})
    return size


def _bulk_bytes(prover: Prover, state: WarpState, op: Operation, arguments: Sequence[Term]) -> None:
    """The bytes of a bulk copy: those expected, of one member, and inside of the tensor."""
    port, size = prover.inputs.rings[op.target].port, arguments[4]
    member = next(one for one in port.members if one.name == op.member)
    short = port.tx_bytes is not None and len(port.members) == 1
    wanted = term_of(port.tx_bytes, prover.inputs.env) if short else member_bytes(member)  # type: ignore[arg-type]
    same_number(prover, state, op, size, wanted, "bytes")
    room = terms.at_most(terms.wide(size), terms.bits(member_span(member), 64))
    prover.need(state, room, _too_many(op, member_span(member)))
    _sixteen(prover, state, op, terms.wide(size), "a size")
    assert isinstance(arguments[3], Pointer)
    _sixteen(prover, state, op, terms.bits(arguments[3].offset, 64), "a global address")
    reach_global(prover, state, "read", arguments[3], terms.wide(size))
    _begins_at(prover, state, op, arguments[3])


def _sixteen(prover: Prover, state: WarpState, op: Operation, value: Term, what: str) -> None:
    """Bulk copies take multiples of 16 (PTX ISA, cp.async.bulk)."""
    error = RefutedError(
        "PL0915",
        f"performs `{shown(op)}` with {what} that is not a multiple of 16 bytes",
        op=op,
        target=op.target,
        expected="a multiple of 16",
        found="another value",
    )
    prover.oblige(state, value & 15 == 0, error)


def _too_many(op: Operation, room: int) -> RefutedError:
    return RefutedError(
        "PL0917",
        f"performs `{shown(op)}` with more bytes than the tile has",
        op=op,
        target=op.target,
        expected=f"at most {room:,} bytes",
        found="more",
    )


# -- coordinates ----------------------------------------------------------------------------------
def _coordinates(prover: Prover, state: WarpState, op: Operation, x: Term, y: Term) -> None:
    """Prove the coordinates that port.at declares, innermost mode first in the call."""
    port = prover.inputs.contract.port(op.source)
    for value in (x, y):
        _known(value, "a coordinate")
    if op.verb == "copy" and port.tile is not None and port.tile.along is not None:
        _only_along(prover, state, op, port.tile.along, (x, y))
    env = _place_env(prover, state)
    for value, wanted, axis in zip((x, y), reversed(port.at), ("x", "y"), strict=False):
        declared = terms.bits(term_of(wanted, env), 64)
        error = RefutedError(
            "PL0915",
            f"performs `{shown(op)}` at another place than `at` of `{op.source}`",
            op=op,
            target=op.source,
            expected=f"coordinate {axis} = {wanted.text}",
            found="another coordinate",
        )
        # Coordinates have 32 bits; one between 2**31 and 2**32 is outside of the tensor, like the
        # negative number that it is to the hardware.
        goal = terms.both(
            terms.bits(declared, 32) == terms.bits(value, 32),
            declared >= -(2**31),
            declared < 2**32,
        )
        prover.need(state, goal, error)


def _place_env(prover: Prover, state: WarpState) -> dict[str, Term]:
    """Names of `at`: fields, symbols, `warp`, and `trip`, the turns of the innermost repeat."""
    loop = prover.body.loop_of(state.body.at)
    trip = state.body.turns.get(loop, 0) if loop is not None else 0
    return {**prover.inputs.env, "trip": terms.sign_extended(trip, 32, 64)}


def _only_along(
    prover: Prover, state: WarpState, op: Operation, along: tuple[str, ...], values: Sequence[Term]
) -> None:
    work = prover.inputs.contract.work
    loops = {name for node in prover.body.nodes if node.count for name in _names(node.count.text)}
    for one in work.fields if work else ():
        if one.name in along or one.name in loops:
            continue
        for value in values:
            value = terms.simplified(value)
            if one.name not in terms.variables(value):
                continue
            here, there = terms.variable(one.name, 32), terms.variable(f"{one.name}'", 32)
            error = RefutedError(
                "PL0807",
                f"copies `{op.source}` at coordinates that depend on fields beyond `along`",
                op=op,
                target=op.source,
                expected=f"coordinates that change along {', '.join(along) or 'no field'} only",
                found=f"coordinates that change with `{one.name}`",
            )
            prover.need(state, value == terms.substituted(value, (here, there)), error)


def _names(text: str) -> frozenset[str]:
    from pipelink_rules.expression.evaluate import names_in

    return names_in(text)


def _begins_at(prover: Prover, state: WarpState, op: Operation, pointer: Pointer) -> None:
    """A bulk copy begins at the element that `at` of its port declares."""
    port = prover.inputs.contract.port(op.source)
    if not port.at:
        return
    env, shape = _place_env(prover, state), port.members[0].shape
    element: Term = 0
    for extent, index in zip(shape, port.at, strict=True):
        element = element * _number(term_of(extent, env)) + _number(term_of(index, env))
    size = DTYPES[port.members[0].dtype][0]
    error = RefutedError(
        "PL0915",
        f"performs `{shown(op)}` at another place than `at` of `{op.source}`",
        op=op,
        target=op.source,
        expected=f"from [{', '.join(index.text for index in port.at)}] on",
        found="another address",
    )
    prover.oblige(state, terms.bits(pointer.offset, 64) == terms.bits(element, 64) * size, error)


def _number(value: Term) -> Term:
    return value if isinstance(value, int) else terms.bits(value, 64)


# -- stores ---------------------------------------------------------------------------------------
def _store(
    prover: Prover, state: WarpState, arguments: Sequence[Term], *, bulk: bool
) -> list[WarpState]:
    destination, address = _tensor(arguments[0]), arguments[1]
    target = home_of(prover, address) or "shared memory outside of all ports"

    def check(one: WarpState, op: Operation) -> None:
        if op.source != destination:
            prover.refute(one, _other_operand(op, f"store {target} -> {destination}"))
        _sixteen(prover, one, op, terms.bits(address, 32), "a shared address")
        if bulk:
            _known(arguments[2], "a size")
            size: Term = terms.wide(arguments[2])
            _fits(prover, one, op, size)
            assert isinstance(arguments[0], Pointer)
            _sixteen(prover, one, op, size, "a size")
            _sixteen(prover, one, op, terms.bits(arguments[0].offset, 64), "a global address")
            reach_global(prover, one, "write", arguments[0], size)
            _begins_at(prover, one, op, arguments[0])
        else:
            size = _box_bytes(prover.inputs.contract.port(op.source))
            _coordinates(prover, one, op, arguments[2], arguments[3])
        reach_shared(prover, one, "store", address, size)
        if target in prover.inputs.buffers and isinstance(size, int):
            offset = terms.bits(address, 32) - prover.inputs.buffers[target].base
            stored = Store(target, op, one.operations, offset, size, one.path)
            prover.stores.append(stored)

    return prover.event(state, "store", target, check)


def _fits(prover: Prover, state: WarpState, op: Operation, size: Term) -> None:
    """Refute a store of more bytes than its ring item or buffer has."""
    ring = prover.inputs.rings.get(op.target)
    if ring is not None:
        room = max(ring.offset(member.name) + member_span(member) for member in ring.port.members)
    else:
        room = prover.inputs.buffers[op.target].bytes
    prover.need(state, terms.at_most(size, terms.bits(room, 64)), _too_many(op, room))


def _await_store(full: bool) -> Call:
    def call(prover: Prover, state: WarpState, arguments: Sequence[Term]) -> list[WarpState]:
        def check(one: WarpState, op: Operation) -> None:
            if op.full and not full:
                prover.refute(one, _other_operand(op, f"await store {op.count}"))
            same_number(prover, one, op, arguments[0], op.count, "groups")

        return prover.event(state, "await", "store", check)

    return call


# -- the rest -------------------------------------------------------------------------------------
def _fence(target: str) -> Call:
    return lambda prover, state, arguments: prover.event(state, "fence", target, _nothing)


def _nothing(state: WarpState, op: Operation) -> None:
    return


def _barrier(verb: str) -> Call:
    def call(prover: Prover, state: WarpState, arguments: Sequence[Term]) -> list[WarpState]:
        at = arguments[0]
        name = None
        if isinstance(at, Pointer) and at.region == "relocations" and isinstance(at.offset, int):
            name = prover.inputs.relocations.get(at.offset)
        if name is None or name in prover.inputs.rings:
            raise UnprovedError("a named barrier that is not a relocation of this role")
        return prover.event(state, verb, name, _nothing)

    return call


def _counter(verb: str) -> Call:
    def call(prover: Prover, state: WarpState, arguments: Sequence[Term]) -> list[WarpState]:
        at = arguments[0]
        known = isinstance(at, Pointer) and at.region == "ports" and isinstance(at.offset, int)
        name = prover.inputs.counters.get(at.offset) if known else None
        if name is None:
            raise UnprovedError("counters that are not a port of this role")

        def check(one: WarpState, op: Operation) -> None:
            env = prover.inputs.env
            _known(arguments[1], "an index")
            index = terms.sign_extended(arguments[1], 32, 64)
            error = replace_code(op, "PL0916", "another counter", op.index[0].text)
            goal = terms.bits(index, 64) == terms.bits(term_of(op.index[0], env), 64)
            prover.need(one, goal, error)
            if op.threshold is not None:
                same_number(prover, one, op, arguments[2], term_of(op.threshold, env), "signals")

        return prover.event(state, verb, name, check)

    return call


def replace_code(op: Operation, code: str, found: str, expected: str) -> RefutedError:
    """Return the error of an operation with another operand."""
    message = f"performs `{shown(op)}` with {found}"
    return RefutedError(code, message, op=op, target=op.target, expected=expected, found=found)


def same_number(
    prover: Prover, state: WarpState, op: Operation, found: Term, wanted: Term, what: str
) -> None:
    """Prove that a count of the code is that of the contract."""
    _known(found, f"a number of {what}")
    code = "PL0918" if op.verb in ("await", "wait_until") else "PL0917"
    text = f"{found:,}" if isinstance(found, int) else "another number"
    error = RefutedError(
        code,
        f"performs `{shown(op)}` with a different count",
        op=op,
        target=op.target,
        expected=f"{wanted:,} {what}" if isinstance(wanted, int) else f"the {what} of its clause",
        found=f"{text} {what}" if isinstance(found, int) else text,
    )
    prover.need(state, terms.wide(found) == terms.bits(wanted, 64), error)


def _known(value: Term, what: str) -> None:
    if value is DATA or isinstance(value, Pointer):
        raise UnprovedError(f"{what} that depends on data")


_CALLS: dict[str, Call] = {
    "pl_ring_acquire": _take("acquire"),
    "pl_ring_wait": _take("wait"),
    "pl_ring_commit": _commit,
    "pl_ring_expect": _expect,
    "pl_ring_release": _release,
    "pl_ring_advance": _advance,
    "pl_ring_copy_tile": lambda m, s, a: _copy(m, s, a, bulk=False),
    "pl_ring_copy_bulk": lambda m, s, a: _copy(m, s, a, bulk=True),
    "pl_store_tile": lambda m, s, a: _store(m, s, a, bulk=False),
    "pl_store_bulk": lambda m, s, a: _store(m, s, a, bulk=True),
    "pl_store_wait": _await_store(False),
    "pl_store_complete": _await_store(True),
    "pl_fence_async": _fence("async"),
    "pl_fence_global": _fence("global"),
    "pl_barrier_sync": _barrier("sync"),
    "pl_barrier_arrive": _barrier("arrive"),
    "pl_counter_signal": _counter("signal"),
    "pl_counter_wait_until": _counter("wait_until"),
}
