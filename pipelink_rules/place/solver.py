"""Is there a solution, and which one?  The only module that knows z3; imported on first use.

What makes answers repeatable: a context of its own per session, the plain SMT core, a fixed seed,
a resource limit instead of a clock, and hints (`set_initial_value`), which that core alone takes.
Never `z3.Optimize`: slower here, and known to return wrong optima.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

SAT, UNSAT, UNKNOWN = "sat", "unsat", "unknown"


@dataclass(frozen=True)
class Bound:
    """A linear condition: sum of coefficient * variable, compared with a value."""

    terms: tuple[tuple[str, int], ...]
    relation: str  # "<=", ">=" or "=="
    value: int


def at_most(name: str, value: int) -> Bound:
    """name <= value."""
    return Bound(((name, 1),), "<=", value)


def at_least(name: str, value: int) -> Bound:
    """name >= value."""
    return Bound(((name, 1),), ">=", value)


def equal(name: str, value: int) -> Bound:
    """name == value."""
    return Bound(((name, 1),), "==", value)


def version() -> str:
    """What a placement records of its solver, e.g. "z3 5.4.1"."""
    import z3  # type: ignore[import-untyped]

    return f"z3 {z3.get_version_string()}"


class Session:
    """One SMT-LIB text under question.  All variables are integers.

    `rlimit` bounds every single question in the solver's own units, so that the answer depends
    neither on the machine nor on its load; a question beyond it is answered "unknown".
    """

    def __init__(self, text: str, rlimit: int) -> None:
        import z3

        self._z3: Any = z3
        self._context: Any = z3.Context()
        self._solver: Any = z3.SimpleSolver(ctx=self._context)
        self._solver.set("random_seed", 0)
        self._solver.set("rlimit", rlimit)
        self._solver.from_string(text)
        self._variables: dict[str, Any] = {}
        self.values: dict[str, int] = {}  # of the last satisfiable question
        self.questions = 0

    def hint(self, values: Mapping[str, int]) -> None:
        """Where to start searching; wrong hints cost time, never correctness."""
        for name, value in values.items():
            number = self._z3.IntVal(value, self._context)
            self._solver.set_initial_value(self._variable(name), number)

    def require(self, conditions: Iterable[Bound]) -> None:
        """Adds conditions for good."""
        for condition in conditions:
            self._solver.add(self._formula(condition))

    def check(self, conditions: Iterable[Bound] = ()) -> str:
        """SAT (then `values` is a solution), UNSAT or UNKNOWN, with the conditions for now."""
        self.questions += 1
        self._solver.push()
        self.require(conditions)
        verdict = str(self._solver.check())
        if verdict == SAT:
            model = self._solver.model()
            self.values = {
                entry.name(): model[entry].as_long()
                for entry in model.decls()
                if entry.arity() == 0
            }
        self._solver.pop()
        return verdict

    def core(self, literals: Iterable[str]) -> tuple[str, tuple[str, ...]]:
        """The verdict with all literals (Bool constants) true; if UNSAT, those that conflict."""
        names = {name: self._z3.Bool(name, self._context) for name in literals}
        verdict = str(self._solver.check(*names.values()))
        if verdict != UNSAT:
            return verdict, ()
        return verdict, tuple(sorted(str(entry) for entry in self._solver.unsat_core()))

    def _variable(self, name: str) -> Any:
        if name not in self._variables:
            self._variables[name] = self._z3.Int(name, self._context)
        return self._variables[name]

    def _formula(self, condition: Bound) -> Any:
        terms = [self._variable(name) * factor for name, factor in condition.terms]
        total = self._z3.Sum(terms) if len(terms) > 1 else terms[0]
        if condition.relation == "<=":
            return total <= condition.value
        if condition.relation == ">=":
            return total >= condition.value
        return total == condition.value
