"""One component becomes one variant: header, object, scan, probe, interface and sidecar.

An object without a source is scanned and audited by its own code: the linker gives it as PTX.
"""

from __future__ import annotations

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
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError, error
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
    """The files of a variant and what is in them."""

    variant: Variant  # with the probe's results
    build: BuildRecord
    folder: Path
    warnings: str  # the compiler's, '' where there were none


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
    """Compile and probes a variant into `out_dir`; nothing is written there where that fails.

    sources: .cu files, relative to the folder the build runs in.  headers: files searched when a
    finding is located.  runtime: the release runtime of this arch and of the variant's flags; the
    probe links it.  inspect: called with (source, dependency file) after the compiler has run.
    strict: warnings are errors.  Raises PL0901..PL0913, PL0926, PL1209, PL1215 or what `inspect`
    raises.
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
                probe.exception()  # the code's own findings are the ones to show
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
    """`<component>.contract.cuh` and `<component>.probe.fatbin`: they depend on no source."""
    folder, stem = Path(out_dir), variant.contract.component
    _write_header(variant, folder)
    with work_folder(folder) as work:
        source, probe = work / "probe.cu", work / "probe.fatbin"
        source.write_text(probe_source(variant), encoding="utf-8")
        unit = Unit(str(source), arch, (str(folder), *includes), (), variant.flags, (), False)
        argv = fatbin_argv(toolkit, unit, str(probe))
        compile_checked(argv, toolkit, Subject(f"probe of {stem}"))
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
    """Return `<component>.fatbin`, `.shadow.ptx` and `.object.json`, scanned against the rules."""
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
        unaudited = _refuse(compiled, variant, [*sources, *headers], unit.includes, strict)
        record = _record(compiled, toolkit, stem, unaudited)
        os.replace(compiled.fatbin, folder / f"{stem}.fatbin")
        os.replace(compiled.ptx, folder / f"{stem}.shadow.ptx")
        write_json(folder / f"{stem}.object.json", record)
    return record


def probe_variant(
    variant: Variant, arch: str, toolkit: Toolkit, out_dir: str | Path, runtime: str | Path
) -> tuple[Variant, BuildRecord]:
    """Return `<component>.interface.json` and `.contract.yaml`, from what the two steps before wrote."""
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
    """Return the generated header, written where it is not there yet: two steps may need it at once."""
    header, path = emit_header(variant), folder / f"{variant.contract.component}.contract.cuh"
    if not path.is_file() or path.read_text(encoding="utf-8") != header:
        write_text(path, header)
    return header


def _one_source(sources: Sequence[str | Path], folder: Path, stem: str) -> str:
    """Return a component is one object; several sources are compiled as one unit."""
    if len(sources) == 1:
        return str(sources[0])
    unit = folder / f"{stem}.unit.cu"
    lines = [f'#include "{os.path.relpath(source, folder)}"' for source in sources]
    write_text(unit, "\n".join(lines) + "\n")
    return str(unit)


def _refuse(
    compiled: CompiledUnit,
    variant: Variant,
    files: Sequence[str | Path],
    includes: Sequence[str],
    strict: bool,
) -> tuple[Diagnostic, ...]:
    """Raise what the code breaks; returns what could not be audited."""
    texts: dict[str, str] = {}
    for file in files:
        path = Path(file)
        if path.is_file():
            texts[str(file)] = path.read_text(encoding="utf-8", errors="replace")
    code = compiled.ptx.read_text(encoding="utf-8")
    return _refuse_code(code, variant, Sources(texts), includes, strict)


def _refuse_code(
    code: str, variant: Variant, sources: Sources, includes: Iterable[str | Path], strict: bool
) -> tuple[Diagnostic, ...]:
    """Raise what the PTX breaks, its contract included; returns what could not be audited."""
    module = read_ptx(code)
    findings = scan(module, variant, sources, runtime_operations(includes))
    if findings:
        raise PipelinkError(findings)
    audited = audit_roles(module, variant, strict=strict)
    if any(item.severity == "error" for item in audited):
        raise PipelinkError(audited)
    return tuple(audited)


def runtime_operations(includes: Iterable[str | Path]) -> frozenset[str]:
    """Return the names that <pipelink/runtime.cuh> declares; empty where it is not on the path."""
    for folder in includes:
        path = Path(folder) / "pipelink/runtime.cuh"
        if path.is_file():
            return frozenset(_OPERATION.findall(path.read_text(encoding="utf-8")))
    return frozenset()


def check_measurements(roles: Iterable[Role], measured: Mapping[str, Measured], stem: str) -> None:
    """The contract must not promise less than the probe found."""
    findings = []
    for role in roles:
        found = measured[role.name]
        if role.scheduler:  # runs inside of other roles, which the audit watches
            continue
        for clause, declared, needed, what in (
            ("min", role.registers.minimum.literal, found.registers, "without spills"),
            ("entry", role.registers.entry.literal, found.entry, "at kernel entry"),
        ):
            probed = clause == "min" and role.registers.probed  # nothing is declared
            if not probed and declared is not None and declared < needed:
                span = role.where("registers")
                findings.append(
                    Diagnostic(
                        "PL0910",
                        f"role `{role.name}` of `{stem}` needs {needed} registers {what}, "
                        f"its contract says {declared}",
                        (Label(span, f"registers: {clause} is {declared}"),) if span else (),
                        expected=f"{clause}: {needed} or more",
                        found=f"{clause}: {declared}",
                        at_run_time="the placement gives it too few, and the kernel spills",
                        suggestions=(f"set registers: {{{clause}: {needed}}} in the contract",),
                        subject=f"{stem}.{role.name}.{clause}",
                    )
                )
    if findings:
        raise PipelinkError(findings)


def _record(
    compiled: CompiledUnit, toolkit: Toolkit, stem: str, unaudited: Iterable[Diagnostic]
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
        warnings="\n".join(filter(None, [compiled.warnings, audit_summaries(unaudited)])),
    )


def audit_summaries(unaudited: Iterable[Diagnostic]) -> str:
    """Return what could not be audited, a line each."""
    return "\n".join(f"warning[{item.code}]: {item.message}: {item.found}" for item in unaudited)


# -- objects without a source: their own code is read, whatever a shadow says of it ---------------
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
    """Refuse an object that breaks a rule or its contract, like one that is being compiled.

    The result says what could not be audited, '' where nothing.  folder: for temporary files.
    """
    code = code_of_object(path, arch, toolkit, folder)
    return audit_summaries(_refuse_code(code, variant, Sources({}), includes, strict))


def code_of_object(path: str | Path, arch: str, toolkit: Toolkit, folder: str | Path) -> str:
    """Return the PTX of one object, linked with nothing; PL0904 where there is none in it."""
    with work_folder(Path(folder)) as work:
        out = work / "object.ptx"
        argv = nvlink_argv(toolkit, arch, [str(path)], str(out), ptx=True, options=("-r",))
        output = run(argv, toolkit)
        if not output.ok or not out.is_file():
            raise error(
                "PL0904",
                f"the code of {Path(path).name} cannot be read",
                Label(Span(str(path))),
                expected=f"link-time code for {arch}",
                found=quote(output.text) or "nothing",
                notes=(command_note(output),),
                suggestions=("deliver object and sidecar of one build, for this target",),
                subject=str(path),
            )
        return out.read_text(encoding="utf-8", errors="replace")
