"""`pipelink link FOLDER -o OUT`: link the objects of a built megakernel again.

Another backend serves to compare machine code, another device runtime to diagnose a hang.  No
component is compiled.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pipelink_rules.cli.command_io import existing, megakernel_in, read_json
from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.model.linked_kernel import Manifest
from pipelink_rules.model.program import Program, runtime_build
from pipelink_rules.model.source_span import Span
from pipelink_rules.report.allowed import allowed_lines

if TYPE_CHECKING:
    from pipelink_rules.toolkit.toolkit import Toolkit


def run_link(arguments: argparse.Namespace) -> int:
    """Links, audits, writes cubin, audit, manifest and map."""
    from pipelink_rules.actions import paths
    from pipelink_rules.actions.link_actions import link_image, write_reports
    from pipelink_rules.toolkit.find import find_toolkit

    file = megakernel_in(arguments.folder, ".program.json")
    name = file.name.removesuffix(".program.json")
    program = read_json(file, Program)
    build = _build_of(file.resolve().parent, program.target)
    runtime = arguments.runtime or program.runtime
    out = Path(arguments.output)
    out.mkdir(parents=True, exist_ok=True)
    if out.resolve() == file.resolve().parent:
        raise error(
            "PL1312",
            f"output folder {out} is the build folder of `{name}`",
            Span(str(out)),
            expected="a folder that scons does not write",
            suggestions=("pass another folder with -o",),
        )
    variants = {item.variant.name: item.variant for item in program.instances}
    files = [
        paths.variant_files(str(build), program.target, key, variant.contract.component)
        for key, variant in sorted(variants.items())
    ]
    toolkit = find_toolkit(build)
    inputs = [*(item.fatbin for item in files), str(file.parent / f"{name}.glue.fatbin")]
    for item in inputs:
        existing(item)
    flags = next((variant.flags for variant in variants.values()), ())
    build_of = runtime_build(runtime, program.cluster)
    # Only the runtime that the program asks for was kept up to date by its build.
    kept = Path(paths.runtime_fatbin(str(build), program.target, build_of, flags))
    declared = runtime_build(program.runtime, program.cluster)
    if build_of != declared or not kept.is_file():
        kept = _runtime(out / kept.name, program.target, build_of, flags, toolkit)
    plan, stem = file.parent / f"{name}.plan.json", str(out / name)
    link_image(
        objects=[*inputs, str(kept)],
        sidecars=[item.sidecar for item in files],
        program=str(plan if plan.is_file() else file),
        placement=str(file.parent / f"{name}.placement.json"),
        backend=arguments.linker,
        stem=stem,
        times=f"{stem}.times.json",
        toolkit=toolkit,
    )
    for suffix in ("program.json", "check.json", "placement.json"):
        if (file.parent / f"{name}.{suffix}").is_file():
            shutil.copyfile(file.parent / f"{name}.{suffix}", f"{stem}.{suffix}")
    write_reports(stem, runtime)
    sys.stdout.write(f"{name}: linked by {arguments.linker}, runtime {runtime}, into {out}\n")
    allowed = read_json(out / f"{name}.manifest.json", Manifest).allowed
    sys.stdout.writelines(f"{line}\n" for line in allowed_lines(allowed))
    return 0


def _runtime(made: Path, arch: str, name: str, flags: Sequence[str], toolkit: Toolkit) -> Path:
    """Return the object of a build of the device runtime, compiled now."""
    from pipelink_rules.compile.object import compile_object
    from pipelink_rules.diagnostics.wording import similar_name_help
    from pipelink_rules.files.installed_files import shipped

    source = shipped("components", "runtime", f"{name}.cu")
    if not source.is_file():
        known = sorted(item.stem for item in source.parent.glob("*.cu"))
        raise error(
            "PL1302",
            f"unknown device runtime `{name}`",
            expected=f"one of {', '.join(known)}",
            found=name,
            suggestions=similar_name_help(name, known),
            subject=name,
        )
    compile_object(
        str(source),
        str(made),
        arch,
        toolkit,
        includes=(str(shipped("components", "include")), str(source.parent)),
        flags=tuple(flags),
        name=f"the device runtime `{name}`",
    )
    return made


def _build_of(folder: Path, arch: str) -> Path:
    """Return the build directory above build/<arch>/megakernels/<name>."""
    if folder.parent.name == "megakernels" and folder.parent.parent.name == arch:
        return folder.parents[2]
    raise error(
        "PL0010",
        f"{folder} is not inside a build directory",
        Span(str(folder)),
        expected=f"<build>/{arch}/megakernels/<name>, with its objects in <build>/{arch}/variants",
        suggestions=("pass the build folder of a megakernel",),
    )
