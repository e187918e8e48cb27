"""May this program be linked?  Program, Target -> findings; none means that it cannot go wrong.

A program without findings cannot hang, race or read stale data, as far as its contracts go: types
and layouts agree, every count adds up, no cycle of waits is closed, no access is out of order,
whatever the sizes at launch and the stages that the placement chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pipelink_rules.check import (
    agreement,
    copies,
    multicast_receivers,
    numerics,
    role_operations,
    tensor_memory_use,
    tile_layouts,
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
    *tile_layouts.CHECKS,
    *copies.CHECKS,
    *work_fields.CHECKS,
    *multicast_receivers.CHECKS,
    *role_operations.CHECKS,
    *tensor_memory_use.CHECKS,
    *numerics.CHECKS,
    *protocol.CHECKS,
    *counters.CHECKS,
)


def resolve_checked(
    spec: MegakernelSpec, variants: Mapping[str, Variant], target_name: str
) -> Program:
    """The program of components that mean one problem (`check.agreement`).

    Raises what they disagree about before anything that follows from it, then what resolving finds.
    """
    made = outline(spec, variants, target_name)
    disagreements = _found(agreement.CHECKS, ProgramIndex(made, TARGETS[target_name]))
    if disagreements:
        raise PipelinkError(disagreements)
    return resolve(spec, variants, target_name)


def check(program: Program, target: Target) -> tuple[Diagnostic, ...]:
    """All findings of a program, one per code and subject, sorted by code and place.

    What components that do not mean one problem get wrong beyond that says nothing.
    """
    index = ProgramIndex(program, target)
    return _found(agreement.CHECKS, index) or _found(CHECKS, index)


def check_stages(
    program: Program, target: Target, stages: Mapping[str, int]
) -> tuple[Diagnostic, ...]:
    """Findings of the protocol for the stage counts of a placement (channel -> stages)."""
    return _once(protocol.check_protocol(ProgramIndex(program, target), stages))


def _found(checks: Iterable[Check], index: ProgramIndex) -> tuple[Diagnostic, ...]:
    return _once(finding for item in checks for finding in item.find(index))


def _once(findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    found: dict[tuple[str, str], Diagnostic] = {}
    for finding in findings:
        found.setdefault((finding.code, finding.subject), finding)
    return tuple(sorted(found.values(), key=_place))


def _place(finding: Diagnostic) -> tuple[str, str, int, str]:
    span = finding.labels[0].span if finding.labels else None
    return finding.code, span.file if span else "", span.line if span else 0, finding.subject


def codes() -> Iterator[str]:
    """Every code that a check may find."""
    for item in CHECKS:
        yield from item.codes
