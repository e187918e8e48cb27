"""A solver session: SMT-LIB text -> sat, unsat or unknown, and a model.

z3 is imported on first use.  Answers are repeatable: each session has its own context, the plain
SMT core, a fixed seed, and a resource limit instead of a clock.  `z3.Optimize` is not used: it is
slower here and is known to return wrong optima.

Hints (`set_initial_value`) turn seconds into milliseconds for a tight packing.  With z3 5.4.1,
however, a hinted solver that is checked again after a pop may answer "sat" with a model that
violates its assertions (observed once in some 3,000 checks, never on a first one; pinned in
tests/unit/solver/test_session.py).  The session itself therefore takes no hints.  A check that it
cannot decide within a quarter of the budget goes once to a fresh, hinted solver, of which only a
solution is accepted, and only after every assertion has been evaluated under it.
"""

from collections.abc import Callable, Iterable, Mapping
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
    """Return the solver as a placement records it: "z3 5.4.1"."""
    import z3  # type: ignore[import-untyped]

    return f"z3 {z3.get_version_string()}"


class Session:
    """A solver with one SMT-LIB text.  All variables are integers.

    `rlimit` bounds every check in the solver's own units, so that the answer depends neither on
    the machine nor on its load; a check that exceeds it answers "unknown".
    """

    def __init__(self, text: str, rlimit: int) -> None:
        import z3

        self._z3: Any = z3
        self._text = text
        self._rlimit = rlimit
        self._solver, self._context = self._fresh(max(1, rlimit // 4))
        self._variables: dict[str, Any] = {}
        self._required: list[Bound] = []
        self.values: dict[str, int] = {}  # of the last satisfiable question
        self.questions = 0

    def _fresh(self, rlimit: int) -> tuple[Any, Any]:
        context = self._z3.Context()
        solver = self._z3.SimpleSolver(ctx=context)
        solver.set("random_seed", 0)
        solver.set("rlimit", rlimit)
        solver.from_string(self._text)
        return solver, context

    def require(self, conditions: Iterable[Bound]) -> None:
        """Add conditions permanently."""
        for condition in conditions:
            self._required.append(condition)
            self._solver.add(self._formula(condition, self._variable))

    def check(self, conditions: Iterable[Bound] = (), near: Mapping[str, int] | None = None) -> str:
        """Return SAT (`values` is then a solution), UNSAT or UNKNOWN under temporary conditions.

        `near`: a likely solution; wrong hints cost time, never correctness.
        """
        conditions = list(conditions)
        self.questions += 1
        self._solver.push()
        for condition in conditions:
            self._solver.add(self._formula(condition, self._variable))
        verdict = str(self._solver.check())
        if verdict == SAT:
            self.values = _values(self._solver.model())
        self._solver.pop()
        if verdict == UNKNOWN and near:
            verdict = self._hinted(conditions, near)
        return verdict

    def _hinted(self, conditions: Iterable[Bound], near: Mapping[str, int]) -> str:
        solver, context = self._fresh(self._rlimit)
        variables = {name: self._z3.Int(name, context) for name in near}
        for condition in (*self._required, *conditions):
            solver.add(self._formula(condition, lambda name: self._z3.Int(name, context)))
        for name, value in near.items():
            solver.set_initial_value(variables[name], self._z3.IntVal(value, context))
        if str(solver.check()) != SAT:
            return UNKNOWN
        model = solver.model()
        if not all(self._z3.is_true(model.evaluate(claim, True)) for claim in solver.assertions()):
            return UNKNOWN
        self.values = _values(model)
        return SAT

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

    def _formula(self, condition: Bound, variable: Callable[[str], Any]) -> Any:
        terms = [variable(name) * factor for name, factor in condition.terms]
        total = self._z3.Sum(terms) if len(terms) > 1 else terms[0]
        if condition.relation == "<=":
            return total <= condition.value
        if condition.relation == ">=":
            return total >= condition.value
        return total == condition.value


def _values(model: Any) -> dict[str, int]:
    """Return the integers of a model; the definitions of a text are formulas."""
    constants = {entry.name(): model[entry] for entry in model.decls() if entry.arity() == 0}
    return {name: item.as_long() for name, item in constants.items() if hasattr(item, "as_long")}
