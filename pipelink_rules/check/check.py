"""All checks of contracts against each other: Program, Target -> diagnostics.

A program without diagnostics cannot hang, race or read stale data if its components keep their
contracts: types and layouts match, counts add up, waits form no cycle and accesses are ordered,
for all problem sizes and for all stage counts that the placement may choose.
"""

from collections.abc import Iterable, Mapping

from pipelink_rules.check import (
    agreement,
    copies,
    role_operations,
    tile_layouts,
    trip_counts,
    types,
    work_fields,
)
from pipelink_rules.check.counters import counter_checks as counters
from pipelink_rules.check.program_index import Check, ProgramIndex
from pipelink_rules.check.protocol import protocol_checks as protocol
from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.model.program import MegakernelSpec, Program
from pipelink_rules.model.target import TARGETS, Target
from pipelink_rules.model.variant import Variant
from pipelink_rules.program.resolve import outline, resolve

CHECKS: tuple[Check, ...] = (
    *agreement.CHECKS,
    *types.CHECKS,
    *trip_counts.CHECKS,
    *tile_layouts.CHECKS,
    *copies.CHECKS,
    *work_fields.CHECKS,
    *role_operations.CHECKS,
    *protocol.CHECKS,
    *counters.CHECKS,
)


def resolve_checked(
    spec: MegakernelSpec, variants: Mapping[str, Variant], target_name: str
) -> Program:
    """Return the program of components that describe the same problem (`check.agreement`).

    Raise disagreements before their consequences, then the diagnostics of resolving.
    """
    made = outline(spec, variants, target_name)
    disagreements = _found(agreement.CHECKS, ProgramIndex(made, TARGETS[target_name]))
    if disagreements:
        raise PipelinkError(disagreements)
    return resolve(spec, variants, target_name)


def check(program: Program, target: Target) -> tuple[Diagnostic, ...]:
    """Return all diagnostics of a program, one per code and subject, sorted by code and location.

    If components disagree about the problem, return only the disagreements.
    """
    index = ProgramIndex(program, target)
    return _found(agreement.CHECKS, index) or _found(CHECKS, index)


def check_stages(
    program: Program, target: Target, stages: Mapping[str, int]
) -> tuple[Diagnostic, ...]:
    """Return the protocol diagnostics for the stage counts of a placement (channel -> stages)."""
    return _once(protocol.check_protocol(ProgramIndex(program, target), stages))


def _found(checks: Iterable[Check], index: ProgramIndex) -> tuple[Diagnostic, ...]:
    return _once(diagnostic for find in checks for diagnostic in find(index))


def _once(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    found: dict[tuple[str, str], Diagnostic] = {}
    for item in diagnostics:
        found.setdefault((item.code, item.subject), item)
    return tuple(sorted(found.values(), key=_sort_key))


def _sort_key(item: Diagnostic) -> tuple[str, str, int, str]:
    span = item.labels[0].span if item.labels else None
    return item.code, span.file if span else "", span.line if span else 0, item.subject
