"""The audit of a component's code: PTX and variant -> diagnostics, and a verdict for each role.

proved: the solver has shown that the code performs the body for every input that the contract
admits (proof/prove.py).  tested: the proof does not go through, and no run of the interpreter
(audit_role.py) differs from the body.  inconclusive: neither can say.
"""

from dataclasses import dataclass, replace

from pipelink_rules.audit.audit_role import (
    arrivals_difference,
    describe_difference,
    forbidden_instruction,
    interpret_role,
    interpret_tiles,
)
from pipelink_rules.audit.compare import Difference
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.contract import Role
from pipelink_rules.model.variant import INCONCLUSIVE, PROVED, TESTED, RoleVerdict, Variant
from pipelink_rules.toolkit.ptx import Module

_SHOWN_VALUES = 12  # of a counterexample


@dataclass(frozen=True)
class ComponentAudit:
    """What the audit of one object found."""

    diagnostics: tuple[Diagnostic, ...]
    verdicts: tuple[RoleVerdict, ...]


def audit_component(module: Module, variant: Variant, *, strict: bool = False) -> ComponentAudit:
    """Return the first difference of each role, and the verdicts of the others.

    An inconclusive audit is a warning, which the link refuses unless it is allowed.  strict: it is
    an error, and so is a role that calls the runtime and is only tested (PL0939).
    """
    diagnostics, verdicts = [], []
    for role in variant.contract.roles:
        if module.function(variant.symbol(role.name)) is None:
            continue
        verdict, found = _audit_role(module, variant, role)
        if strict and verdict.verdict == TESTED and _calls_runtime(variant, role):
            found = found or _not_proved(variant, role, verdict)
        verdicts.append(verdict)
        if found is not None:
            softer = verdict.verdict == INCONCLUSIVE and not strict
            diagnostics.append(replace(found, severity="warning") if softer else found)
    return ComponentAudit(tuple(diagnostics), tuple(verdicts))


def _audit_role(
    module: Module, variant: Variant, role: Role
) -> tuple[RoleVerdict, Diagnostic | None]:
    verdict = RoleVerdict(variant.contract.component, role.name, PROVED)
    # z3 is imported with the proof: a build that compiles nothing does without it.
    from pipelink_rules.audit.proof.prove import prove_role
    from pipelink_rules.audit.proof.verdict import EndlessError, RefutedError, UnprovedError

    again = None
    try:
        prove_role(module, variant, role)
        found = forbidden_instruction(module, variant, role)
        return verdict, found or arrivals_difference(variant, role)
    except RefutedError as why:
        if not why.abstract and not role.scheduler:
            return verdict, _refuted(variant, role, why)
        again, reason = why.case, f"{why}, in a run that may not exist"
        if again is not None:
            case = ", ".join(f"{name}={value}" for name, value in again.sizes.items())
            reason = f"{why} with {case}, which the interpreter does not reproduce"
    except EndlessError as why:
        return verdict, _endless(variant, role, str(why))
    except UnprovedError as why:
        reason = str(why)
    found = interpret_role(module, variant, role)
    if found is None and again is not None:
        # Small sizes show nothing: the interpreter computes the work tiles of the counterexample.
        found = interpret_tiles(module, variant, role, again.sizes, again.tiles)
    if found is not None and found.code == "PL0932":
        return replace(verdict, verdict=INCONCLUSIVE, reason=found.found), found
    return replace(verdict, verdict=TESTED, reason=reason), found


def _calls_runtime(variant: Variant, role: Role) -> bool:
    ports = [port for port in variant.contract.ports if port.role == role.name]
    return not role.scheduler and not any(port.raw for port in ports)


def _refuted(variant: Variant, role: Role, why: Exception) -> Diagnostic:
    """Return the diagnostic of a counterexample."""
    from pipelink_rules.audit.proof.verdict import RefutedError

    assert isinstance(why, RefutedError)
    difference = Difference(why.code, str(why), why.op, why.target, why.expected, why.found)
    diagnostic = describe_difference(variant, role, difference)
    values = ", ".join(f"{name}={value}" for name, value in why.values[:_SHOWN_VALUES])
    return replace(diagnostic, notes=(f"for example with {values}",) if values else ())


def _endless(variant: Variant, role: Role, reason: str) -> Diagnostic:
    difference = Difference(
        "PL0932", "may never end", None, role.name, "a loop that the work tile ends", reason
    )
    return describe_difference(variant, role, difference)


def _not_proved(variant: Variant, role: Role, verdict: RoleVerdict) -> Diagnostic:
    difference = Difference(
        "PL0939", "is tested, not proved", None, role.name, "a proof", verdict.reason
    )
    return describe_difference(variant, role, difference)
