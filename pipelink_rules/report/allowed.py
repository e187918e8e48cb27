"""What was linked in spite of a finding?  Program + Placement + Audit -> Forced."""

from __future__ import annotations

from collections.abc import Iterable

from pipelink_rules.model.linked_kernel import AllowedDiagnostics, Audit
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.model.target import TARGETS


def forced_of(
    program: Program, placement: Placement, audit: Audit | None
) -> tuple[AllowedDiagnostics, ...]:
    """Every finding that the declaration allows, of the check and of the linked kernel."""
    found: tuple[AllowedDiagnostics, ...] = audit.forced if audit else ()
    if program.spec.allow:
        from pipelink_rules.check.check import check, check_stages
        from pipelink_rules.diagnostics.allow import apply_allowances

        target = TARGETS[program.target]
        findings = (
            *check(program, target),
            *check_stages(program, target, dict(placement.stages)),
        )
        checked = apply_allowances(findings, program.spec)
        found = (
            *(
                AllowedDiagnostics(x.code, x.message, x.forced, x.schedule)
                for x in checked
                if x.forced
            ),
            *found,
        )
    return tuple(dict.fromkeys(found))


def forced_lines(forced: Iterable[AllowedDiagnostics], of: str = "") -> list[str]:
    """`PL0505 forced: what was found`, and the reason below it.  of: a prefix, such as a name."""
    lines = []
    for item in forced:
        lines += [f"{of}{item.code} forced: {item.message}", f"  because: {item.reason}"]
    return lines
