"""What do a component's own arrivals, waits and named barriers mean to the contract?

An instruction says only a stage, by its address: the item is the one that this lane waited for last
in that stage.  A wait succeeds at its second try (or at its first, where the machine is `eager`):
code that tries once and goes on either way has not waited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipelink_rules.audit.decode_ptx import Registers, Value, operand, registers_of
from pipelink_rules.audit.execution_log import Event
from pipelink_rules.audit.machine_state import InconclusiveError, RestrictionError
from pipelink_rules.audit.pending_operations import OwnStep, address_of, raw_only
from pipelink_rules.audit.runtime_calls import Table, known
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.toolkit.ptx import Statement

if TYPE_CHECKING:
    from pipelink_rules.audit.interpreter import Interpreter

_CUTLASS = 8  # ids that cutlass::arch::NamedBarrier adds to those of its users


def mbarrier(statement: Statement) -> OwnStep | None:
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

        def expect(machine: Interpreter, regs: Registers) -> None:
            table, stage = place_of(machine, where(regs), statement)
            barrier = table.start + 8 * stage
            announced = machine.begun.announced
            announced[barrier] = announced.get(barrier, 0) + known(size(regs))

        return expect
    return None


def _wait(statement: Statement, target: str, place: str, parity_text: str) -> OwnStep:
    where, parity = address_of(place), operand(parity_text)

    def step(machine: Interpreter, regs: Registers) -> None:
        address, odd = where(regs), parity(regs)
        if odd is None:
            raise InconclusiveError("a wait for a parity that depends on data")
        odd &= 1
        table, stage = place_of(machine, address, statement)
        _ordered(statement, table, ".acquire")
        key = table.start + 8 * stage, odd
        if not machine.eager and key not in machine.begun.tried:
            machine.begun.tried.add(key)
            regs[target] = 0
            return
        machine.begun.tried.discard(key)
        regs[target] = 1
        ring = table.ring
        producer = table.side == "empty"
        item = stage + (odd ^ producer) * ring.stages
        place, begun = (ring.name, stage), machine.begun
        if begun.held.get(place) == item and place in begun.fresh:
            return  # to look again is no second wait
        begun.held[place] = item
        begun.fresh.add(place)
        machine.state.emit(Event("acquire" if producer else "wait", ring.name, item))

    return step


def _arrive(statement: Statement, place: str, last: Callable[[Registers], Value] | None) -> OwnStep:
    expects = ".expect_tx" in statement.opcode
    where = address_of(place)

    def step(machine: Interpreter, regs: Registers) -> None:
        table, stage = place_of(machine, where(regs), statement)
        number = 1 if last is None else known(last(regs))
        barrier = table.start + 8 * stage
        announced = machine.begun.announced.pop(barrier, None)
        if expects:
            announced, number = (announced or 0) + number, 1
        item = machine.begun.held.get((table.ring.name, stage), stage)
        machine.begun.fresh.discard((table.ring.name, stage))
        if table.side == "empty":
            verb = "release"
        else:
            verb = "commit" if announced is None else "expect"
        if verb != "expect":  # which orders nothing but the copies that it announces
            _ordered(statement, table, ".release")
        count = announced if verb == "expect" else None
        machine.state.trace.arrive(Event(verb, table.ring.name, item, count), number)

    return step


def _ordered(statement: Statement, table: Table, needed: str) -> None:
    """PL0934 for a relaxed wait or arrival: what comes before and after it has no order."""
    if ".relaxed" in statement.opcode:
        raise RestrictionError(
            "PL0934",
            f"uses `{table.ring.name}`.{table.side} without order",
            table.ring.name,
            f"{needed}, which is the default",
            f"`{statement.opcode}`",
            ("leave `.relaxed` out: accesses of the item are ordered by its barriers",),
        )


def place_of(machine: Interpreter, address: Value, statement: Statement) -> tuple[Table, int]:
    """The ring, side and stage of an mbarrier."""
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
        "uses an mbarrier that is not of its rings",
        "",
        "full[0..S-1] or empty[0..S-1] of a ring of this role",
        f"an mbarrier at {_nearest(machine, address)}",
    )


def _nearest(machine: Interpreter, address: int) -> str:
    below = [table for table in machine.names.tables if table.start <= address]
    if not below:
        return f"shared address {address:#x}"
    table = max(below, key=lambda item: item.start)
    return f"`{table.ring.name}`.{table.side} + {address - table.start} bytes"


def named(statement: Statement) -> OwnStep | None:
    opcode = statement.opcode
    if opcode.startswith("bar.warp"):

        def together(machine: Interpreter, regs: Registers) -> None:
            if machine.names.raw:
                machine.state.emit(Event("syncwarp"))

        return together
    if ".red" in opcode or ".cluster" in opcode:
        return None
    verb = "arrive" if ".arrive" in opcode else "sync"
    reads = [operand(text) for text in statement.arguments()]

    def step(machine: Interpreter, regs: Registers) -> None:
        number = reads[0](regs)
        threads = reads[1](regs) if len(reads) > 1 else None
        if number is None:
            raise InconclusiveError("a named barrier whose id depends on data")
        names = machine.names
        name = names.barriers.get(number)
        shifted = names.barriers.get(number - _CUTLASS)
        if name is None:
            found = f"hardware barrier {number}"
            if shifted:
                found = f"the id of `{shifted}` + {_CUTLASS}, as cutlass::arch::NamedBarrier adds"
            raise RestrictionError(
                "PL0915",
                f"does `{opcode}` on a barrier that is not its own",
                shifted or "",
                "the id of a relocation" + (f": at.{shifted}.id" if shifted else ""),
                found,
                (f"pass at.{shifted}.id - {_CUTLASS}, or call pl_barrier_{verb}",)
                if shifted
                else (),
            )
        raw_only(machine, "", opcode)
        barriers = {item.name: item for item in names.contract.named_barriers}
        promised = evaluate(barriers[name].count, {})
        if threads != promised:
            raise RestrictionError(
                "PL0915",
                f"counts other threads on `{name}`",
                name,
                f"{promised} threads",
                "all threads of the kernel" if len(reads) < 2 else f"{threads} threads",
            )
        machine.state.emit(Event(verb, name))

    return step
