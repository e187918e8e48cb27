"""The joint placement of one SM: `place(problem) -> Placement`.

Arithmetic rejects first and states the reason.  A greedy layout provides hints, Z3 solves for all
resources together, the objective makes the solution unique, and `verify` checks it without z3.
"""

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.placement import Placement, PlacementProblem
from pipelink_rules.place.advice import Advisor, Changes, Numbers
from pipelink_rules.place.infeasible import infeasibilities, refused
from pipelink_rules.place.solve import RLIMIT, solve
from pipelink_rules.place.validate_problem import validate


def place(
    problem: PlacementProblem,
    previous: Placement | None = None,
    rlimit: int = RLIMIT,
    changes: Changes | None = None,
) -> Placement:
    """Return the placement; equal problems and previous placements yield equal bytes.

    `previous` is the placement before a swap: its offsets and ids are kept unless that would cost
    a stage.  `rlimit` bounds each solver check in the solver's units, not in time.
    `changes` judges the changes that an error proposes.  Raise
    PipelinkError with PL01xx (shared memory, named barriers, warps, exhausted budget) or PL07xx
    (registers) for every resource that does not fit.
    """
    validate(problem)
    advisor = Advisor(problem, rlimit, changes or Numbers(problem))
    errors = infeasibilities(advisor)
    if errors:
        raise PipelinkError(errors)
    found = solve(problem, previous, rlimit)
    if isinstance(found, Placement):
        return found
    raise PipelinkError(refused(advisor))
