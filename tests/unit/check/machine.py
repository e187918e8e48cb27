"""The state of a finite composition as one number, and what its parts mean."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from pipelink_rules.check.protocol.model import ASYNC_PROXY, WRITES, Action, Composition, Kind

Transition = Callable[[int], int]  # state -> state; the same one where it cannot happen now
Rule = Callable[[Any], Any]  # value of a cell -> its next value, or None: not now
# (machine, process, position, action) -> what makes its transition once all bits have places
Maker = Callable[["Machine", int, int, Action], Callable[[], Transition]]
WIDTH = 12  # bits of a cell


class Bad(Exception):
    """Something that must not happen has happened: `race`, `alias`."""


class Semantics(NamedTuple):
    """A kind of action: what makes its transition, and its place in a block."""

    make: Maker
    role: int = 0  # ACTS, WAITS or FOLLOWS


ACTS = 0  # ends a block
WAITS = 1  # may be impossible now; changes nothing but the position
FOLLOWS = 2  # always possible, enables no other process, may as well come later

KINDS: dict[str, Semantics] = {}  # filled by machine_actions.py


class End(NamedTuple):
    """All processes are at their ends where `state & mask == value`."""

    mask: int
    value: int


class Cell:
    """The place of one object in the state; its values are numbered as they are met."""

    def __init__(self, shift: int, first: Hashable):
        self.shift, self.values, self.numbers = shift, [first], {first: 0}

    def number(self, value: Hashable) -> int:
        """The number that stands for a value."""
        found = self.numbers.get(value)
        if found is None:
            found = self.numbers[value] = len(self.values)
            self.values.append(value)
            assert found < 1 << WIDTH
        return found

    def moved(self, rule: Rule, further: int = 0) -> Transition:
        """The transition that applies a rule to the value and adds `further` to the state."""
        shift, mask = self.shift, (1 << WIDTH) - 1
        memo: dict[int, int] = {}

        def transition(state: int) -> int:
            now = state >> shift & mask
            change = memo.get(now)
            if change is None:
                after = rule(self.values[now])
                change = 0 if after is None else (self.number(after) - now << shift) + further
                memo[now] = change
            return state + change

        return transition


class Machine:
    """Cells, bits and transitions of a composition.

    `crossed` becomes true when an access meets one of the other proxy without a fence in between.

    `atomic` joins actions of a process to blocks that nothing interrupts: waits that begin a block,
    then reads and awaits, then one action of any kind.  No run is lost: a wait, a read or an await
    may as well come later, just before the next action of its process, because it
    enables no other process.  If an action in between affects it (the next phase completes, the
    data are overwritten), then it detects that when it runs.  (R. Lipton, Reduction, 1975: these
    are right movers.)  New kinds of actions end a block unless the table says otherwise.
    """

    def __init__(self, composition: Composition, atomic: bool = False):
        self.composition = composition
        self.atomic = atomic
        self.crossed = False
        self.size = 0
        self.cells: dict[Hashable, Cell] = {}
        self.bits: dict[Hashable, int] = {}
        self.arrivals: dict[int, Transition] = {}  # bit of something in flight -> its arrival
        self.sources: dict[int, tuple[int, int]] = {}  # the same -> process, position
        self.flying = 0
        # What is known about the whole run: which accesses there are to a piece of memory.
        self.parts: dict[tuple[str, int], int] = defaultdict(int)  # writes that make up an item
        self.asynchronous: set[str] = set()  # memories that the asynchronous proxy reaches
        self.groups: dict[tuple[str, int], int] = defaultdict(int)  # (memory, stage) -> bits
        self.copies: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)  # -> item -> bits
        self.generic: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
        self.pending: list[list[tuple[str, int]]] = []  # per process: (kind, bit) of its groups
        self.fenced = 0  # all bits that a proxy fence clears
        generic = set()
        for process in composition.processes:
            for action in process.period:
                if action.kind in WRITES:
                    self.parts[action.target, action.item] += 1
                if action.kind in ASYNC_PROXY:
                    self.asynchronous.add(action.target)
                elif action.kind in (Kind.READ, Kind.WRITE):
                    generic.add(action.target)
        self.idle = {Kind.TOUCH} if generic & self.asynchronous else {Kind.TOUCH, Kind.FENCE}
        shifts, masks, ends = [], [], []
        self.start = 0
        for process in composition.processes:
            width = len(process.period).bit_length()
            shifts.append(self.size)
            masks.append((1 << width) - 1)
            ends.append(len(process.period) << self.size)
            self.start += self._busy(process.period, 0) << self.size
            self.size += width
        self.places = shifts, masks
        self.end = End((1 << self.size) - 1, sum(ends))
        self.pending = [[] for _ in composition.processes]
        self._makers = [
            [
                KINDS[action.kind].make(self, index, position, action)
                for position, action in enumerate(process.period)
            ]
            for index, process in enumerate(composition.processes)
        ]
        self.programs: list[list[Transition]] = [
            [partial(self._first, index, position) for position in range(len(process.period))]
            + [_stay]
            for index, process in enumerate(composition.processes)
        ]

    def _first(self, index: int, position: int, state: int) -> int:
        """Makes the transition when it is tried for the first time: most runs end early."""
        made = self.programs[index][position] = self._block(index, position)
        return made(state)

    def _block(self, index: int, position: int) -> Transition:
        period, makers = self.composition.processes[index].period, self._makers[index]
        first = makers[position]()
        if not self.atomic:
            return first
        block = []
        role = KINDS[period[position].kind].role
        while role != ACTS:
            position = self._busy(period, position + 1)
            if position == len(period):
                break
            before, role = role, KINDS[period[position].kind].role
            if role == WAITS and before != WAITS:
                break
            block.append(makers[position]())
        return _joined(first, block) if block else first

    def _busy(self, period: Sequence[Action], position: int) -> int:
        """The first action from there on that does something."""
        while position < len(period) and period[position].kind in self.idle:
            position += 1
        return position

    def one(self, index: int, position: int) -> int:
        """What the state grows by when a process has done an action and comes to its next one."""
        following = self._busy(self.composition.processes[index].period, position + 1)
        return following - position << self.places[0][index]

    def cell(self, key: Hashable, first: Hashable) -> Cell:
        """The cell of an object."""
        if key not in self.cells:
            self.cells[key] = Cell(self.size, first)
            self.size += WIDTH
        return self.cells[key]

    def bit(self, key: Hashable) -> int:
        """A bit of the state that is clear at the start."""
        if key not in self.bits:
            self.bits[key] = 1 << self.size
            self.size += 1
        return self.bits[key]

    def flight(self, index: int, position: int) -> int:
        """The bit that is set while what an action has started may arrive at any time."""
        bit = self.bit((index, position))
        self.flying |= bit
        self.sources[bit] = index, position
        return bit

    def position(self, state: int, index: int) -> int:
        """The next action of a process."""
        shifts, masks = self.places
        return state >> shifts[index] & masks[index]

    def over(self, state: int) -> bool:
        """Whether every process is at its end."""
        return state & self.end.mask == self.end.value

    def ended(self, state: int) -> None:
        """Raises Bad where the kernel ends with groups that still read its memory."""
        if any(state & bits for bits in self.groups.values()):
            raise Bad("race")

    def close(self) -> None:
        """Lets go of the transitions, which hold on to the machine: it is freed at once."""
        self.programs.clear()
        self._makers.clear()
        self.arrivals.clear()

    def steps(self, state: int) -> Iterator[int]:
        """The states that can follow.  Raises Bad."""
        for transition in self.choices(state):
            yield transition(state)

    def choices(self, state: int) -> Iterator[Transition]:
        """What may happen in a state."""
        for index, program in enumerate(self.programs):
            yield program[self.position(state, index)]
        for bit, arrive in self.arrivals.items():
            if state & bit:
                yield arrive

    def stuck(self, state: int) -> bool:
        """Whether nothing can happen any more, though not every process is at its end."""
        try:
            return not self.over(state) and all(after == state for after in self.steps(state))
        except Bad:
            return False


def _joined(first: Transition, rest: list[Transition]) -> Transition:
    def transition(state: int) -> int:
        now = first(state)
        if now == state:
            return state
        for step in rest:
            following = step(now)
            if following == now:
                return state  # another wait, that does not pass
            now = following
        return now

    return transition


def _stay(state: int) -> int:
    return state
