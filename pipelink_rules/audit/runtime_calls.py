"""Effects of runtime calls: the events that they are to the contract."""

from collections.abc import Callable, Sequence

from pipelink_rules.audit.execution_log import Access, Copied, Event
from pipelink_rules.audit.lanes import Value
from pipelink_rules.audit.machine_state import (
    REGION,
    InconclusiveError,
    Names,
    RestrictionError,
    SharedRange,
    State,
)
from pipelink_rules.contract.item_layout import item_layout, member_bytes
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import DTYPES, Port

RuntimeCall = Callable[[State, Names, Sequence[Value]], None]
# The argument of a call that names the calling thread itself.
VARYING_ARGUMENTS = {"pl_tensor_load_32": 2, "pl_tensor_store_32": 2}


def call_runtime(state: State, names: Names, name: str, arguments: Sequence[Value]) -> None:
    """Interpret a runtime operation; InconclusiveError for an unknown one."""
    operation = _RUNTIME_CALLS.get(name)
    if operation is None:
        raise InconclusiveError(f"call of the unknown function `{name}`")
    operation(state, names, arguments)


def item_of(state: State, ring: SharedRange, cursor: Value) -> int:
    """Return the item of a cursor, modulo twice the stages."""
    stage = state.word(cursor)
    phase = state.word(None if cursor is None else cursor + 4)
    if stage is None or phase is None:
        raise InconclusiveError(f"a cursor of `{ring.name}` that depends on data")
    return stage + phase * ring.stages


def operand_stage(state: State, descriptor: Value) -> tuple[str, int]:
    """Return the ring and stage of one operand of wgmma or tcgen05.mma."""
    ring, stage, _ = _operand_place(state, descriptor)
    return ring.name, stage


def operand_member(state: State, names: Names, descriptor: Value) -> tuple[str, int, str]:
    """Return the ring, stage and tile of one operand of wgmma."""
    ring, stage, offset = _operand_place(state, descriptor)
    starts = dict(item_layout(names.contract.port(ring.name)).offsets)
    below = [name for name, start in starts.items() if start <= offset]
    return ring.name, stage, max(below, key=lambda name: starts[name])


def _operand_place(state: State, descriptor: Value) -> tuple[SharedRange, int, int]:
    address = 0 if descriptor is None else (descriptor & 0x3FFF) << 4
    located = None if descriptor is None else state.locate(address)
    if located is None:
        raise InconclusiveError("a wgmma operand outside of all rings")
    ring, stage = located
    return ring, stage, address - ring.start - stage * ring.stage_bytes


def _ring(state: State, names: Names, at: Value) -> SharedRange:
    data = state.word(None if at is None else at + 4)
    ring = None if data is None else names.rings.get(data)
    if ring is None:
        raise InconclusiveError("a ring that is not a relocation of this role")
    return ring


def _simple(verb: str) -> RuntimeCall:
    def operation(state: State, names: Names, arguments: Sequence[Value]) -> None:
        ring = _runtime_ring(names, _ring(state, names, arguments[0]))
        state.emit(Event(verb, ring.name, item_of(state, ring, arguments[1])))

    return operation


def _expect(state: State, names: Names, arguments: Sequence[Value]) -> None:
    ring = _runtime_ring(names, _ring(state, names, arguments[0]))
    state.emit(Event("expect", ring.name, item_of(state, ring, arguments[1]), known(arguments[2])))


def _runtime_ring(names: Names, ring: SharedRange) -> SharedRange:
    """Raise PL0935 for a ring that the contract declares raw."""
    _not_raw(names, ring.name)
    return ring


def _not_raw(names: Names, port: str) -> None:
    if port in names.raw:
        raise RestrictionError(
            "PL0935",
            f"calls the runtime for raw port `{port}`",
            port,
            f"raw instructions on `{port}`, or no `raw: true`",
            "an operation of the runtime",
            ("remove `raw: true`, or use raw instructions only",),
        )


def _advance(state: State, names: Names, arguments: Sequence[Value]) -> None:
    ring, cursor = _ring(state, names, arguments[0]), arguments[1]
    following = (item_of(state, ring, cursor) + 1) % (2 * ring.stages)
    assert cursor is not None
    state.store(cursor, 4, following % ring.stages)
    state.store(cursor + 4, 4, following // ring.stages)


def _copy(state: State, names: Names, arguments: Sequence[Value]) -> None:
    ring, item = _ring(state, names, arguments[0]), item_of(state, *_pair(state, names, arguments))
    port = names.contract.port(_runtime_ring(names, ring).name)
    source = tensor_of(names, arguments[3])
    bulk = len(arguments) == 5
    size = known(arguments[4]) if bulk else box_bytes(names.contract.port(source))
    member = member_at(port, known(arguments[2]), size)
    if not bulk:
        state.log.copies.append(Copied(source, arguments[4], arguments[5]))
    state.emit(Event("copy", ring.name, item, size, source, member))


def member_at(port: Port, offset: int, size: int) -> str:
    """Return the tile of an item that holds some bytes; where they begin if they are outside."""
    starts = dict(item_layout(port).offsets)
    name = max((item for item in starts if starts[item] <= offset), key=lambda item: starts[item])
    inside = offset - starts[name]
    whole = member_bytes(next(item for item in port.members if item.name == name))
    return name if inside + size <= whole else f"{name} + {inside} bytes"


def _pair(state: State, names: Names, arguments: Sequence[Value]) -> tuple[SharedRange, Value]:
    return _ring(state, names, arguments[0]), arguments[1]


def box_bytes(port: Port) -> int:
    """Return the bytes of one copy by the port's tensor map; of its whole tile without one."""
    if port.tile is None:
        return member_bytes(port.members[0])
    size = DTYPES[port.members[0].dtype][0]
    for extent in port.tile.box:
        size *= evaluate(extent, {})
    return size


def _store_tile(state: State, names: Names, arguments: Sequence[Value]) -> None:
    _store(state, names, arguments, None)


def _store_bulk(state: State, names: Names, arguments: Sequence[Value]) -> None:
    _store(state, names, arguments, known(arguments[2]))


def _store(state: State, names: Names, arguments: Sequence[Value], size: int | None) -> None:
    tensor, address = tensor_of(names, arguments[0]), arguments[1]
    located = state.locate(address)
    if located is None:
        raise InconclusiveError("a bulk store from an address outside of all ports and buffers")
    held, stage = located
    for port in (held.name, tensor):
        _not_raw(names, port)
    end = held.start + held.stage_bytes * (stage + 1 if held.ring else 1)
    beyond = size if size is not None and address is not None and address + size > end else None
    state.emit(Event("store", held.name, stage if held.ring else None, beyond, tensor))


def _store_await(member: str) -> RuntimeCall:
    """Return an await: a thread counts its own groups, so raw ports exclude the runtime's await."""

    def operation(state: State, names: Names, arguments: Sequence[Value]) -> None:
        for port in names.stored:
            _not_raw(names, port)
        state.emit(Event("await", "store", count=known(arguments[0]), member=member))

    return operation


def tensor_of(names: Names, address: Value) -> str:
    """Return the global port that a pointer or tensor map belongs to."""
    name = None if address is None else names.tensors.get(address >> REGION)
    if name is None:
        raise InconclusiveError("a copy with a global address outside of all ports")
    return name


def known(value: Value) -> int:
    """Return the value; InconclusiveError if it depends on data."""
    if value is None:
        raise InconclusiveError("a size or count that depends on data")
    return value


def _barrier(verb: str) -> RuntimeCall:
    def operation(state: State, names: Names, arguments: Sequence[Value]) -> None:
        number = state.word(arguments[0])
        name = None if number is None else names.barriers.get(number)
        if name is None:
            raise InconclusiveError("a named barrier that is not a relocation of this role")
        state.emit(Event(verb, name))

    return operation


def _tensor_mma(state: State, names: Names, arguments: Sequence[Value]) -> None:
    """Merge the k-steps of one item into one operation of the contract."""
    accumulators = _ring(state, names, arguments[0])
    item = item_of(state, accumulators, arguments[1])
    operands = dict.fromkeys(operand_stage(state, descriptor) for descriptor in arguments[2:4])
    events = [
        Event("mma", ring, stage, source=accumulators.name, member=f"item {item}")
        for ring, stage in operands
    ]
    if state.log.events[-len(events) :] != events:
        for event in events:
            state.emit(event)


def _commit_mma(side: str) -> RuntimeCall:
    def operation(state: State, names: Names, arguments: Sequence[Value]) -> None:
        ring = _ring(state, names, arguments[0])
        item = item_of(state, ring, arguments[1])
        state.emit(Event("commit", ring.name, item, source="mma", member=side))

    return operation


def _tensor_access(kind: str) -> RuntimeCall:
    def operation(state: State, names: Names, arguments: Sequence[Value]) -> None:
        ring = _ring(state, names, arguments[0])
        stage = item_of(state, ring, arguments[1]) % ring.stages
        state.log.access(Access(kind, ring.name, stage))

    return operation


def _tensor_await(kind: str) -> RuntimeCall:
    return lambda state, names, arguments: state.emit(Event("await", f"tensor {kind}", count=0))


def _fence(target: str) -> RuntimeCall:
    return lambda state, names, arguments: state.emit(Event("fence", target))


def _counter(state: State, names: Names, at: Value) -> str:
    low, high = state.word(at), state.word(None if at is None else at + 4)
    name = None if low is None or high is None else names.tensors.get((low | high << 32) >> REGION)
    if name is None:
        raise InconclusiveError("counters that are not a port of this role")
    return name


def _signal(state: State, names: Names, arguments: Sequence[Value]) -> None:
    name = _counter(state, names, arguments[0])
    state.emit(Event("signal", name, known(arguments[1])))


def _wait_until(state: State, names: Names, arguments: Sequence[Value]) -> None:
    name = _counter(state, names, arguments[0])
    state.emit(Event("wait_until", name, known(arguments[1]), known(arguments[2])))


_RUNTIME_CALLS: dict[str, RuntimeCall] = {
    "pl_ring_acquire": _simple("acquire"),
    "pl_ring_expect": _expect,
    "pl_ring_commit": _simple("commit"),
    "pl_ring_wait": _simple("wait"),
    "pl_ring_release": _simple("release"),
    "pl_ring_advance": _advance,
    "pl_ring_copy_tile": _copy,
    "pl_ring_copy_bulk": _copy,
    "pl_store_tile": _store_tile,
    "pl_store_bulk": _store_bulk,
    "pl_store_wait": _store_await(""),
    "pl_store_complete": _store_await("full"),
    "pl_fence_async": _fence("async"),
    "pl_fence_global": _fence("global"),
    "pl_tensor_mma": _tensor_mma,
    "pl_mma_commit_empty": _commit_mma("empty"),
    "pl_mma_commit_full": _commit_mma("full"),
    "pl_tensor_load_32": _tensor_access("read"),
    "pl_tensor_store_32": _tensor_access("write"),
    "pl_tensor_await_load": _tensor_await("load"),
    "pl_tensor_await_store": _tensor_await("store"),
    "pl_tensor_fence_before": _fence("tensor before"),
    "pl_tensor_fence_after": _fence("tensor after"),
    "pl_counter_signal": _signal,
    "pl_counter_wait_until": _wait_until,
    "pl_barrier_sync": _barrier("sync"),
    "pl_barrier_arrive": _barrier("arrive"),
}
