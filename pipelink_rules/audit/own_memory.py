"""Where do a component's own instructions reach: other CTAs, lanes, memory of the GPU?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipelink_rules.audit.decode_ptx import Registers, Value, operand, registers_of
from pipelink_rules.audit.machine_state import DATA, REGION, InconclusiveError, RestrictionError
from pipelink_rules.audit.pending_operations import OwnStep, address_of
from pipelink_rules.toolkit.ptx import Statement

if TYPE_CHECKING:
    from pipelink_rules.audit.interpreter import Interpreter

THIS_CTA = 0x5E1F  # what %cluster_ctarank reads: a number that no source writes
_STRONG = re.compile(r"(ld|st)\.(\w+\.)*?(acquire|release|relaxed|volatile|mmio)\b")


def is_strong(opcode: str) -> bool:
    """An access that other threads may synchronise with."""
    return _STRONG.match(opcode) is not None


def mapa(statement: Statement) -> OwnStep:
    arguments = statement.arguments()
    target, address, rank = registers_of(arguments[0])[0], operand(arguments[1]), arguments[2]
    which = operand(rank)

    def step(machine: Interpreter, regs: Registers) -> None:
        found = which(regs)
        if found is None:
            raise InconclusiveError("the address of a CTA whose rank depends on data")
        if found != THIS_CTA:
            raise RestrictionError(
                "PL0914",
                "uses the shared memory of another CTA",
                "",
                "the CTA itself: %cluster_ctarank, or no mapa at all",
                f"`{statement.opcode}` for rank {found}",
                ("arrive on shared::cta: the rings of a raw port are local",),
            )
        regs[target] = address(regs)

    return step


def elect(statement: Statement) -> OwnStep:
    """Lane 0 stands for whichever lane the hardware elects."""
    texts = [text.strip() for text in statement.arguments()[0].split("|")]

    def step(machine: Interpreter, regs: Registers) -> None:
        regs[texts[0]] = 0
        regs[texts[-1]] = int(machine.lane == 0)

    return step


def atomic(statement: Statement) -> OwnStep:
    """Shared ones are accesses of this CTA; global ones no contract can show."""
    arguments = statement.arguments()
    where = address_of(next((text for text in arguments if text.startswith("[")), "[?]"))
    targets = registers_of(arguments[0]) if not arguments[0].startswith("[") else []
    check = strong(statement)

    def step(machine: Interpreter, regs: Registers) -> None:
        check(machine, regs)
        address = where(regs)
        for kind in ("read", "write"):
            machine.state.touch_shared(kind, None if address is None else address & 0xFFFFFFFF)
        for target in targets:
            regs[target] = None

    return step


def strong(statement: Statement) -> OwnStep:
    """PL0936 where the access is one of global memory: it would order CTAs."""
    opcode = statement.opcode
    where = address_of(next((text for text in statement.arguments() if text[:1] == "["), "[?]"))
    shared = ".shared" in opcode and not opcode.startswith("cp.")

    def step(machine: Interpreter, regs: Registers) -> None:
        address: Value = where(regs)
        if shared or (address is not None and address < DATA):
            return
        if address is None and ".global" not in opcode:
            raise InconclusiveError(f"`{opcode}` at an address that depends on data")
        port = "" if address is None else machine.names.tensors.get(address >> REGION, "")
        raise RestrictionError(
            "PL0936",
            "synchronises through global memory",
            port,
            "plain reads and writes of global ports",
            f"`{opcode}`" + (f" on `{port}`" if port else ""),
        )

    return step
