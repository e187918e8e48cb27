"""A role's body as an automaton that runs beside its code: operations, loops, cursors.

Node 0 is the end.  Reads and writes are clauses, not steps: `allowed` says between which operations
each may happen, by the same rule as expected_trace.py has for concrete traces.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from pipelink_rules.model.contract import Operation, Repeat
from pipelink_rules.model.source_span import Expr
from pipelink_rules.solver import terms
from pipelink_rules.solver.terms import Term

_ORDERING = ("sync", "arrive", "fence", "signal", "wait_until")
_START = -1  # before the first operation
END = 0


@dataclass
class Node:
    """A place in the body: an operation, the head of a loop, or the end."""

    op: Operation | None = None
    count: Expr | None = None  # of a loop
    first: int = -1  # of a loop's body
    next: int = -1

    @property
    def is_access(self) -> bool:
        """Whether it is a `read` or `write` clause."""
        return self.op is not None and self.op.verb in ("read", "write")

    @property
    def is_event(self) -> bool:
        """Whether the code performs it as an operation."""
        return self.op is not None and not self.is_access


class Body:
    """The automaton of one body."""

    def __init__(
        self, body: tuple[Operation | Repeat, ...], tensor: frozenset[str] = frozenset()
    ) -> None:
        """tensor: ports of tensor memory, whose accesses are asynchronous: awaits bound them."""
        self.nodes = [Node()]
        self._tensor = tensor
        self.start = self._append(body, END)
        self.loops = tuple(n for n, node in enumerate(self.nodes) if node.count is not None)
        self.allowed = self._windows(around=False)
        self.allowed_around = self._windows(around=True)

    def _append(self, body: tuple[Operation | Repeat, ...], after: int) -> int:
        for entry in reversed(body):
            number = len(self.nodes)
            if isinstance(entry, Repeat):
                self.nodes.append(Node(count=entry.count, next=after))
                self.nodes[number].first = self._append(entry.body, number)
            else:
                self.nodes.append(Node(entry, next=after))
            after = number
        return after

    def successors(self, number: int) -> tuple[int, ...]:
        """Return the nodes that may follow."""
        node = self.nodes[number]
        if node.count is not None:
            return (node.first, node.next)
        return () if number == END else (node.next,)

    @cached_property
    def _inside(self) -> dict[int, frozenset[int]]:
        found = {}
        for loop in self.loops:
            seen: set[int] = set()
            todo = [self.nodes[loop].first]
            while todo:
                number = todo.pop()
                if number not in seen and number != loop:
                    seen.add(number)
                    todo += self.successors(number)
            found[loop] = frozenset(seen)
        return found

    def inside(self, loop: int) -> frozenset[int]:
        """Return the nodes of a loop's body."""
        return self._inside[loop]

    def goes_back(self, number: int, target: int) -> bool:
        """Return whether the step from a node ends a turn of the loop at `target`."""
        return target in self._inside and number in self._inside[target]

    def loop_of(self, number: int) -> int | None:
        """Return the innermost loop around a node."""
        around = [loop for loop in self.loops if number in self._inside[loop]]
        return min(around, key=lambda loop: len(self._inside[loop]), default=None)

    # -- windows of accesses --------------------------------------------------------------------
    # A loop's head is split into its entry and its exit (loop, "exit"); without `around` the end of
    # its body leads to the exit only, so a window stays within one turn.

    def _windows(self, *, around: bool) -> dict[int, list[tuple[int, Operation]]]:
        """Return for each operation (or the start) the accesses that may follow it."""
        follows = self._graph(around)
        before: dict[object, list[object]] = {}
        for number, targets in follows.items():
            for target in targets:
                before.setdefault(target, []).append(number)
        before.setdefault(self.start, []).append(_START)
        allowed: dict[int, list[tuple[int, Operation]]] = {}
        for number, node in enumerate(self.nodes):
            if node.op is None or not node.is_access:
                continue
            found = set(self._reached(number, before, self._opens(node.op), inclusive=True))
            found |= set(self._reached(number, follows, self._closes(node.op), inclusive=False))
            for event in found:
                allowed.setdefault(event, []).append((number, node.op))
        return allowed

    def _graph(self, around: bool) -> dict[object, list[object]]:
        follows: dict[object, list[object]] = {
            (n, "exit"): [self.nodes[n].next] for n in self.loops
        }
        for number in range(len(self.nodes)):
            targets: list[object] = []
            for target in self.successors(number):
                back = self.goes_back(number, target)
                targets += [(target, "exit")] if back else [target]
                targets += [target] if back and around else []
            follows[number] = targets
        return follows

    def _reached(
        self,
        start: object,
        edges: dict[object, list[object]],
        stops: Callable[[Operation], bool],
        *,
        inclusive: bool,
    ) -> Iterator[int]:
        """Yield the events reached before one that stops; `inclusive`: and that one too."""
        todo, seen = list(edges.get(start, ())), set()
        while todo:
            number = todo.pop()
            if number in seen:
                continue
            seen.add(number)
            node = self.nodes[number] if isinstance(number, int) and number >= 0 else Node()
            if number == _START:
                yield _START
                continue
            if node.op is not None and node.is_event:
                stopped = stops(node.op)
                if inclusive or not stopped:
                    assert isinstance(number, int)
                    yield number
                if stopped:
                    continue
            todo += edges.get(number, ())

    def _opens(self, access: Operation) -> Callable[[Operation], bool]:
        return lambda event: (
            (event.target == access.target and event.verb in ("wait", "acquire"))
            or event.verb in _ORDERING
            or (event.verb == "await" and access.verb == "write")
            or self._awaits(access, event)
        )

    def _closes(self, access: Operation) -> Callable[[Operation], bool]:
        return lambda event: (
            event.verb in _ORDERING
            or (event.target == access.target and event.verb in ("release", "commit", "store"))
            or self._awaits(access, event)
        )

    def _awaits(self, access: Operation, event: Operation) -> bool:
        await_tensor = event.verb == "await" and event.target.startswith("tensor")
        return await_tensor and access.target in self._tensor


# -- state ----------------------------------------------------------------------------------------

Cursor = tuple[Term, Term]  # stage, phase


def advanced(cursor: Cursor, stages: Term) -> Cursor:
    """Return the cursor of the next item, one term for code and body: equal ones are alike."""
    stage, phase = terms.bits(cursor[0], 32), terms.bits(cursor[1], 32)
    wrapped = stage + 1 == stages
    zero = terms.bits(0, 32)
    return terms.chosen(wrapped, zero, stage + 1), terms.chosen(wrapped, phase ^ 1, phase)


@dataclass(frozen=True)
class RingState:
    """A ring as the body sees it."""

    next: Cursor  # of the item that is acquired or waited for next
    current: Cursor | None  # of the item that is held
    released: Cursor  # of the item that is released next
    held: Term  # items taken and not released


@dataclass
class BodyState:
    """A place in the body: the node, the turns of its loops, its rings."""

    at: int
    last: int = _START  # the operation performed last
    turns: dict[int, Term] = field(default_factory=dict)
    rings: dict[str, RingState] = field(default_factory=dict)

    def copy(self) -> "BodyState":
        """Return a copy for another path."""
        return replace(self, turns=dict(self.turns), rings=dict(self.rings))

    def flat(self) -> dict[tuple[str, ...], Term]:
        """Return every term of the state by its place."""
        found: dict[tuple[str, ...], Term] = {
            ("turns", str(loop)): turns for loop, turns in self.turns.items()
        }
        for name, ring in self.rings.items():
            found["held", name] = ring.held
            for part in ("next", "current", "released"):
                cursor = getattr(ring, part)
                if cursor is not None:
                    found["ring", name, part, "stage"], found["ring", name, part, "phase"] = cursor
        return found

    def put(self, place: tuple[str, ...], value: Term) -> None:
        """Replace one term of the state."""
        if place[0] == "turns":
            self.turns[int(place[1])] = value
        elif place[0] == "held":
            self.rings[place[1]] = replace(self.rings[place[1]], held=value)
        else:
            _, name, part, which = place
            stage, phase = getattr(self.rings[name], part)
            cursor = (value, phase) if which == "stage" else (stage, value)
            self.rings[name] = replace(self.rings[name], **{part: cursor})
