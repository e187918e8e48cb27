"""Commands that run one stage from its file, without a compiler: `check` and `place`."""

import argparse
import sys
from pathlib import Path

from pipelink_rules.cli.command_io import existing, megakernel_in, read_json, report, root_of
from pipelink_rules.diagnostics.allow import apply_allowances, unused
from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.files.codec import to_json, write_json
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import MegakernelSpec, Program
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS


def run_check(arguments: argparse.Namespace) -> int:
    """Resolve (from a specification) and check."""
    from pipelink_rules.check.check import check

    file = existing(arguments.file)
    root = root_of(arguments, file)
    program = program_of(file, root, arguments.arch)
    findings = apply_allowances(check(program, TARGETS[program.target]), program.spec)
    findings = (*findings, *unused(findings, program.spec))
    code = report(findings, arguments, "it does not link")
    if not findings and arguments.diag == "text":
        ends, rings = len(program.connections), len(program.channels)
        sys.stdout.write(
            f"{program.name} for {program.target}: no errors or warnings "
            f"({plural(len(program.instances), 'instance')}, {plural(ends, 'connection')}, "
            f"{plural(rings, 'ring')})\n"
        )
    return code


def program_of(file: Path, root: Path, arch: str | None) -> Program:
    """Return the program in a .program.json, or resolved from a .spec.json and its contracts."""
    if not file.name.endswith(".spec.json"):
        program = read_json(file, Program)
        _require_target(file, program.target)
        return program
    from pipelink_rules.check.check import resolve_checked
    from pipelink_rules.program.infer import bind_instances

    spec = read_json(file, MegakernelSpec)
    target = arch or (spec.archs[0] if spec.archs else "sm_90a")
    _require_target(file, target)
    contracts = {item.label: contract_of(item.label, root) for item in spec.instances}
    return resolve_checked(spec, bind_instances(spec, contracts), target)


def contract_of(text: str, root: Path) -> Contract:
    """The contract behind a label: `//a/b:c` is a/b/c.contract.yaml, as components are laid out."""
    from pipelink_rules.actions.labels import LIBRARY, parse_label
    from pipelink_rules.contract.load import load_contract
    from pipelink_rules.files.installed_files import shipped_root

    label = parse_label(text)
    if label is None:
        raise error("PL1302", f"`{text}` is not a label", expected="//package:name", found=text)
    name = f"{label.package}/{label.name}.contract.yaml"
    tops = [shipped_root()] if label.repository == LIBRARY else [root, shipped_root()]
    found = next((top / name for top in tops if (top / name).is_file()), None)
    if found is None:
        raise error(
            "PL1302",
            f"unknown component `{text}`",
            expected=f"its contract in {tops[0] / name}",
            found="no such file",
            suggestions=(f"create {name}", "or check the .program.json of a build"),
        )
    try:
        return load_contract(found.resolve().relative_to(Path.cwd()))
    except ValueError:
        return load_contract(found)


def _require_target(file: Path, target: str) -> None:
    if target not in TARGETS:
        raise error(
            "PL0046",
            f"unknown target `{target}` in {file.name}",
            Span(str(file)),
            expected=f"one of {', '.join(TARGETS)}",
            found=target,
        )


def run_place(arguments: argparse.Namespace) -> int:
    """Place, verify without the solver, and print or write."""
    from pipelink_rules.actions.declared_changes import DeclaredChanges
    from pipelink_rules.actions.stage_actions import allowed_findings
    from pipelink_rules.place.place import place
    from pipelink_rules.place.problem import placement_problem
    from pipelink_rules.place.verify import verify
    from pipelink_rules.report.map import render_map

    file = megakernel_in(arguments.file, ".program.json")
    root_of(arguments, file)
    program = read_json(file, Program)
    previous = read_json(arguments.keep, Placement) if arguments.keep else None
    problem = placement_problem(program)
    placement = place(problem, previous, changes=DeclaredChanges(program))
    faults = verify(problem, placement)
    if faults:
        raise AssertionError("; ".join(faults))
    if arguments.output == "-":
        sys.stdout.write(to_json(placement))
        return 0
    if arguments.output:
        write_json(Path(arguments.output), placement)
    stem = str(file).removesuffix(".program.json")
    allowed = allowed_findings(program, placement, f"{stem}.check.json")
    sys.stdout.write(render_map(program, placement, None, allowed))
    return 0
