"""What do a component's own bulk copies and bulk stores mean to the contract?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipelink_rules.audit.decode_ptx import Registers, operand
from pipelink_rules.audit.execution_log import Event
from pipelink_rules.audit.machine_state import InconclusiveError, RestrictionError
from pipelink_rules.audit.own_barriers import place_of
from pipelink_rules.audit.own_memory import atomic
from pipelink_rules.audit.pending_operations import OwnStep, address_of, raw_only
from pipelink_rules.audit.runtime_calls import box_bytes, known, tensor_of
from pipelink_rules.contract.item_layout import item_layout
from pipelink_rules.toolkit.ptx import Statement

if TYPE_CHECKING:
    from pipelink_rules.audit.interpreter import Interpreter


def copy_or_store(statement: Statement) -> OwnStep | None:
    opcode, arguments = statement.opcode, statement.arguments()
    if opcode.startswith("cp.async.bulk.prefetch"):
        return lambda machine, regs: None
    if opcode.startswith("cp.async.bulk.commit_group"):
        return _commit
    if opcode.startswith("cp.async.bulk.wait_group"):
        return _wait_group(arguments[0], ".read" in opcode, opcode)
    if opcode.startswith("cp.reduce.async.bulk"):
        return atomic(statement)
    if re.match(r"cp\.async\.bulk(\.tensor\.\dd)?\.shared::(cluster|cta)\.global\b", opcode):
        return _load(statement, arguments)
    if re.match(r"cp\.async\.bulk(\.tensor\.\dd)?\.global\.shared::cta\b", opcode):
        return _store(statement, arguments)
    return None


def _load(statement: Statement, arguments: list[str]) -> OwnStep | None:
    tensor = ".tensor" in statement.opcode
    if ".im2col" in statement.opcode:
        return None
    to, source = address_of(arguments[0]), address_of(arguments[1])
    size = None if tensor else operand(arguments[2])
    barrier = address_of(arguments[2 if tensor else 3])

    def step(machine: Interpreter, regs: Registers) -> None:
        address = to(regs)
        if address is None:
            raise InconclusiveError("a copy to an address that depends on data")
        found = machine.state.locate(address)
        if found is None or not found[0].ring:
            raise RestrictionError(
                "PL0915",
                "copies into shared memory of no ring",
                found[0].name if found else "",
                "a stage of a ring out port",
                f"shared memory at {address:#x}" if not found else f"buffer `{found[0].name}`",
            )
        ring, stage = found
        raw_only(machine, ring.name, statement.opcode)
        table, reached = place_of(machine, barrier(regs), statement)
        port = machine.names.contract.port(ring.name)
        name = tensor_of(machine.names, source(regs))
        offset = address - ring.start - stage * ring.stage_bytes
        member = ""
        for tile, start in item_layout(port).offsets:
            member = tile if start <= offset else member
        if (table.ring, table.side, reached) != (ring, "full", stage):
            member += f", completing on `{table.ring.name}`.{table.side}[{reached}]"
        count = box_bytes(machine.names.contract.port(name)) if size is None else size(regs)
        item = machine.begun.held.get((ring.name, stage), stage)
        machine.state.emit(Event("copy", ring.name, item, known(count), name, member))

    return step


def _store(statement: Statement, arguments: list[str]) -> OwnStep:
    tensor = ".tensor" in statement.opcode
    to, source = address_of(arguments[0]), address_of(arguments[1])
    size = None if tensor else operand(arguments[2])

    def step(machine: Interpreter, regs: Registers) -> None:
        name = tensor_of(machine.names, to(regs))
        address = source(regs)
        found = machine.state.locate(address)
        if found is None or address is None:
            raise InconclusiveError("a bulk store from shared memory that no port or buffer holds")
        held, stage = found
        if held.name not in machine.names.raw:
            raw_only(machine, name, statement.opcode)
        end = held.start + held.stage_bytes * (stage + 1 if held.ring else 1)
        count = None if size is None else known(size(regs))
        beyond = count if count is not None and address + count > end else None
        event = Event("store", held.name, stage if held.ring else None, beyond, name)
        if event not in machine.begun.stores:
            machine.begun.stores.append(event)

    return step


def _commit(machine: Interpreter, regs: Registers) -> None:
    raw_only(machine, "", "cp.async.bulk.commit_group")
    for event in machine.begun.stores:
        machine.state.emit(event)
    machine.begun.stores.clear()


def _wait_group(text: str, read: bool, opcode: str) -> OwnStep:
    count = operand(text)

    def step(machine: Interpreter, regs: Registers) -> None:
        raw_only(machine, "", opcode)
        member = "" if read else "full"
        machine.state.emit(Event("await", "store", count=known(count(regs)), member=member))

    return step
