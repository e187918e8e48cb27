"""Loops with any number of turns: a relation is guessed from three turns and proved by induction.

What a guess says of each term of the state: it stays, it grows by a constant per turn, it equals
another one, or it is data.  To these come facts such as "the turn is below the count of the body's
loop".  Whatever one more turn from a state of the guess does not keep is dropped, until the rest is
inductive; the operations of that turn are then those of every turn.
"""

import itertools
from dataclasses import dataclass
from typing import Protocol

from pipelink_rules.audit.proof.body import advanced
from pipelink_rules.audit.proof.expressions import term_of
from pipelink_rules.audit.proof.prover import Prover
from pipelink_rules.audit.proof.state import Place, Reached, WarpState, rejoin, width_at
from pipelink_rules.audit.proof.verdict import EndlessError, RefutedError, UnprovedError
from pipelink_rules.solver import terms
from pipelink_rules.solver.queries import UndecidedError
from pipelink_rules.solver.terms import DATA, Pointer, Term

_PEELED = 3  # relations are sought from turn 0, 1 and 2 on
_TRIES = 25  # rounds of dropping what is not inductive
_MORE = 8  # turns that are run to find a counterexample without a guess
_RELATIONS = ("lt", "le", "gt", "ge")


@dataclass(frozen=True)
class Guess:
    """What is guessed of one term: "stays", "grows", "equal", "data", "free" or "drop"."""

    how: str
    step: int = 0  # grows: by this much a turn
    group: object = None  # equal: terms of one group are equal


@dataclass(frozen=True)
class LoopFact:
    """A condition that may hold at the head in every turn."""

    kind: str  # "turns", "released", "turn", "sides" or "multiple"
    what: object
    relation: str = ""
    sides: tuple[Term, int, Term, int] = (0, 0, 0, 0)  # left, its step, right, its step

    def __str__(self) -> str:
        return f"{self.kind} {self.relation}".strip()


class LoopRunner(Protocol):
    """The execution of a function, as the proof of its loops uses it."""

    live: list[frozenset[str]]  # registers that are used later, by position

    def once(
        self, state: WarpState, head: int, stops: frozenset[int]
    ) -> tuple[list[WarpState], Reached]:
        """Run a loop once around: (states back at its head, states that left it)."""


class Induction:
    """Proofs of the loops of one function."""

    def __init__(self, prover: Prover, runner: LoopRunner) -> None:
        self.prover, self.runner = prover, runner
        self.relations: list[str] = []

    def prove(
        self,
        state: WarpState,
        head: int,
        stops: frozenset[int],
        first: tuple[list[WarpState], Reached],
    ) -> Reached:
        """Return the states that leave the loop, after any number of turns."""
        turns, rounds = [state], [first]
        reason: RefutedError | UnprovedError | None = None
        for peeled in range(_PEELED):
            while len(turns) < peeled + 3:
                if len(rounds) < len(turns):
                    rounds.append(self.runner.once(turns[-1], head, stops))
                back = rounds[len(turns) - 1][0]
                if not back:
                    return self._left(state, [one for _, left in rounds for one in left])
                if len(back) > 1:
                    for one in back:  # one of them may differ from the contract at once
                        self.runner.once(one, head, stops)
                    raise UnprovedError("a loop whose turns end in several states")
                turns.append(back[0])
            prover = self.prover
            marks = len(prover.writes), len(prover.obligations), len(prover.stores)
            try:
                left = self._induct(turns[peeled : peeled + 3], head, stops)
                return self._left(state, [one for _, out in rounds[:peeled] for one in out] + left)
            except (RefutedError, UnprovedError) as why:
                del (
                    prover.writes[marks[0] :],
                    prover.obligations[marks[1] :],
                    prover.stores[marks[2] :],
                )
                reason = why
        self._search(turns[-1], head, stops)
        assert reason is not None
        raise reason

    def _left(self, before: WarpState, left: Reached) -> Reached:
        """A loop without operations and with one exit ends, so all lanes meet behind it."""
        if len({position for _, position in left}) == 1:
            rejoin(before, [one for one, _ in left])
        return left

    def _search(self, state: WarpState, head: int, stops: frozenset[int]) -> None:
        """Run more turns, without a guess: a difference that occurs in them is a real one."""
        for _ in range(_MORE):
            back, _ = self.runner.once(state, head, stops)
            if len(back) != 1:
                return
            state = back[0]

    # -- one guess ------------------------------------------------------------------------------
    def _induct(self, turns: list[WarpState], head: int, stops: frozenset[int]) -> Reached:
        first = turns[0]
        _require_alike(turns)
        live = self.runner.live[head]
        flat = [one.flat(live) for one in turns]
        turn = self.prover.fresh("turn", 32)
        plan = {place: self._guess(place, [one.get(place) for one in flat]) for place in flat[0]}
        self._join_cursors(plan, turns, flat)
        facts = [fact for fact in self._facts(turns) if self._holds(fact, first, terms.bits(0, 32))]
        for attempt in range(_TRIES):
            start = self._state(first, flat[0], plan, facts, turn)
            left, kept, facts = self._try(start, flat[0], plan, facts, turn, head, stops, attempt)
            if kept:
                kinds = sorted({guess.how for guess in plan.values()})
                shown = sorted({str(fact) for fact in facts})
                self.relations.append(f"terms: {', '.join(kinds)}; facts: {', '.join(shown)}")
                return left
        raise UnprovedError("a loop without a relation that the proof can find")

    def _guess(self, place: Place, values: list[Term | None]) -> Guess:
        if any(value is None for value in values):
            return Guess("drop")
        if all(terms.same(values[0], value) for value in values[1:]):
            return Guess("stays")
        if any(value is DATA for value in values):
            return Guess("data")
        parts = [terms.simplified(v.offset if isinstance(v, Pointer) else v) for v in values]
        self.prover.queries.keep(*(part for part in parts if not isinstance(part, int)))
        width = width_at(place, *values, *parts)
        if width == 1:
            return Guess("free")
        one, two = (terms.simplified(terms.subtract(parts[n + 1], parts[n], width)) for n in (0, 1))
        if isinstance(one, int) and isinstance(two, int) and one == two:
            return Guess("grows", one) if one else Guess("stays")
        return Guess("equal", group=(*map(terms.key, parts), width))

    def _join_cursors(
        self, plan: dict[Place, Guess], turns: list[WarpState], flat: list[dict[Place, Term]]
    ) -> None:
        """Put what equals a cursor of the body, computed in another way, in its group."""
        known = {guess.group for place, guess in plan.items() if place[:2] == ("body", "ring")}
        cursors = [p for p in plan if p[:2] == ("body", "ring") and plan[p].how == "equal"]
        for place, guess in plan.items():
            if guess.how != "equal" or guess.group in known or guess.group[-1] != 32:  # type: ignore[index]
                continue
            for cursor in cursors:
                if all(
                    self._equal(turns[n], place, flat[n][place], flat[n][cursor]) for n in (1, 2)
                ):
                    plan[place] = plan[cursor]
                    break

    def _state(
        self,
        first: WarpState,
        values: dict[Place, Term],
        plan: dict[Place, Guess],
        facts: list[LoopFact],
        turn: Term,
    ) -> WarpState:
        """Return a state of the guess, at any turn."""
        state = first.copy()
        groups: dict[object, Term] = {}
        known: list[Term] = []
        for place, guess in plan.items():
            if guess.how == "drop":
                state.drop(place)
            elif guess.how != "stays":
                state.put(place, self._value(place, guess, values[place], turn, groups))
        for name, given in self.prover.inputs.rings.items():
            ring = state.body.rings[name]
            if ring.current is not None:  # so by construction of the body's state
                following = advanced(ring.current, given.stages)
                known += [
                    terms.bits(a, 32) == terms.bits(b, 32)
                    for a, b in zip(following, ring.next, strict=True)
                ]
            for cursor in (ring.next, ring.released, ring.current):
                if cursor is not None:
                    known.append(terms.less(terms.bits(cursor[0], 32), given.stages))
                    known.append(terms.at_most(terms.bits(cursor[1], 32), terms.bits(1, 32)))
        known += [self._condition(fact, state, turn) for fact in facts]
        for condition in map(terms.simplified, known):
            if not isinstance(condition, int):
                state.on(condition)
        return state

    def _value(
        self, place: Place, guess: Guess, value: Term, turn: Term, groups: dict[object, Term]
    ) -> Term:
        if guess.how == "stays":
            return value
        if guess.how == "data":
            return DATA
        if guess.how == "free":
            return self.prover.fresh("data", 1)
        width = width_at(place, value)
        base = value.offset if isinstance(value, Pointer) else value
        if guess.how == "grows":
            count = terms.sign_extended(turn, 32, width) if width > 32 else terms.bits(turn, width)
            moved = terms.bits(base, width) + terms.bits(guess.step, width) * count
        else:
            if guess.group not in groups:
                groups[guess.group] = self.prover.fresh("loop", width)
            moved = groups[guess.group]
        return Pointer(value.region, moved) if isinstance(value, Pointer) else moved

    def _try(
        self,
        start: WarpState,
        values: dict[Place, Term],
        plan: dict[Place, Guess],
        facts: list[LoopFact],
        turn: Term,
        head: int,
        stops: frozenset[int],
        attempt: int,
    ) -> tuple[Reached, bool, list[LoopFact]]:
        """Run one turn; weaken the plan where it is not kept: (what left, kept?, facts left)."""
        prover = self.prover
        marks = len(prover.writes), len(prover.obligations), len(prover.stores)
        prover.depth += 1
        try:
            back, left = self.runner.once(start, head, stops)
        except RefutedError as why:
            why.abstract = True
            raise
        finally:
            prover.depth -= 1
        kept = True
        for one in back:
            _require_alike([start, one])
            flat = one.flat(self.runner.live[head])
            if self._weaken(one, flat, values, plan, turn, attempt):
                kept = False
            still = [fact for fact in facts if self._holds(fact, one, turn + 1)]
            if len(still) != len(facts):
                facts, kept = still, False
        for one in back if kept else ():
            if one.operations == start.operations:
                _require_end(start, one, facts)
        if not kept:
            del prover.writes[marks[0] :], prover.obligations[marks[1] :], prover.stores[marks[2] :]
        return left, kept, facts

    def _weaken(
        self,
        state: WarpState,
        found: dict[Place, Term],
        values: dict[Place, Term],
        plan: dict[Place, Guess],
        turn: Term,
        attempt: int,
    ) -> bool:
        """Drop what one more turn does not keep; return whether anything was."""
        changed, firsts = False, {}
        for place, guess in list(plan.items()):
            if guess.how in ("drop", "data", "free"):
                continue
            new = found.get(place)
            if new is None:
                plan[place], changed = Guess("drop"), True
                continue
            if guess.how == "equal":
                if guess.group not in firsts:
                    firsts[guess.group] = new
                    continue
                wanted = firsts[guess.group]
            else:
                wanted = self._value(place, guess, values[place], turn + 1, {})
            if not self._equal(state, place, new, wanted):
                changed = True
                plan[place] = (
                    Guess("data") if new is DATA else Guess("equal", group=(place, attempt))
                )
        return changed

    def _equal(self, state: WarpState, place: Place, new: Term, wanted: Term) -> bool:
        if terms.same(new, wanted):
            return True
        if new is DATA or wanted is DATA or isinstance(new, Pointer) != isinstance(wanted, Pointer):
            return False
        if isinstance(new, Pointer):
            if new.region != wanted.region:
                return False
            new, wanted = new.offset, wanted.offset
        width = width_at(place, new, wanted)
        if width == 1:
            return False
        goal = terms.bits(new, width) == terms.bits(wanted, width)
        return self._follows(state, goal)

    def _follows(self, state: WarpState, goal: Term) -> bool:
        try:
            return self.prover.queries.counterexample(state.path, goal, "a relation") is None
        except UndecidedError:
            return False

    # -- facts ----------------------------------------------------------------------------------
    def _facts(self, turns: list[WarpState]) -> list[LoopFact]:
        first = turns[0]
        loops = [loop for loop in self.prover.body.loops if loop in first.body.turns]
        facts = [
            LoopFact("turns", loop, how) for loop in loops for how in ("below", "most", "least")
        ]
        facts += [LoopFact("released", name) for name in self.prover.inputs.rings]
        facts.append(LoopFact("turn", 0))
        return facts + self._compared(turns)

    def _compared(self, turns: list[WarpState]) -> list[LoopFact]:
        """Comparisons that decided the way, a turn ago: with every order, and as multiples."""
        rounds = []
        for before, after in itertools.pairwise(turns):
            new = after.path[len(before.path) :]
            known = self.prover.comparisons
            rounds.append([known[c.get_id()] for c in new if c.get_id() in known])
        if len(rounds[0]) != len(rounds[1]):
            return []
        facts = []
        for number, ((a, b), (c, d)) in enumerate(zip(*rounds, strict=True)):
            if width_at((), a, b) != 32 or width_at((), c, d) != 32:
                continue
            steps = [
                terms.simplified(terms.subtract(after, before, 32))
                for before, after in ((a, c), (b, d))
            ]
            if not all(isinstance(step, int) for step in steps):
                continue
            sides = terms.bits(a, 32), steps[0], terms.bits(b, 32), steps[1]
            for sign in ("signed", "unsigned"):
                facts += [LoopFact(sign, number, how, sides) for how in _RELATIONS]
            facts.append(LoopFact("unsigned", number, "ne", sides))
            facts += [LoopFact("multiple", number, of, sides) for of in ("2", "4", "8")]
        return facts

    def _holds(self, fact: LoopFact, state: WarpState, turn: Term) -> bool:
        return self._follows(state, self._condition(fact, state, turn))

    def _condition(self, fact: LoopFact, state: WarpState, turn: Term) -> Term:
        if fact.kind == "turn":
            return turn >= 0
        if fact.kind == "released":
            return self._released(state, str(fact.what))
        if fact.kind == "turns":
            return self._turns(state, int(str(fact.what)), fact.relation)
        left, left_step, right, right_step = fact.sides
        before = turn - 1
        left, right = left + before * left_step, right + before * right_step
        if fact.kind == "multiple":
            return terms.remainder(right - left, terms.bits(int(fact.relation), 32)) == 0
        return terms.compare(fact.relation, left, right, 32, fact.kind == "signed")

    def _turns(self, state: WarpState, loop: int, relation: str) -> Term:
        turns = terms.bits(state.body.turns[loop], 32)
        if relation == "least":
            return turns >= 0
        count = self.prover.body.nodes[loop].count
        assert count is not None
        limit = terms.bits(term_of(count, self.prover.inputs.env), 64)
        wide = terms.sign_extended(turns, 32, 64)
        return wide < limit if relation == "below" else wide <= limit

    def _released(self, state: WarpState, name: str) -> Term:
        """With one item held, the next release is of the item before the next one."""
        ring = state.body.rings[name]
        if not isinstance(ring.held, int) or ring.held != 1:
            return terms.truth(1)
        following = advanced(ring.released, self.prover.inputs.rings[name].stages)
        return terms.both(
            *(
                terms.bits(a, 32) == terms.bits(b, 32)
                for a, b in zip(following, ring.next, strict=True)
            )
        )


def _require_end(start: WarpState, end: WarpState, facts: list[LoopFact]) -> None:
    """Raise an error unless a loop without operations ends.

    It does where "the turn, in 32 bits, is not negative" is inductive: then no run has 2**31 turns.
    """
    if any(fact.kind == "turn" for fact in facts):
        return
    decided = end.path[len(start.path) :]
    if all(any(n.startswith("data!") for n in terms.variables(one)) for one in decided):
        raise EndlessError("a loop without operations, whose end depends on memory")
    raise UnprovedError("a loop without operations, of which the proof cannot say that it ends")


def _require_alike(states: list[WarpState]) -> None:
    """Raise UnprovedError unless the body stands at one place in all states."""
    places = {(one.body.at, one.body.last, one.fenced, one.group) for one in states}
    if len(places) > 1:
        raise UnprovedError("a loop whose turns end at different places of the body")
