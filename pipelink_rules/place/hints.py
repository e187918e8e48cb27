"""Where is a solution likely?  A greedy layout and a closed-form assignment -> values."""

from __future__ import annotations

from collections.abc import Mapping

from pipelink_rules.model.placement import PlacementProblem
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place import warps
from pipelink_rules.place.barrier_ids import lowest_ids
from pipelink_rules.place.smtlib import Encoding
from pipelink_rules.place.tensor_memory import suggest_columns
from pipelink_rules.place.warps import GROUP, UNIT, Assignment


def hints(
    encoding: Encoding,
    problem: PlacementProblem,
    stages: Mapping[str, int],
    offsets: Mapping[str, int],
    assignment: Assignment,
) -> dict[str, int]:
    """Values for the variables from a greedy layout and a closed-form assignment."""
    found = {encoding.stages[name]: count for name, count in stages.items()}
    for name, (variable, align) in encoding.offsets.items():
        found[variable] = offsets[name] // align
    for name, column in suggest_columns(problem, stages).items():
        found[encoding.columns[name][0]] = column
    for role in problem.roles:
        start = assignment.starts[role.name]
        found[encoding.starts[role.name]] = start
        if role.name in encoding.aligned:
            found[encoding.aligned[role.name]] = start // GROUP
        else:
            found[f"q{encoding.starts[role.name][1:]}"] = start // GROUP
        if role.name in encoding.compact:
            found[encoding.compact[role.name]] = int(start % GROUP <= warps.slack(role))
        if encoding.useful:
            given = assignment.registers[role.name]
            wanted = warps.useful_registers(role, TARGETS[problem.target])
            found[encoding.registers[role.name]] = given // UNIT
            found[encoding.useful[role.name]] = min(given, wanted) // UNIT
    for variable, given in zip(encoding.groups, assignment.groups, strict=False):
        found[variable] = given // UNIT
    if encoding.spread:
        found[encoding.spread] = 1
    given_ids = lowest_ids(problem)
    if all(number is not None for number in given_ids.values()):
        found.update({encoding.named[name]: given_ids[name] or 0 for name in given_ids})
    return found
