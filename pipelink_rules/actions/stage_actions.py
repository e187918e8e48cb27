"""Actions without a toolkit: declaration, check, resolve, place, glue.  Files -> files."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pipelink_rules.actions.build_key import strip_locations
from pipelink_rules.diagnostics.allow import apply_allowances, unused
from pipelink_rules.diagnostics.diagnostic import CheckResult, Diagnostic, PipelinkError
from pipelink_rules.files.atomic import write_text
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.model.linked_kernel import AllowedDiagnostics
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import MegakernelSpec, Program
from pipelink_rules.model.target import TARGETS
from pipelink_rules.model.variant import Variant


def check_program(
    spec: MegakernelSpec, variants: Mapping[str, Variant], arch: str, out: str | Path
) -> tuple[Diagnostic, ...]:
    """Write `<name>.check.json` and return the diagnostics; raise all of them if one is an error.

    Only contracts are read, no objects: the check runs before any compilation.
    """
    from pipelink_rules.check.check import check, resolve_checked

    program = resolve_checked(spec, variants, arch)
    findings = apply_allowances(check(program, TARGETS[arch]), spec)
    findings = (*findings, *unused(findings, spec))
    if any(item.severity == "error" for item in findings):
        raise PipelinkError(findings)
    write_json(out, CheckResult(findings))
    return findings


def collect_program(
    spec: MegakernelSpec,
    declared: Mapping[str, Variant],
    interfaces: Mapping[str, str | Path],
    arch: str,
    program_out: str | Path,
    plan_out: str | Path,
) -> None:
    """Write `<name>.program.json`, and `<name>.plan.json` without source locations and prose.

    declared: instance -> variant with the locations of its contract.  Measurements of the objects
    come from `interfaces`, and so do prebuilt instances, which are not declared.
    """
    from pipelink_rules.program.resolve import resolve

    variants = {}
    for instance, path in interfaces.items():
        built = read_json(path, Variant)
        known = declared.get(instance)
        variants[instance] = replace(known, measured=built.measured) if known else built
    program = resolve(spec, variants, arch)
    # What the declaration says is resolved in the program; how it says it decides nothing.
    resolved = replace(program, spec=MegakernelSpec(program.name, (), allow=spec.allow))
    write_json(plan_out, strip_locations(resolved), "plan")
    write_json(program_out, program)


def place_program(program: str, out: str, previous: str | None = None) -> None:
    """Write `<name>.placement.json`.  previous: a placement to keep where that costs nothing.

    The chosen stage counts are checked again, because the check before the placement only samples
    the possible ones.
    """
    from pipelink_rules.actions.declared_changes import DeclaredChanges
    from pipelink_rules.place.place import place
    from pipelink_rules.place.problem import placement_problem

    before = read_json(previous, Placement) if previous else None
    collected = read_json(program, Program)
    placement = place(placement_problem(collected), before, changes=DeclaredChanges(collected))
    _live(collected, placement)
    write_json(out, placement)


def write_glue(program: str | Path, placement: str | Path, out: str | Path) -> None:
    """Write `<name>.glue.cu`.

    The placement file may have been edited or belong to another program: it is verified without the
    solver, and its stage counts are checked.
    """
    from pipelink_rules.glue.emit import emit_glue
    from pipelink_rules.place.problem import read_placement

    collected = read_json(program, Program)
    placed = read_placement(placement, collected)
    _live(collected, placed)
    write_text(out, emit_glue(collected, placed))


def allowed_findings(
    program: Program, placement: Placement, checked: str | Path
) -> tuple[AllowedDiagnostics, ...]:
    """Return the allowed diagnostics, those of this placement's stage counts included.

    checked: `<name>.check.json`.  A program without that file is checked again.
    """
    if not program.spec.allow:
        return ()
    if Path(checked).is_file():
        found = read_json(checked, CheckResult).diagnostics
    else:
        from pipelink_rules.check.check import check

        found = apply_allowances(check(program, TARGETS[program.target]), program.spec)
    return tuple(
        AllowedDiagnostics(item.code, item.message, item.allowed, item.counterexample)
        for item in (*found, *_stage_findings(program, placement))
        if item.allowed
    )


def _live(program: Program, placement: Placement) -> None:
    """Raise PipelinkError if the stage counts of a placement can hang or race."""
    found = _stage_findings(program, placement)
    if any(item.severity == "error" for item in found):
        raise PipelinkError(found)


def _stage_findings(program: Program, placement: Placement) -> tuple[Diagnostic, ...]:
    from pipelink_rules.check.check import check_stages

    found = check_stages(program, TARGETS[program.target], dict(placement.stages))
    return apply_allowances(found, program.spec)
