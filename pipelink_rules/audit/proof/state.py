"""One symbolic state of a warp: registers, structs in memory, the path so far, the body's place."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pipelink_rules.audit.proof.body import BodyState
from pipelink_rules.solver import terms
from pipelink_rules.solver.queries import Path, Queries
from pipelink_rules.solver.terms import DATA, Pointer, Term

Place = tuple[object, ...]


@dataclass
class WarpState:
    """A state of all lanes of one warp: `lane` is a variable, so values may depend on it."""

    body: BodyState
    registers: dict[str, Term] = field(default_factory=dict)
    memory: dict[tuple[str, int], Term] = field(default_factory=dict)
    path: Path = ()  # conditions of the branches taken
    fenced: bool = False  # wgmma.fence since the accumulators were last accessed
    group: tuple[str, ...] = ()  # rings that uncommitted wgmma read
    operations: int = 0  # performed so far

    def copy(self) -> "WarpState":
        """Return a copy for another path."""
        return WarpState(
            self.body.copy(),
            dict(self.registers),
            dict(self.memory),
            self.path,
            self.fenced,
            self.group,
            self.operations,
        )

    def on(self, condition: Term) -> "WarpState":
        """Return this state with one more condition in its path."""
        self.path = (*self.path, condition)
        return self

    def flat(self, live: Iterable[str]) -> dict[Place, Term]:
        """Return every term of the state by its place; of the registers, the live ones."""
        found: dict[Place, Term] = {("body", *place): v for place, v in self.body.flat().items()}
        for name in live:
            if name in self.registers:
                found["register", name] = self.registers[name]
        found |= {("memory", *place): value for place, value in self.memory.items()}
        return found

    def put(self, place: Place, value: Term) -> None:
        """Replace one term of the state."""
        if place[0] == "register":
            self.registers[str(place[1])] = value
        elif place[0] == "memory":
            self.memory[place[1:]] = value  # type: ignore[index]
        else:
            self.body.put(place[1:], value)  # type: ignore[arg-type]

    def drop(self, place: Place) -> None:
        """Make one term unknown to everybody: a later use of it ends the proof."""
        if place[0] == "register":
            self.registers.pop(str(place[1]), None)
        elif place[0] == "memory":
            self.memory.pop(place[1:], None)  # type: ignore[arg-type]


Reached = list[tuple[WarpState, int]]  # states and the positions that they have reached


@dataclass(frozen=True)
class Branch:
    """A jump that some lanes or paths take."""

    condition: Term
    target: int


def width_at(place: Place, *values: Term) -> int:
    """Return the width of the value at a place; 1 is a truth value."""
    for value in values:
        if isinstance(value, Pointer):
            return 64
        if not isinstance(value, int) and value is not DATA:
            return 1 if terms.is_bool(value) else int(value.size())
    if place[0] == "register":
        name = str(place[1])
        return 64 if name.startswith("%rd") else 1 if name.startswith(("%p", "p")) else 32
    return 32


def mergeable(one: WarpState, other: WarpState) -> bool:
    """Return whether two states stand at one place of the body with the same terms."""
    if one.body.at != other.body.at or one.body.last != other.body.last:
        return False
    if (one.fenced, one.group) != (other.fenced, other.group):
        return False
    left, right = one.body.flat(), other.body.flat()
    return left.keys() == right.keys() and all(terms.same(left[p], right[p]) for p in left)


def merge(one: WarpState, other: WarpState, condition: Term, live: frozenset[str]) -> WarpState:
    """Join two states of a branch: `one` is the side on which the condition holds."""
    shared = 0
    for left, right in zip(one.path, other.path, strict=False):
        if not terms.same(left, right):
            break
        shared += 1
    sides = (one.path[shared:], other.path[shared:])
    plain = len(sides[0]) == 1 and len(sides[1]) == 1
    one.registers = {
        name: value
        for name, value in _joined(one.registers, other.registers, condition, "register").items()
        if name in live or name[0] not in "%p"
    }
    one.memory = _joined(one.memory, other.memory, condition, "memory")
    one.path = one.path[:shared]
    if not plain:
        one.on(terms.either(terms.both(*sides[0]), terms.both(*sides[1])))
    one.operations = max(one.operations, other.operations)
    return one


def _joined(one: dict, other: dict, condition: Term, kind: str) -> dict:  # type: ignore[type-arg]
    found = {}
    for place, left in one.items():
        right = other.get(place)
        if right is not None:
            found[place] = chosen(condition, left, right, width_at((kind, place), left, right))
    return found


def chosen(condition: Term, yes: Term, no: Term, width: int) -> Term:
    """Return one of two values by a condition; data where they are of different kinds."""
    if terms.same(yes, no):
        return yes
    if yes is DATA or no is DATA:
        return DATA
    if isinstance(yes, Pointer) or isinstance(no, Pointer):
        if not (isinstance(yes, Pointer) and isinstance(no, Pointer) and yes.region == no.region):
            return DATA
        return Pointer(yes.region, chosen(condition, yes.offset, no.offset, 64))
    if width == 1 or terms.is_bool(yes) or terms.is_bool(no):
        return terms.chosen(condition, terms.truth(yes), terms.truth(no))
    return terms.chosen(condition, terms.bits(yes, width), terms.bits(no, width))


def rejoin(before: WarpState, after: list[WarpState]) -> None:
    """Let lanes meet again that went different ways without an operation.

    Each comes to this place, so a condition by lane on which one of them went its way says nothing
    of the others; without it a state stands for more lanes than it has.
    """
    if any(one.operations != before.operations for one in after):
        return
    known = len(before.path)
    for one in after:
        kept = (c for c in one.path[known:] if "lane" not in terms.variables(c))
        one.path = (*one.path[:known], *kept)


def possible(queries: Queries, states: Iterable[WarpState]) -> list[WarpState]:
    """Return the states whose paths can be taken."""
    return [state for state in states if queries.possible(state.path)]
