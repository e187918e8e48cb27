"""Symbolic execution of a function: all paths of all lanes, joined where branches join.

A loop whose exits are decided by constants is unrolled; any other is proved by induction
(induction.py).
"""

from pipelink_rules.audit.control_flow import FunctionCode
from pipelink_rules.audit.proof.effect import Effect
from pipelink_rules.audit.proof.induction import Induction
from pipelink_rules.audit.proof.instructions import effect_of
from pipelink_rules.audit.proof.loops import LoopGraph
from pipelink_rules.audit.proof.prover import Prover
from pipelink_rules.audit.proof.state import (
    Branch,
    Reached,
    WarpState,
    merge,
    mergeable,
    possible,
    rejoin,
)
from pipelink_rules.audit.proof.verdict import DeadPathError, RefutedError, UnprovedError
from pipelink_rules.solver import terms

_UNROLLED = 5_000  # turns of a loop that constants decide
_STATES = 64  # at one place: more are a sign that nothing joins


class Executor:
    """Runs one function of a role."""

    def __init__(self, prover: Prover, code: FunctionCode) -> None:
        self.prover, self.code = prover, code
        self.graph = LoopGraph(code)
        self.effects: list[Effect] = [
            effect_of(prover, code, statement) for statement in code.instructions
        ]
        self.end = self.graph.end
        self.live = self.graph.live
        self._active: frozenset[int] = frozenset()  # heads of the loops around
        self._decided: list[tuple[int, bool]] = []  # branches taken: position, by a constant?
        self._induction = Induction(prover, self)

    @property
    def relations(self) -> tuple[str, ...]:
        """How each loop was proved."""
        return tuple(self._induction.relations)

    def run(self, state: WarpState) -> list[WarpState]:
        """Return the states at the end of the function."""
        return [one for one, _ in self._from(state, 0, frozenset())]

    def _from(self, state: WarpState, position: int, stops: frozenset[int]) -> Reached:
        """Run from a position to the end or to one of the stops."""
        if position >= self.end:
            return [(state, self.end)]
        if position in stops:
            return [(state, position)]
        if position in self.graph.loops and position not in self._active:
            return self._loop(state, position, stops)
        return self._straight(state, position, stops)

    def _straight(self, state: WarpState, position: int, stops: frozenset[int]) -> Reached:
        first = True
        while position < self.end:
            if not first and (
                position in stops or (position in self.graph.loops and position not in self._active)
            ):
                return self._from(state, position, stops)
            first = False
            outcome = self.effects[position](state)
            if outcome is None:
                position += 1
            elif isinstance(outcome, int):
                position = outcome
            elif isinstance(outcome, Branch):
                states, position = self._branch(state, position, outcome, stops)
                if isinstance(states, list):
                    return states
                state = states
            else:
                joined = self._join(outcome, position + 1)
                if len(joined) != 1:
                    return self._each(joined, position + 1, stops)
                state, position = joined[0], position + 1
        return [(state, self.end)]

    def _each(self, states: list[WarpState], position: int, stops: frozenset[int]) -> Reached:
        if len(states) > _STATES:
            raise UnprovedError("more paths than the proof can follow")
        found: Reached = []
        for state in states:
            found += self._alive(state, position, stops)
        return found

    def _alive(self, state: WarpState, position: int, stops: frozenset[int]) -> Reached:
        try:
            return self._from(state, position, stops)
        except DeadPathError:
            return []

    def _branch(
        self, state: WarpState, position: int, branch: Branch, stops: frozenset[int]
    ) -> tuple[WarpState | Reached, int]:
        """Return one state and where it goes on, or all that was reached."""
        condition = self._simplified(branch.condition)
        self._decided.append((position, isinstance(condition, int)))
        if isinstance(condition, int):
            return state, branch.target if condition else position + 1
        join = self.code.joins.get(position, self.end)
        before, other = state.copy(), state.copy()
        other.on(terms.simplified(terms.negated(condition)))
        inner = stops | {join}
        taken = self._alive(state.on(condition), branch.target, inner)
        passed = self._alive(other, position + 1, inner)
        sides = [[one for one, at in side if at == join] for side in (taken, passed)]
        found = [one for one in taken + passed if one[1] != join]
        if len(sides[0]) == 1 and len(sides[1]) == 1 and mergeable(sides[0][0], sides[1][0]):
            live = self.live[join]
            states = [merge(sides[0][0], sides[1][0], condition, live)]
        else:
            states = sides[0] + sides[1]
            if len(states) > 1:
                states = possible(self.prover.queries, states)
            if not found:
                rejoin(before, states)
        if join in stops or join >= self.end or not states:
            return found + [(one, join) for one in states], join
        if len(states) == 1 and not found:
            if join in self.graph.loops and join not in self._active:
                return self._loop(states[0], join, stops), join
            return states[0], join
        return found + self._each(states, join, stops), join

    def _simplified(self, condition: object) -> object:
        simple = terms.simplified(condition)
        known = self.prover.comparisons
        if not isinstance(simple, int) and not isinstance(condition, int):
            sides = known.get(condition.get_id())  # type: ignore[attr-defined]
            if sides is not None:
                opposite = terms.simplified(terms.negated(simple))
                self.prover.queries.keep(simple, opposite)
                known[simple.get_id()] = known[opposite.get_id()] = sides
        return simple

    def _join(self, states: list[WarpState], position: int) -> list[WarpState]:
        """Join the two sides of a guarded instruction, where nothing tells them apart."""
        if len(states) == 2 and mergeable(*states):
            shared = states[0].path[: len(states[0].path) - 1]
            plain = len(states[1].path) == len(shared) + 1
            if plain and all(map(terms.same, shared, states[1].path)):
                live = self.live[position]
                return [merge(states[0], states[1], states[0].path[-1], live)]
        return states

    # -- loops ----------------------------------------------------------------------------------
    def once(
        self, state: WarpState, head: int, stops: frozenset[int]
    ) -> tuple[list[WarpState], Reached]:
        """Run a loop once around: (states back at its head, states that left it)."""
        outside = self.graph.outside(head)
        if not outside:
            self.prover.refute(state, _endless())
        before, self._active = self._active, self._active | {head}
        try:
            reached = self._straight(state.copy(), head, stops | {head} | outside)
        except DeadPathError:
            reached = []
        finally:
            self._active = before
        back = [one for one, at in reached if at == head]
        if len(back) > 1:
            back = possible(self.prover.queries, back)
        return back, [one for one in reached if one[1] != head]

    def _loop(self, state: WarpState, head: int, stops: frozenset[int]) -> Reached:
        """Unroll a loop as long as constants decide its exits; then prove it by induction."""
        left: Reached = []
        for _ in range(_UNROLLED):
            mark = len(self._decided)
            back, out = self.once(state, head, stops)
            exits = [known for at, known in self._decided[mark:] if at in self.graph.exits[head]]
            if not back:
                return self._after(left + out, stops)
            if not (exits and all(exits) and len(back) == 1):
                proved = self._induction.prove(state, head, stops, (back, out))
                return self._after(left + proved, stops)
            left += out
            state = back[0]
        raise UnprovedError(f"a loop of more than {_UNROLLED:,} turns")

    def _after(self, reached: Reached, stops: frozenset[int]) -> Reached:
        found: Reached = []
        for state, position in reached:
            if position in stops or position >= self.end:
                found.append((state, position))
            else:
                found += self._alive(state, position, stops)
        return found


def _endless() -> RefutedError:
    return RefutedError(
        "PL0932",
        "never ends: it has a loop without an exit",
        expected="a loop that the work tile or a runtime operation ends",
        found="a branch back under no condition",
    )
