"""Build of one variant: component -> header, object, scan, probe, interface and sidecar.

A prebuilt object is scanned and audited from the code in it, which the linker converts to PTX.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from pipelink_rules.audit.audit_role import audit_roles
from pipelink_rules.compile.object import CompiledUnit, Inspect, compile_unit, digests
from pipelink_rules.compile.options import classify_options
from pipelink_rules.compile.ptx_scan import Sources, scan
from pipelink_rules.compile.register_probe import link_probe, probe_role
from pipelink_rules.compile.register_probe_source import probe_source
from pipelink_rules.contract.header import emit_header
from pipelink_rules.contract.sidecar import dump_interface, dump_sidecar
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError, error, labels
from pipelink_rules.files.atomic import write_text
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.model.contract import Role
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import BuildRecord, Measured, Variant, WeakSymbol
from pipelink_rules.toolkit.command_lines import Unit, fatbin_argv, nvlink_argv
from pipelink_rules.toolkit.compiler_errors import Subject, compile_checked
from pipelink_rules.toolkit.fatbin import codegen_of
from pipelink_rules.toolkit.process import command_note, quote, run, work_folder
from pipelink_rules.toolkit.ptx import read_ptx
from pipelink_rules.toolkit.toolkit import Toolkit

_OPERATION = re.compile(r"\b(pl_\w+)\s*\(")


@dataclass(frozen=True)
class CompiledVariant:
    """The files of a variant and their contents."""

    variant: Variant  # with the results of the register probe
    build: BuildRecord
    folder: Path
    warnings: str  # of the compiler and of inconclusive audits


@dataclass(frozen=True)
class ObjectRecord:
    """What is known of an object before the probe; `<component>.object.json` is its file."""

    FORMATS: ClassVar[tuple[str, ...]] = ("object",)

    toolkit: str  # that compiled it
    fingerprint: str
    command: tuple[str, ...]
    objects: tuple[tuple[str, str], ...]  # file name -> sha256
    weak: tuple[WeakSymbol, ...]
    codegen: tuple[tuple[str, str], ...]
    warnings: str = ""


def compile_variant(
    variant: Variant,
    sources: Sequence[str | Path],
    includes: Iterable[str | Path],
    copts: Iterable[str],
    defines: Iterable[str],
    arch: str,
    toolkit: Toolkit,
    out_dir: str | Path,
    headers: Iterable[str | Path] = (),
    *,
    runtime: str | Path,
    inspect: Inspect | None = None,
    strict: bool = False,
) -> CompiledVariant:
    """Compile and probe a variant into `out_dir`, where nothing is written on failure.

    sources: .cu files, relative to the working folder.  headers: further files searched to locate
    a diagnostic.  runtime: the release runtime of this arch and of the variant's flags, which the
    probe links.  inspect: called with (source, dependency file) after the compiler has run.
    strict: warnings are errors.  Raise PL0901..PL0913, PL0926, PL1209, PL1215 or the errors of
    `inspect`.
    """
    folder, stem = Path(out_dir), variant.contract.component
    folders = tuple(str(path) for path in includes)
    passing = [folder / f"{stem}{suffix}" for suffix in (".object.json", ".probe.fatbin")]
    try:
        with ThreadPoolExecutor(1) as pool:
            probe = pool.submit(compile_probe, variant, folders, arch, toolkit, folder)
            try:
                record = compile_code(
                    variant, sources, folders, copts, defines, arch, toolkit, folder, headers,
                    inspect=inspect, strict=strict,
                )  # fmt: skip
            finally:
                probe.exception()  # errors of the code are reported first
            probe.result()
        measured, build = probe_variant(variant, arch, toolkit, folder, runtime)
    except BaseException:
        passing += [folder / f"{stem}{suffix}" for suffix in (".fatbin", ".shadow.ptx")]
        raise
    finally:
        for path in passing:
            path.unlink(missing_ok=True)
    return CompiledVariant(measured, build, folder, record.warnings)


def compile_probe(
    variant: Variant, includes: Iterable[str], arch: str, toolkit: Toolkit, out_dir: str | Path
) -> None:
    """Write `<component>.contract.cuh` and `<component>.probe.fatbin`, independent of sources."""
    folder, stem = Path(out_dir), variant.contract.component
    _write_header(variant, folder)
    with work_folder(folder) as work:
        source, probe = work / "probe.cu", work / "probe.fatbin"
        source.write_text(probe_source(variant), encoding="utf-8")
        unit = Unit(str(source), arch, (str(folder), *includes), (), variant.flags, (), False)
        argv = fatbin_argv(toolkit, unit, str(probe))
        compile_checked(argv, toolkit, Subject(f"the register probe of `{stem}`"))
        os.replace(probe, folder / f"{stem}.probe.fatbin")


def compile_code(
    variant: Variant,
    sources: Sequence[str | Path],
    includes: Iterable[str],
    copts: Iterable[str],
    defines: Iterable[str],
    arch: str,
    toolkit: Toolkit,
    out_dir: str | Path,
    headers: Iterable[str | Path] = (),
    *,
    inspect: Inspect | None = None,
    strict: bool = False,
) -> ObjectRecord:
    """Compile, scan and audit; write `<component>.fatbin`, `.shadow.ptx` and `.object.json`."""
    folder, contract = Path(out_dir), variant.contract
    stem = contract.component
    header = _write_header(variant, folder)
    options = classify_options(copts)
    unit = Unit(
        _one_source(sources, folder, stem),
        arch,
        (str(folder), *includes),
        tuple(defines),
        variant.flags or options.flags,
        options.other,
        strict,
    )
    subject = Subject(f"component `{stem}`", contract, header)
    with work_folder(folder) as work:
        compiled = compile_unit(unit, toolkit, work, subject, inspect)
        texts = {
            str(file): Path(file).read_text(encoding="utf-8", errors="replace")
            for file in (*sources, *headers)
            if Path(file).is_file()
        }
        code = compiled.ptx.read_text(encoding="utf-8")
        inconclusive = _check_code(code, variant, Sources(texts), unit.includes, strict)
        record = _record(compiled, toolkit, stem, inconclusive)
        os.replace(compiled.fatbin, folder / f"{stem}.fatbin")
        os.replace(compiled.ptx, folder / f"{stem}.shadow.ptx")
        write_json(folder / f"{stem}.object.json", record)
    return record


def probe_variant(
    variant: Variant, arch: str, toolkit: Toolkit, out_dir: str | Path, runtime: str | Path
) -> tuple[Variant, BuildRecord]:
    """Probe the object; write `<component>.interface.json` and `.contract.yaml`."""
    folder, contract = Path(out_dir), variant.contract
    stem = contract.component
    record = read_json(folder / f"{stem}.object.json", ObjectRecord)
    subject = Subject(f"component `{stem}`", contract)
    objects = (folder / f"{stem}.fatbin", folder / f"{stem}.probe.fatbin", runtime)
    with work_folder(folder) as work:
        linked = link_probe(objects, arch, toolkit, work, subject)
        probes = [
            (role.name, probe_role(variant, role, linked, arch, toolkit, work))
            for role in contract.roles
        ]
    check_measurements(contract.roles, dict(probes), stem)
    measured = replace(variant, measured=tuple(probes))
    build = BuildRecord(
        toolkit=record.toolkit,
        fingerprint=record.fingerprint,
        command=record.command,
        objects=record.objects,
        probe=measured.measured,
        weak=record.weak,
        codegen=record.codegen,
        extra=(("arch", arch),),
    )
    write_text(folder / f"{stem}.interface.json", dump_interface(measured))
    write_text(folder / f"{stem}.contract.yaml", dump_sidecar(measured, build))
    return measured, build


def _write_header(variant: Variant, folder: Path) -> str:
    """Return the generated header; write it unless it exists, as two actions may need it."""
    header, path = emit_header(variant), folder / f"{variant.contract.component}.contract.cuh"
    if not path.is_file() or path.read_text(encoding="utf-8") != header:
        write_text(path, header)
    return header


def _one_source(sources: Sequence[str | Path], folder: Path, stem: str) -> str:
    """Return the source of the component's object; several sources are compiled as one unit."""
    if len(sources) == 1:
        return str(sources[0])
    unit = folder / f"{stem}.unit.cu"
    lines = [f'#include "{os.path.relpath(source, folder)}"' for source in sources]
    write_text(unit, "\n".join(lines) + "\n")
    return str(unit)


def _check_code(
    code: str, variant: Variant, sources: Sources, includes: Iterable[str | Path], strict: bool
) -> tuple[Diagnostic, ...]:
    """Raise errors of the scan and the audit of PTX; return inconclusive audits."""
    module = read_ptx(code)
    violations = scan(module, variant, sources, runtime_operations(includes))
    if violations:
        raise PipelinkError(violations)
    audited = audit_roles(module, variant, strict=strict)
    if any(item.severity == "error" for item in audited):
        raise PipelinkError(audited)
    return tuple(audited)


def runtime_operations(includes: Iterable[str | Path]) -> frozenset[str]:
    """Return the names that <pipelink/runtime.cuh> declares; empty if it is not on the path."""
    for folder in includes:
        path = Path(folder) / "pipelink/runtime.cuh"
        if path.is_file():
            return frozenset(_OPERATION.findall(path.read_text(encoding="utf-8")))
    return frozenset()


def check_measurements(roles: Iterable[Role], measured: Mapping[str, Measured], stem: str) -> None:
    """Raise PL0910 for roles whose contract declares fewer registers than the probe measured."""
    exceeded = []
    for role in roles:
        found = measured[role.name]
        if role.scheduler:  # runs in other roles, whose linked code is audited
            continue
        for clause, declared, needed, why in (
            ("min", role.registers.minimum.literal, found.registers, "to avoid spills"),
            ("entry", role.registers.entry.literal, found.entry, "at kernel entry"),
        ):
            probed = clause == "min" and role.registers.probed  # nothing is declared
            if not probed and declared is not None and declared < needed:
                diagnostic = Diagnostic(
                    "PL0910",
                    f"role `{role.name}` of `{stem}` needs {needed} registers {why}, but its "
                    f"contract declares {declared}",
                    labels((role.where("registers"), f"registers: {clause} is {declared}")),
                    expected=f"{clause}: {needed} or more",
                    found=f"{clause}: {declared}",
                    at_run_time="the placement assigns too few registers, and the kernel spills",
                    suggestions=(f"set registers: {{{clause}: {needed}}} in the contract",),
                    subject=f"{stem}.{role.name}.{clause}",
                )
                exceeded.append(diagnostic)
    if exceeded:
        raise PipelinkError(exceeded)


def _record(
    compiled: CompiledUnit, toolkit: Toolkit, stem: str, inconclusive: Iterable[Diagnostic]
) -> ObjectRecord:
    objects = dict(digests((compiled.fatbin, compiled.ptx)))
    return ObjectRecord(
        toolkit=toolkit.version,
        fingerprint=toolkit.fingerprint,
        command=compiled.command,
        objects=(
            (f"{stem}.fatbin", objects[compiled.fatbin.name]),
            (f"{stem}.shadow.ptx", objects[compiled.ptx.name]),
        ),
        weak=compiled.weak,
        codegen=codegen_of(compiled.fatbin, toolkit),
        warnings="\n".join(filter(None, [compiled.warnings, audit_summaries(inconclusive)])),
    )


def audit_summaries(inconclusive: Iterable[Diagnostic]) -> str:
    """Return one line for each inconclusive audit."""
    return "\n".join(f"warning[{item.code}]: {item.message}: {item.found}" for item in inconclusive)


# -- prebuilt objects: audited from the code in the fat binary, without adjacent PTX files ---------
def audit_object(
    variant: Variant,
    path: str | Path,
    arch: str,
    toolkit: Toolkit,
    folder: str | Path,
    includes: Iterable[str | Path],
    *,
    strict: bool = False,
) -> str:
    """Scan and audit a prebuilt object like a compiled one; return its inconclusive audits.

    folder: for temporary files.
    """
    code = code_of_object(path, arch, toolkit, folder)
    return audit_summaries(_check_code(code, variant, Sources({}), includes, strict))


def code_of_object(path: str | Path, arch: str, toolkit: Toolkit, folder: str | Path) -> str:
    """Return the PTX of one object, linked alone; PL0904 if it has no link-time code."""
    with work_folder(Path(folder)) as work:
        out = work / "object.ptx"
        argv = nvlink_argv(toolkit, arch, [str(path)], str(out), ptx=True, options=("-r",))
        output = run(argv, toolkit)
        if not output.ok or not out.is_file():
            raise error(
                "PL0904",
                f"cannot read the code of {Path(path).name}",
                Label(Span(str(path))),
                expected=f"link-time code for {arch}",
                found=quote(output.text) or "no code",
                notes=(command_note(output),),
                suggestions=(f"use an object and a sidecar of one build for {arch}",),
                subject=str(path),
            )
        return out.read_text(encoding="utf-8", errors="replace")
