"""May this program be linked?  Program, Target -> findings; none means that it cannot go wrong.

A program without findings cannot hang, race or read stale data, as far as its contracts go: types
and layouts agree, every count adds up, no cycle of waits is closed, no access is out of order,
whatever the sizes at launch and the stages that the placement chooses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pipelink_rules.check import (
    convergence,
    copy_coverage,
    declared_accesses,
    layout,
    multicast_receivers,
    numerics,
    protocol_checks,
    tensor_maps,
    tensor_memory,
    types,
    work_fields,
)
from pipelink_rules.check.counters import checks as counters
from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.registry import Check
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.program import Program
from pipelink_rules.model.target import Target

RULES: tuple[Check, ...] = (
    *types.RULES,
    *layout.RULES,
    *tensor_maps.RULES,
    *copy_coverage.RULES,
    *work_fields.RULES,
    *multicast_receivers.RULES,
    *convergence.RULES,
    *tensor_memory.RULES,
    *declared_accesses.RULES,
    *numerics.RULES,
    *protocol_checks.RULES,
    *counters.RULES,
)


def check(program: Program, target: Target) -> tuple[Diagnostic, ...]:
    """All findings of a program, one per code and subject, sorted by code and place."""
    resolved = ProgramIndex(program, target)
    return _once(finding for rule in RULES for finding in rule.find(resolved))


def check_stages(
    program: Program, target: Target, stages: Mapping[str, int]
) -> tuple[Diagnostic, ...]:
    """Findings of the protocol for the stage counts of a placement (channel -> stages)."""
    return _once(protocol_checks.check_protocol(ProgramIndex(program, target), stages))


def _once(findings: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    found: dict[tuple[str, str], Diagnostic] = {}
    for finding in findings:
        found.setdefault((finding.code, finding.subject), finding)
    return tuple(sorted(found.values(), key=_place))


def _place(finding: Diagnostic) -> tuple[str, str, int, str]:
    span = finding.labels[0].span if finding.labels else None
    return finding.code, span.file if span else "", span.line if span else 0, finding.subject


def codes() -> Iterator[str]:
    """Every code that a rule may find."""
    for rule in RULES:
        yield from rule.codes
