"""Which findings does a declaration allow?  `allow={"PL0505": "reason"}` -> marked warnings.

Only what is found about a composition that could be linked all the same may be allowed: findings
of the check, and those of the linked kernel.  Text that cannot be read, a placement that does not
exist, an object that breaks its contract and a mistake of PipeLink are none of these.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pipelink_rules.diagnostics.catalogue import code_of
from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels, report
from pipelink_rules.model.program import MegakernelSpec

# Differences between the linked kernel and its plan: the kernel is there, and can be kept.
OF_THE_LINK = (
    *("PL0920", "PL0921", "PL0922", "PL0923", "PL0924"),
    *("PL0925", "PL0926", "PL0927", "PL0929", "PL0932", "PL0938"),
)


def is_allowable(code: str) -> bool:
    """Whether a declaration may allow findings of this code."""
    row = code_of(code)
    return code in OF_THE_LINK or (row is not None and row.stage == "check")


def apply_allowances(
    findings: Iterable[Diagnostic], spec: MegakernelSpec
) -> tuple[Diagnostic, ...]:
    """The findings, those of allowed codes as warnings that carry the written reason."""
    reasons = {code: reason for code, reason in spec.allow if is_allowable(code)}
    return tuple(
        _allowed(item, reasons[item.code], spec) if item.code in reasons else item
        for item in findings
    )


def unused(findings: Iterable[Diagnostic], spec: MegakernelSpec) -> Iterator[Diagnostic]:
    """A warning for each code of the check that is allowed and not found (any more)."""
    found = {item.code for item in findings}
    for code, _ in spec.allow:
        if code in found or code in OF_THE_LINK:
            continue
        yield report(
            "PL0078",
            f"`{spec.name}` allows {code}, which the check does not find",
            (spec.where("allow", code), "allows nothing"),
            at_run_time="a finding that comes later would pass unseen",
            suggestions=("remove the entry",),
            subject=f"{spec.name}/{code}",
            severity="warning",
        )


def _allowed(item: Diagnostic, reason: str, spec: MegakernelSpec) -> Diagnostic:
    places = (*item.labels, *labels((spec.where("allow", item.code), "allowed here")))
    return replace(item, severity="warning", allowed=reason, labels=places)
