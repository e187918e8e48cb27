"""What has a lane begun by instructions of its own, and what is common to these instructions?"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pipelink_rules.audit.decode_ptx import Registers, Value, operand
from pipelink_rules.audit.execution_log import Event
from pipelink_rules.audit.machine_state import RestrictionError

if TYPE_CHECKING:
    from pipelink_rules.audit.interpreter import Interpreter

_ADDRESS = re.compile(r"\[\s*([%\w$.]+)\s*(?:\+\s*(-?\w+))?\s*(?:,\s*\{[^}]*\}\s*)?\]")

OwnStep = Callable[["Interpreter", Registers], int | None]


@dataclass
class PendingOperations:
    """What a lane's own instructions have begun and not ended."""

    held: dict[tuple[str, int], int] = field(default_factory=dict)  # ring, stage -> item
    tried: set[tuple[int, int]] = field(default_factory=set)  # barrier, parity: failed once
    announced: dict[int, int] = field(default_factory=dict)  # barrier -> bytes without an arrival
    stores: list[Event] = field(default_factory=list)  # not committed
    fresh: set[tuple[str, int]] = field(default_factory=set)  # waited for, nothing arrived since

    def copy(self) -> PendingOperations:
        """For the other side of a branch."""
        return PendingOperations(
            dict(self.held),
            set(self.tried),
            dict(self.announced),
            list(self.stores),
            set(self.fresh),
        )


def raw_only(machine: Interpreter, port: str, opcode: str) -> None:
    """PL0935 where the port (for "": every port of the role) is not raw."""
    raw = machine.names.raw
    if port in raw or (not port and raw):
        return
    raise RestrictionError(
        "PL0935",
        "issues barrier or copy instructions of its own",
        port,
        "operations of the runtime" + (f", or `raw: true` on port `{port}`" if port else ""),
        f"its own `{opcode}`" + (f" on `{port}`" if port else ""),
    )


def address_of(text: str) -> Callable[[Registers], Value]:
    """Reads `[%r1+16]`; coordinates behind it are left out."""
    found = _ADDRESS.match(text)
    if found is None:
        return lambda regs: None
    base, shift = operand(found[1]), int(found[2] or "0", 0)

    def read(regs: Registers) -> Value:
        value = base(regs)
        return None if value is None else value + shift & 0xFFFFFFFFFFFFFFFF

    return read
