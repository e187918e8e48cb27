"""Everything that a role is given, as terms: relocations, ports, work tile, thread.

Nothing is chosen: stage counts, the first item of every ring, symbols, fields, lane and warp are
free within what the contract admits.  Addresses are free within shared memory, aligned as placement
aligns them.
"""

from dataclasses import dataclass, field

from pipelink_rules.audit.proof.body import BodyState, Cursor, RingState
from pipelink_rules.audit.proof.expressions import condition_of, term_of
from pipelink_rules.contract.item_layout import ItemLayout, item_layout, tensor_columns
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import RINGS, Buffer, Contract, Port, Role, WorkField
from pipelink_rules.solver import terms
from pipelink_rules.solver.queries import Model, Queries
from pipelink_rules.solver.terms import Pointer, Term

SHARED_BYTES = 232_448  # of one SM that a kernel may use (CUDA C++ Programming Guide, 9.0 and 10.0)
_FIRST_SHARED = 1024  # the runtime's mbarriers come first
_ALIGN = 1024  # of a ring: the largest swizzle pattern
_RING_WORDS, _BARRIER_BYTES, _COUNTER_BYTES = 12, 16, 32  # abi.cuh
LARGEST = 2**31 - 1
LARGEST_MAP = 2**32  # extents of a tensor map


@dataclass(frozen=True)
class RingInput:
    """A ring of the role: base address, stages, layout of an item, the cursor at the start."""

    port: Port
    base: Term
    stages: Term
    layout: ItemLayout | None  # None: tensor memory
    start: Cursor

    @property
    def stage_bytes(self) -> int:
        """Distance of two stages: bytes, or columns of tensor memory."""
        return self.layout.stage_bytes if self.layout else tensor_columns(self.port)

    def offset(self, member: str) -> int:
        """Return where a member begins in a stage."""
        return dict(self.layout.offsets)[member] if self.layout else 0


@dataclass(frozen=True)
class BufferInput:
    """A buffer of the role: base address and size."""

    buffer: Buffer
    base: Term
    bytes: int


@dataclass
class Inputs:
    """The inputs of one role and the facts about them."""

    contract: Contract
    role: Role
    queries: Queries = field(default_factory=Queries)
    memory: dict[tuple[str, int], Term] = field(default_factory=dict)  # region, offset -> word
    env: dict[str, Term] = field(default_factory=dict)  # symbols and fields, 64 bits
    rings: dict[str, RingInput] = field(default_factory=dict)
    buffers: dict[str, BufferInput] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)  # variable of a base -> ring or buffer
    relocations: dict[int, str] = field(default_factory=dict)  # offset -> ring or named barrier
    counters: dict[int, str] = field(default_factory=dict)  # offset in the ports -> port
    cursors: dict[str, int] = field(default_factory=dict)  # ring -> offset in the ports
    structs: dict[str, int] = field(default_factory=dict)  # region -> bytes

    def __post_init__(self) -> None:
        self._thread()
        self._symbols()
        self._fields()
        self._relocations()
        self._ports()

    # -- the thread -----------------------------------------------------------------------------
    def _thread(self) -> None:
        self.warps = evaluate(self.role.warps, {})
        width = max(2, (self.warps - 1).bit_length())  # one bit would be a truth value
        self.lane, self.warp = terms.variable("lane", 5), terms.variable("warp", width)
        self._bound("lane", 0, 31)
        self._bound("warp", 0, self.warps - 1)
        self.queries.assume(terms.less(terms.bits(self.warp, 32), terms.bits(self.warps, 32)))
        zeros = terms.bits(0, 27 - width)
        self.thread = terms.concatenated(zeros, self.warp, self.lane)
        self.env["warp"] = terms.bits(self.warp, 64)

    def _bound(self, name: str, least: int, largest: int) -> None:
        if 0 <= least <= largest:
            self.queries.intervals.bounds[name] = least, largest

    # -- symbols and fields ---------------------------------------------------------------------
    def _symbols(self) -> None:
        for symbol in self.contract.symbols:
            value = terms.variable(symbol.name, 32)
            self.env[symbol.name] = terms.sign_extended(value, 32, 64)
            step = symbol.multiple_of
            least = -(-max(0, symbol.minimum) // step) * step
            largest = min(symbol.maximum, LARGEST) // step * step
            self._bound(symbol.name, least, largest)
            self.queries.assume(value >= symbol.minimum, value <= largest)
            self._multiple(value, step)
        for condition in self.contract.requires:
            if names(condition) <= set(self.env):
                self.queries.assume(condition_of(condition, self.env))

    def _multiple(self, value: Term, step: int) -> None:
        if step > 1:
            self.queries.assume(terms.remainder(value, terms.bits(step, 32)) == 0)

    def _fields(self) -> None:
        work = self.contract.work
        for number, one in enumerate(work.fields if work else ()):
            value = terms.variable(one.name, 32)
            self.env[one.name] = terms.sign_extended(value, 32, 64)
            self.memory["work", 4 * number] = value
        self.structs["work"] = 4 * len(work.fields if work else ())
        for one in work.fields if work else ():
            self._limits(one)
        for condition in work.where if work else ():
            self.queries.assume(condition_of(condition, self.env))

    def _limits(self, one: WorkField) -> None:
        value = self.env[one.name]
        least = term_of(one.minimum, self.env)
        most = term_of(one.maximum, self.env) if one.maximum is not None else LARGEST
        if isinstance(least, int):
            low = 32 if isinstance(most, int) else self.queries.intervals.of(most)[1]
            largest = most if isinstance(most, int) else min(LARGEST, low)
            self._bound(one.name, least, largest)
        self.queries.assume(value >= terms.bits(least, 64), value <= terms.bits(most, 64))
        if one.multiple_of is not None:
            step = term_of(one.multiple_of, {})
            assert isinstance(step, int)
            self._multiple(terms.variable(one.name, 32), step)

    # -- relocations ----------------------------------------------------------------------------
    def _relocations(self) -> None:
        at = 0
        for port in self.contract.ports:
            if port.role == self.role.name and port.space in RINGS:
                self._ring(port, at)
                at += 4 * _RING_WORDS
        for buffer in self.contract.buffers:
            if buffer.role == self.role.name:
                size = evaluate(buffer.bytes, {})
                base = self._base(buffer.name, buffer.align, terms.bits(size, 32))
                self.buffers[buffer.name] = BufferInput(buffer, base, size)
                self.memory["relocations", at] = base
                self.memory["relocations", at + 4] = size
                at += 8
        for barrier in self.contract.named_barriers:
            if self.role.name in barrier.roles:
                self.relocations[at] = barrier.name
                self.memory["relocations", at] = terms.variable(f"id of {barrier.name}", 32)
                self.memory["relocations", at + 4] = evaluate(barrier.count, {})
                at += _BARRIER_BYTES
        self.structs["relocations"] = at

    def _base(self, name: str, align: int, size: Term) -> Term:
        base = terms.variable(f"address of {name}", 32)
        self.homes[f"address of {name}"] = name
        self._bound(f"address of {name}", _FIRST_SHARED, SHARED_BYTES)
        limit = terms.bits(SHARED_BYTES, 32)
        self.queries.assume(
            terms.remainder(base, terms.bits(align, 32)) == 0,
            terms.at_most(terms.bits(_FIRST_SHARED, 32), base),
            terms.at_most(base, limit),
            terms.at_most(base + size, limit),
        )
        return base

    def _ring(self, port: Port, at: int) -> None:
        name, low, high = port.name, port.stages.minimum, port.stages.maximum
        stages, start = terms.variable(f"stages of {name}", 32), self._start(name)
        self._bound(f"stages of {name}", low, high)
        self._bound(f"stage of {name}", 0, high - 1)
        self._bound(f"phase of {name}", 0, 1)
        self._bound(f"any stage of {name}", 0, high - 1)
        self.queries.assume(
            terms.at_most(terms.bits(low, 32), stages),
            terms.at_most(stages, terms.bits(high, 32)),
            terms.less(start[0], stages),
            terms.at_most(start[1], terms.bits(1, 32)),
        )
        layout = item_layout(port) if port.space == "ring" else None
        size = layout.stage_bytes if layout else tensor_columns(port)
        if layout:
            base = self._base(name, _ALIGN, stages * size)
        else:
            base = terms.variable(f"column of {name}", 32)
        self.rings[name] = RingInput(port, base, stages, layout, start)
        self.relocations[at] = name
        barriers = [terms.variable(f"{side} of {name}", 32) for side in ("full", "empty")]
        words = [1, base, *barriers, size, stages]
        for number, word in enumerate(words):
            self.memory["relocations", at + 4 * number] = word

    def _start(self, name: str) -> Cursor:
        return terms.variable(f"stage of {name}", 32), terms.variable(f"phase of {name}", 32)

    # -- ports ----------------------------------------------------------------------------------
    def _ports(self) -> None:
        """The fields of `<Role>Ports` in the order of the generated header, with its padding."""
        at = 0
        for port in self.contract.ports:
            if port.role != self.role.name or (port.space == "registers" and port.in_place):
                continue
            if port.space in RINGS:
                stage, phase = self.rings[port.name].start
                self.memory["ports", at], self.memory["ports", at + 4] = stage, phase
                self.cursors[port.name] = at
                at += 8
            elif port.space == "scalar":
                at += 4
            else:
                at = -(-at // 8) * 8
                self.memory["ports", at] = Pointer(f"port {port.name}", 0)
                if port.space == "counter":
                    self.counters[at] = port.name
                at += 8 if port.space != "counter" else _COUNTER_BYTES
        for symbol in self.contract.symbols:
            self.memory["ports", at] = terms.variable(symbol.name, 32)
            at += 4
        self.structs["ports"] = at

    def values(self, model: Model) -> tuple[tuple[str, int], ...]:
        """Return the inputs in a counterexample: symbols, fields, stages, warp and lane."""
        work = self.contract.work
        names = [symbol.name for symbol in self.contract.symbols]
        names += [one.name for one in (work.fields if work else ())]
        found = [(name, terms.signed_number(model[terms.variable(name, 32)], 32)) for name in names]
        found += [(f"stages of {name}", model[ring.stages]) for name, ring in self.rings.items()]
        return (*found, ("warp", model[self.warp]), ("lane", model[self.lane]))

    def body_state(self, at: int) -> BodyState:
        """Return the body's state before the first operation of a work tile."""
        rings = {
            name: RingState(ring.start, None, ring.start, 0) for name, ring in self.rings.items()
        }
        return BodyState(at, rings=rings)
