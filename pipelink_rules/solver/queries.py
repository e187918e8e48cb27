"""Questions about bit-vector terms under a path: possible, proved, or a counterexample.

Effort is bounded in Z3's own resource units, so a verdict depends neither on the machine nor on its
load.  Terms belong to Z3's main context, which one thread may use at a time: `exclusive`.
"""

import threading
from typing import Any

import z3  # type: ignore[import-untyped]

from pipelink_rules.solver.intervals import Intervals
from pipelink_rules.solver.terms import Term, key, negated, simplified, truth

exclusive = threading.RLock()  # of Z3's main context
_EFFORT = 12_000_000  # resource units of one question: some four seconds
SAT, UNSAT, UNKNOWN = "sat", "unsat", "unknown"
Path = tuple[Term, ...]
SolverError = z3.Z3Exception


class UndecidedError(Exception):
    """The solver gave up; the text says on what."""


class Model:
    """A counterexample: values of the free variables."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def __getitem__(self, term: Term) -> int:
        """Return the value of a term; unconstrained variables are 0."""
        if isinstance(term, int):
            return term
        value = self._model.evaluate(term, model_completion=True)
        return int(bool(value)) if z3.is_bool(value) else int(value.as_long())


class Queries:
    """The facts about one role's inputs, and questions under them."""

    def __init__(self, effort: int = _EFFORT) -> None:
        self.intervals = Intervals()
        self.questions = 0
        self._solver = z3.SolverFor("QF_BV")
        self._solver.set("rlimit", effort)
        self._known: dict[tuple[object, ...], tuple[str, Model | None]] = {}
        self._alive: list[Term] = []  # ids of collected terms are reused

    def assume(self, *facts: Term) -> None:
        """Add facts for good."""
        for fact in facts:
            self._solver.add(truth(fact))

    def consistent(self) -> bool:
        """Return whether the facts can hold together: contradictory ones prove everything."""
        return self.check((), 1)[0] == SAT

    def check(self, path: Path, condition: Term) -> tuple[str, Model | None]:
        """Return sat with a model, unsat or unknown for facts, path and condition together."""
        condition = truth(condition)
        question = (frozenset(map(key, path)), key(condition))
        if question not in self._known:
            self._alive += [condition, *path]
            self.questions += 1
            self._solver.push()
            self._solver.add(*path, condition)
            verdict = self._solver.check()
            model = Model(self._solver.model()) if verdict == z3.sat else None
            self._solver.pop()
            self._known[question] = str(verdict), model
        return self._known[question]

    def possible(self, path: Path, condition: Term = 1) -> bool:
        """Return whether the condition can hold; an undecided one can."""
        return self.check(path, condition)[0] != UNSAT

    def counterexample(self, path: Path, goal: Term, what: str) -> Model | None:
        """Return values that break the goal, None where it is proved; UndecidedError."""
        goal = simplified(goal)
        if isinstance(goal, int) and goal:
            return None
        verdict, model = self.check(path, negated(goal))
        if verdict == UNKNOWN:
            raise UndecidedError(what)
        return model

    def keep(self, *terms: Term) -> None:
        """Keep terms alive, whose ids are compared later."""
        self._alive += terms
