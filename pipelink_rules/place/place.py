"""Where does everything go?  One joint placement of an SM: `place(problem) -> Placement`.

Arithmetic refuses first, with the reason; a greedy layout hints; Z3 decides all resources
together; the objective makes the answer unique; a checker without z3 reads it back.
"""

from __future__ import annotations

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.placement import Placement, PlacementProblem
from pipelink_rules.place.infeasible import infeasibilities, refused
from pipelink_rules.place.solve import RLIMIT, solve
from pipelink_rules.place.validate_problem import validate


def place(
    problem: PlacementProblem, previous: Placement | None = None, rlimit: int = RLIMIT
) -> Placement:
    """Solves the problem; the same problem and previous placement give the same bytes.

    `previous` is the placement before a swap: its offsets and ids are kept unless that would cost
    a stage.  `rlimit` bounds each question to the solver in its own units, not in time.  Raises
    PipelinkError with PL01xx (shared memory, named barriers, warps, or a budget that ran out) or
    PL07xx (registers), every resource that does not fit at once.
    """
    validate(problem)
    findings = infeasibilities(problem, rlimit)
    if findings:
        raise PipelinkError(findings)
    found = solve(problem, previous, rlimit)
    if isinstance(found, Placement):
        return found
    raise PipelinkError(refused(problem, rlimit))
