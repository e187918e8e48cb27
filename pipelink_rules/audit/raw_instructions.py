"""Effects of raw instructions: the events that they are to the contract.

On a `raw` port a component issues the instructions that the runtime issues otherwise: arrivals and
waits on the mbarriers of its rings, bulk copies, bulk stores, named barriers.  Each becomes the
event of its operation and is compared with the contract like a call of the runtime.

An mbarrier instruction states only a stage, by its address: the item is the one that this lane
waited for last in that stage.  A wait succeeds at its second try (or at its first, if the machine
is set to `first_try`): code that tries once and continues in either case has not waited.
"""

import re
from collections.abc import Callable

from pipelink_rules.audit.decode_ptx import operand, registers_of
from pipelink_rules.audit.execution_log import Event
from pipelink_rules.audit.lanes import Registers, Value
from pipelink_rules.audit.machine_state import (
    DATA,
    REGION,
    THIS_CTA,
    Effect,
    InconclusiveError,
    Machine,
    RestrictionError,
    Table,
)
from pipelink_rules.audit.runtime_calls import box_bytes, known, member_at, tensor_of
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.toolkit.ptx import Statement

_CUTLASS = 8  # ids that cutlass::arch::NamedBarrier adds to those of its users
_ADDRESS = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+))?\s*(?:,\s*\{[^}]*\}\s*)?\]")
_STRONG = re.compile(r"(ld|st)\.(\w+\.)*?(acquire|release|relaxed|volatile|mmio)\b")


def raw_only(machine: Machine, port: str, opcode: str) -> None:
    """Raise PL0935 where the port (for "": every port of the role) is not raw."""
    raw = machine.names.raw
    if port in raw or (not port and raw):
        return
    wanted, found = "operations of the runtime", f"raw instruction `{opcode}`"
    if port:
        wanted, found = f"{wanted}, or `raw: true` on port `{port}`", f"{found} on `{port}`"
    what = "issues raw barrier or copy instructions without a raw port"
    raise RestrictionError("PL0935", what, port, wanted, found)


def address_of(text: str) -> Callable[[Registers], Value]:
    """Return a reader of the address in `[%r1+16]`; coordinates after it are ignored."""
    found = _ADDRESS.match(text)
    if found is None:
        return lambda regs: None
    base, shift = operand(found[1]), int(found[2] or "0", 0)

    def read(regs: Registers) -> Value:
        value = base(regs)
        return None if value is None else value + shift & 0xFFFFFFFFFFFFFFFF

    return read


# -- mbarriers and named barriers ------------------------------------------------------------------
def mbarrier(statement: Statement) -> Effect | None:
    kind = statement.opcode.split(".")[1]
    arguments = statement.arguments()
    if kind in ("try_wait", "test_wait") and ".parity" in statement.opcode:
        return _wait(statement, registers_of(arguments[0])[0], arguments[1], arguments[2])
    if kind == "arrive" and ".noComplete" not in statement.opcode:
        rest = arguments if arguments[0].startswith("[") else arguments[1:]
        last = operand(rest[1]) if len(rest) > 1 else None
        return _arrive(statement, rest[0], last)
    if kind == "expect_tx":
        where, size = address_of(arguments[0]), operand(arguments[1])

        def expect(machine: Machine, regs: Registers) -> None:
            table, stage = find_mbarrier(machine, where(regs), statement)
            barrier = table.start + 8 * stage
            announced = machine.pending.announced
            announced[barrier] = announced.get(barrier, 0) + known(size(regs))

        return expect
    return None


def _wait(statement: Statement, target: str, barrier_text: str, parity_text: str) -> Effect:
    where, parity = address_of(barrier_text), operand(parity_text)

    def step(machine: Machine, regs: Registers) -> None:
        address, odd = where(regs), parity(regs)
        if odd is None:
            raise InconclusiveError("a wait for a parity that depends on data")
        odd &= 1
        table, stage = find_mbarrier(machine, address, statement)
        _ordered(statement, table, ".acquire")
        key = table.start + 8 * stage, odd
        if not machine.first_try and key not in machine.pending.tried:
            machine.pending.tried.add(key)
            regs[target] = 0
            return
        machine.pending.tried.discard(key)
        regs[target] = 1
        ring = table.ring
        producer = table.side == "empty"
        item = stage + (odd ^ producer) * ring.stages
        at, pending = (ring.name, stage), machine.pending
        if pending.held.get(at) == item and at in pending.fresh:
            return  # trying again is not a second wait
        pending.held[at] = item
        pending.fresh.add(at)
        machine.state.emit(Event("acquire" if producer else "wait", ring.name, item))

    return step


def _arrive(
    statement: Statement, barrier_text: str, last: Callable[[Registers], Value] | None
) -> Effect:
    expects = ".expect_tx" in statement.opcode
    where = address_of(barrier_text)

    def step(machine: Machine, regs: Registers) -> None:
        table, stage = find_mbarrier(machine, where(regs), statement)
        number = 1 if last is None else known(last(regs))
        barrier = table.start + 8 * stage
        announced = machine.pending.announced.pop(barrier, None)
        if expects:
            announced, number = (announced or 0) + number, 1
        item = machine.pending.held.get((table.ring.name, stage), stage)
        machine.pending.fresh.discard((table.ring.name, stage))
        if table.side == "empty":
            verb = "release"
        else:
            verb = "commit" if announced is None else "expect"
        if verb != "expect":  # an expect orders nothing but the copies that it announces
            _ordered(statement, table, ".release")
        count = announced if verb == "expect" else None
        machine.state.log.arrive(Event(verb, table.ring.name, item, count), number)

    return step


def _ordered(statement: Statement, table: Table, needed: str) -> None:
    """Raise PL0934 for a relaxed wait or arrival, which does not order the accesses around it."""
    if ".relaxed" in statement.opcode:
        ring = table.ring.name
        raise RestrictionError(
            "PL0934",
            f"uses a relaxed mbarrier operation on `{ring}`.{table.side}",
            ring,
            f"{needed}, which is the default",
            f"`{statement.opcode}`",
            ("remove `.relaxed`: the barriers of an item order the accesses to it",),
        )


def find_mbarrier(machine: Machine, address: Value, statement: Statement) -> tuple[Table, int]:
    """Return the ring, side and stage of an mbarrier."""
    opcode = statement.opcode
    if address is None:
        raw_only(machine, "", opcode)
        raise InconclusiveError("an mbarrier whose address depends on data")
    for table in machine.names.tables:
        number, rest = divmod(address - table.start, 8)
        if not rest and 0 <= number < table.ring.stages:
            raw_only(
                machine, table.ring.name, statement.opcode if statement else "mbarrier.try_wait"
            )
            return table, number
    raw_only(machine, "", opcode)
    raise RestrictionError(
        "PL0915",
        "uses an mbarrier outside of its rings",
        "",
        "full[0..S-1] or empty[0..S-1] of a ring of this role",
        f"an mbarrier at {_nearest(machine, address)}",
    )


def _nearest(machine: Machine, address: int) -> str:
    below = [table for table in machine.names.tables if table.start <= address]
    if not below:
        return f"shared address {address:#x}"
    table = max(below, key=lambda item: item.start)
    return f"`{table.ring.name}`.{table.side} + {address - table.start} bytes"


def named_barrier(statement: Statement) -> Effect | None:
    opcode = statement.opcode
    if opcode.startswith("bar.warp"):

        def together(machine: Machine, regs: Registers) -> None:
            if machine.names.raw:
                machine.state.emit(Event("syncwarp"))

        return together
    if ".red" in opcode or ".cluster" in opcode:
        return None
    verb = "arrive" if ".arrive" in opcode else "sync"
    reads = [operand(text) for text in statement.arguments()]

    def step(machine: Machine, regs: Registers) -> None:
        number = reads[0](regs)
        threads = reads[1](regs) if len(reads) > 1 else None
        if number is None:
            raise InconclusiveError("a named barrier whose id depends on data")
        names = machine.names
        name = names.barriers.get(number)
        shifted = names.barriers.get(number - _CUTLASS)
        if name is None:
            what, wanted = f"performs `{opcode}` on an undeclared barrier", "the id of a relocation"
            if shifted is None:
                found = f"hardware barrier {number}"
                raise RestrictionError("PL0915", what, "", wanted, found)
            found = f"the id of `{shifted}` + {_CUTLASS}, as cutlass::arch::NamedBarrier adds"
            fix = f"pass at.{shifted}.id - {_CUTLASS}, or call pl_barrier_{verb}"
            wanted += f": at.{shifted}.id"
            raise RestrictionError("PL0915", what, shifted, wanted, found, (fix,))
        raw_only(machine, "", opcode)
        barriers = {item.name: item for item in names.contract.named_barriers}
        declared = evaluate(barriers[name].count, {})
        if threads != declared:
            what = f"passes a wrong thread count to named barrier `{name}`"
            found = "all threads of the kernel" if len(reads) < 2 else f"{threads} threads"
            raise RestrictionError("PL0915", what, name, f"{declared} threads", found)
        machine.state.emit(Event(verb, name))

    return step


# -- bulk copies and bulk stores ------------------------------------------------------------------
def copy_or_store(statement: Statement) -> Effect | None:
    opcode, arguments = statement.opcode, statement.arguments()
    if opcode.startswith("cp.async.bulk.prefetch"):
        return lambda machine, regs: None
    if opcode.startswith("cp.async.bulk.commit_group"):
        return _commit_group
    if opcode.startswith("cp.async.bulk.wait_group"):
        return _wait_group(arguments[0], ".read" in opcode, opcode)
    if opcode.startswith("cp.reduce.async.bulk"):
        return atomic(statement)
    if re.match(r"cp\.async\.bulk(\.tensor\.\dd)?\.shared::(cluster|cta)\.global\b", opcode):
        return _bulk_load(statement, arguments)
    if re.match(r"cp\.async\.bulk(\.tensor\.\dd)?\.global\.shared::cta\b", opcode):
        return _bulk_store(statement, arguments)
    return None


def _bulk_load(statement: Statement, arguments: list[str]) -> Effect | None:
    tensor = ".tensor" in statement.opcode
    if ".im2col" in statement.opcode:
        return None
    to, source = address_of(arguments[0]), address_of(arguments[1])
    size = None if tensor else operand(arguments[2])
    barrier = address_of(arguments[2 if tensor else 3])

    def step(machine: Machine, regs: Registers) -> None:
        address = to(regs)
        if address is None:
            raise InconclusiveError("a copy to an address that depends on data")
        found = machine.state.locate(address)
        if found is None or not found[0].ring:
            name = found[0].name if found else ""
            to_text = f"buffer `{name}`" if found else f"shared memory at {address:#x}"
            what, wanted = "copies to an address outside of its rings", "a stage of a ring out port"
            raise RestrictionError("PL0915", what, name, wanted, to_text)
        ring, stage = found
        raw_only(machine, ring.name, statement.opcode)
        table, reached = find_mbarrier(machine, barrier(regs), statement)
        port = machine.names.contract.port(ring.name)
        name = tensor_of(machine.names, source(regs))
        offset = address - ring.start - stage * ring.stage_bytes
        count = known(box_bytes(machine.names.contract.port(name)) if size is None else size(regs))
        member = member_at(port, offset, count)
        if (table.ring, table.side, reached) != (ring, "full", stage):
            member += f", completing on `{table.ring.name}`.{table.side}[{reached}]"
        item = machine.pending.held.get((ring.name, stage), stage)
        machine.state.emit(Event("copy", ring.name, item, count, name, member))

    return step


def _bulk_store(statement: Statement, arguments: list[str]) -> Effect:
    tensor = ".tensor" in statement.opcode
    to, source = address_of(arguments[0]), address_of(arguments[1])
    size = None if tensor else operand(arguments[2])

    def step(machine: Machine, regs: Registers) -> None:
        name = tensor_of(machine.names, to(regs))
        address = source(regs)
        found = machine.state.locate(address)
        if found is None or address is None:
            raise InconclusiveError("a bulk store from an address outside of all ports and buffers")
        held, stage = found
        if held.name not in machine.names.raw:
            raw_only(machine, name, statement.opcode)
        end = held.start + held.stage_bytes * (stage + 1 if held.ring else 1)
        count = None if size is None else known(size(regs))
        beyond = count if count is not None and address + count > end else None
        event = Event("store", held.name, stage if held.ring else None, beyond, name)
        if event not in machine.pending.stores:
            machine.pending.stores.append(event)

    return step


def _commit_group(machine: Machine, regs: Registers) -> None:
    raw_only(machine, "", "cp.async.bulk.commit_group")
    for event in machine.pending.stores:
        machine.state.emit(event)
    machine.pending.stores.clear()


def _wait_group(text: str, read: bool, opcode: str) -> Effect:
    count = operand(text)

    def step(machine: Machine, regs: Registers) -> None:
        raw_only(machine, "", opcode)
        member = "" if read else "full"
        machine.state.emit(Event("await", "store", count=known(count(regs)), member=member))

    return step


# -- other CTAs, other lanes, memory of the GPU ----------------------------------------------------
def is_strong(opcode: str) -> bool:
    """Return whether other threads may synchronize with an access."""
    return _STRONG.match(opcode) is not None


def mapa(statement: Statement) -> Effect:
    arguments = statement.arguments()
    target, address, rank = registers_of(arguments[0])[0], operand(arguments[1]), arguments[2]
    which = operand(rank)

    def step(machine: Machine, regs: Registers) -> None:
        found = which(regs)
        if found is None:
            raise InconclusiveError("mapa for a CTA rank that depends on data")
        if found != THIS_CTA:
            raise RestrictionError(
                "PL0914",
                "uses the shared memory of another CTA",
                "",
                "the CTA itself: %cluster_ctarank, or no mapa at all",
                f"`{statement.opcode}` for rank {found}",
                ("arrive at shared::cta: the rings of a raw port are local",),
            )
        regs[target] = address(regs)

    return step


def elect(statement: Statement) -> Effect:
    """Return the effect of electing lane 0, for any lane that the hardware may elect."""
    texts = [text.strip() for text in statement.arguments()[0].split("|")]

    def step(machine: Machine, regs: Registers) -> None:
        regs[texts[0]] = 0
        regs[texts[-1]] = machine.first_lane()

    return step


def atomic(statement: Statement) -> Effect:
    """Return the effect of an atomic: in shared memory an update, otherwise PL0936."""
    arguments = statement.arguments()
    where = address_of(next((text for text in arguments if text.startswith("[")), "[?]"))
    targets = registers_of(arguments[0]) if not arguments[0].startswith("[") else []
    check = check_strong(statement)

    def step(machine: Machine, regs: Registers) -> None:
        check(machine, regs)
        address = where(regs)
        machine.state.touch_shared("update", None if address is None else address & 0xFFFFFFFF)
        for target in targets:
            regs[target] = None

    return step


def check_strong(statement: Statement) -> Effect:
    """Return an effect that raises PL0936 for global memory, where the access orders CTAs."""
    opcode = statement.opcode
    where = address_of(next((text for text in statement.arguments() if text[:1] == "["), "[?]"))
    shared = ".shared" in opcode and not opcode.startswith("cp.")

    def step(machine: Machine, regs: Registers) -> None:
        address: Value = where(regs)
        if shared or (address is not None and address < DATA):
            return
        if address is None and ".global" not in opcode:
            raise InconclusiveError(f"`{opcode}` at an address that depends on data")
        port = "" if address is None else machine.names.tensors.get(address >> REGION, "")
        raise RestrictionError(
            "PL0936",
            "synchronizes through global memory",
            port,
            "plain reads and writes of global ports",
            f"`{opcode}`" + (f" on `{port}`" if port else ""),
        )

    return step


_EFFECTS = {
    "mbarrier": mbarrier,
    "cp": copy_or_store,
    "bar": named_barrier,
    "barrier": named_barrier,
    "mapa": mapa,
    "elect": elect,
    "atom": atomic,
    "red": atomic,
    "multimem": atomic,
}


def raw_effect(statement: Statement) -> Effect | None:
    """Return the effect of a raw instruction; None for other and for unmodeled instructions."""
    if statement.opcode.startswith("red.async"):
        return None
    read = _EFFECTS.get(statement.base)
    return read(statement) if read else None
