"""State of an interpreted lane: memory as known 32-bit words, and the owner of each address.

Every pointer is a number: each region (relocations, ports, work, locals, each tensor and fragment)
has 2**40 separate addresses; shared memory has the numbers below 2**32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pipelink_rules.audit.decode_ptx import HIGH_WORD, LOW_WORD, join_words
from pipelink_rules.audit.execution_log import Access, Event, ExecutionLog
from pipelink_rules.audit.lanes import Cell, DivergedError, Lanes, Registers, Value, uniform
from pipelink_rules.model.contract import Contract
from pipelink_rules.toolkit.ptx import Statement

REGION = 40  # bits of an address inside a region
MIDDLE = 1 << 39  # where a tensor starts in its region: offsets may be negative
RELOCATIONS, PORTS, WORK, LOCAL = (number << REGION for number in (1, 2, 3, 4))
FIRST_PORT = 16  # number of the first port's region
DATA = FIRST_PORT << REGION
WORD = 0xFFFFFFFF
THIS_CTA = 0x5E1F  # value of %cluster_ctarank: a number that no source contains


class InconclusiveError(Exception):
    """The interpreter cannot decide what the code does; the text is the reason."""


class RestrictionError(Exception):
    """The code violates a restriction that holds for every contract."""

    def __init__(
        self,
        code: str,
        message: str,
        target: str,
        expected: str,
        found: str,
        suggestions: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.target = code, message, target
        self.expected, self.found, self.suggestions = expected, found, suggestions


@dataclass(frozen=True)
class SharedRange:
    """A ring's stages or a buffer in shared memory."""

    name: str
    ring: bool
    start: int
    stage_bytes: int
    stages: int

    @property
    def end(self) -> int:
        """One byte past the last stage."""
        return self.start + self.stage_bytes * self.stages


@dataclass
class State:
    """Everything that a role can change except registers; copied at a branch on data."""

    memory: dict[int, Cell]  # address // 4 -> word; absent = unknown
    ranges: tuple[SharedRange, ...]
    regions: dict[int, str]  # region number -> port
    log: ExecutionLog = field(default_factory=ExecutionLog)
    scratch: frozenset[str] = frozenset()  # ports of scratch memory
    touched: set[tuple[str, int]] = field(default_factory=set)  # addresses of them in this tile
    diverged: tuple[int, ...] = ()  # lanes that execute while others of their warp do not
    lenient: bool = False  # one lane may perform an operation for all, as on raw ports
    _data: dict[tuple[str, int], Access] = field(default_factory=dict)

    def load(self, address: Value, size: int) -> Cell:
        """Return the bytes at an address if known, and record an access to data."""
        self.touch("read", address)
        return self.peek(address, size)

    def peek(self, address: Value, size: int) -> Cell:
        """Return the bytes at an address if known, without recording an access."""
        if address is None or size < 4 or address & 3:
            return None
        low = self.memory.get(address >> 2)
        if size == 4 or low is None:
            return low
        return join_words(low, self.memory.get((address >> 2) + 1))

    def store(self, address: Value, size: int, value: Cell) -> None:
        """Write a value and record the access; an unknown value makes the words unknown."""
        self.touch("write", address)
        if address is None:
            raise InconclusiveError("a store to an address that depends on data")
        if address >> REGION << REGION in (RELOCATIONS, WORK):
            raise InconclusiveError("a store to the relocations or the work tile")
        for word in range(max(1, size // 4)):
            key = (address >> 2) + word
            if value is None or size < 4:
                self.memory.pop(key, None)
            elif isinstance(value, Lanes):
                self.memory[key] = HIGH_WORD(value) if word else LOW_WORD(value)
            else:
                self.memory[key] = value >> 32 * word & WORD

    def word(self, address: Value) -> Value:
        """Return a word of a struct, without recording an access."""
        return None if address is None else uniform(self.memory.get(address >> 2))

    def touch(self, kind: str, address: Value) -> None:
        """Record an access by a generic address: shared memory, or a port's data."""
        if address is None or address >= DATA:
            self.touch_data(kind, address)
        elif not address >> REGION:
            self.touch_shared(kind, address)

    def touch_data(self, kind: str, address: Value) -> None:
        """Record an access to a tensor or fragment; reads at unknown addresses are ignored."""
        if address is None:
            return
        key = kind, address >> REGION
        access = self._data.get(key)
        if access is None:
            name = self.regions.get(key[1], "memory outside of all ports")
            access = self._data[key] = Access(kind, name)
        self.log.accesses[-1].add(access)
        if access.target in self.scratch:
            self.touched.add((access.target, address))

    def touch_shared(self, kind: str, *addresses: Value) -> None:
        """Record an access to shared memory, at the address of each thread."""
        known = [address for address in addresses if address is not None]
        if len(known) != len(addresses):
            raise InconclusiveError(f"a {kind} of shared memory at an address that depends on data")
        ends = {self.locate(min(known)), self.locate(max(known))}
        found = ends if len(ends) == 1 and None not in ends else {self.locate(a) for a in known}
        for item in found:
            if item is None:
                outside = next(a for a in known if self.locate(a) is None)
                self.log.access(Access(kind, f"shared memory at {outside:#x}"))
                continue
            self.log.access(Access(kind, item[0].name, item[1]))
            if kind == "write" and not item[0].ring:
                self.log.write(item[0].name, known)

    def locate(self, address: Value) -> tuple[SharedRange, int] | None:
        """Return the ring or buffer that holds a shared address, and the stage; -1 for a buffer."""
        if address is None:
            return None
        for item in self.ranges:
            if item.start <= address < item.end:
                stage = (address - item.start) // item.stage_bytes
                return item, stage if item.ring else -1
        return None

    def emit(self, event: Event) -> None:
        """Record an event; DivergedError if only a part of a warp performs it."""
        if self.diverged and not self.lenient:
            raise DivergedError("PL0934", str(event), self.diverged)
        self.log.emit(event)


@dataclass(frozen=True)
class Table:
    """The full or the empty mbarriers of a ring, 8 bytes each."""

    ring: SharedRange
    side: str  # "full" or "empty"
    start: int  # shared address of the first


@dataclass(frozen=True)
class Names:
    """Meanings of relocations and pointers."""

    contract: Contract
    rings: Mapping[int, SharedRange]  # address of stage 0 -> ring
    barriers: Mapping[int, str]  # id -> name
    tensors: Mapping[int, str]  # region number -> global port
    tables: tuple[Table, ...] = ()
    raw: frozenset[str] = frozenset()  # raw ports of the role
    stored: tuple[str, ...] = ()  # what the role's bulk stores read and write
    multiplied: tuple[str, ...] = ()  # rings of operands, in the order of the body


@dataclass
class PendingOperations:
    """Operations that raw instructions of a lane have started and not completed."""

    held: dict[tuple[str, int], int] = field(default_factory=dict)  # ring, stage -> item
    tried: set[tuple[int, int]] = field(default_factory=set)  # barrier, parity: failed once
    announced: dict[int, int] = field(default_factory=dict)  # barrier -> bytes without an arrival
    stores: list[Event] = field(default_factory=list)  # not committed
    fresh: set[tuple[str, int]] = field(default_factory=set)  # waited for, nothing arrived since

    def copy(self) -> PendingOperations:
        """Return a copy for the other side of a branch."""
        return PendingOperations(
            dict(self.held),
            set(self.tried),
            dict(self.announced),
            list(self.stores),
            set(self.fresh),
        )


class Machine(Protocol):
    """A group of threads without its registers, as effects of instructions use it."""

    state: State
    names: Names
    lane: int
    first_try: bool  # raw waits succeed at the first try
    pending: PendingOperations
    active: tuple[int, ...]  # positions of the threads that execute; (0,) = a single thread

    def call(self, name: str, arguments: Sequence[Cell]) -> None:
        """Interpret a call of a function of the module or of the runtime."""

    def wgmma(self, statement: Statement, regs: Registers) -> None:
        """Interpret fence, mma_async, commit_group or wait_group."""

    def shuffle(self, value: Cell, source: Cell) -> Cell:
        """Return the result of `shfl.idx`; None if it is unknown."""

    def first_lane(self) -> Cell:
        """Return whether each thread is lane 0 of its warp."""

    def together(self, opcode: str, mask: Cell) -> None:
        """DivergedError unless all lanes of the mask execute an instruction; None: the warp."""

    def decide(self, condition: Lanes, target: int) -> int | None:
        """Return the position after a branch under a condition that varies between threads."""

    def guarded(
        self, effect: Effect, regs: Registers, condition: Lanes, targets: Sequence[str]
    ) -> None:
        """Perform an instruction in the threads whose condition holds."""

    def for_each(
        self, effect: Effect, regs: Registers, names: Sequence[str], targets: Sequence[str]
    ) -> None:
        """Perform an instruction once for the threads with equal operands."""

    def branched(self, edge: tuple[str, int, int]) -> None:
        """Record that a branch was taken, or not."""


# The effect of an instruction; it returns the position that follows: None for the next one, DATA_
# DEPENDENT if that depends on data, SPLIT if it differs between the lanes of a warp.
Effect = Callable[[Machine, Registers], int | None]
DATA_DEPENDENT, SPLIT = -1, -2
