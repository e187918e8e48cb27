"""Build of one variant: component -> header, object, scan, probe, interface and sidecar.

A prebuilt object is scanned and audited from the code in it, which the linker converts to PTX.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from pipelink_rules.actions.header_deps import require_declared
from pipelink_rules.actions.prebuilt import finished_files
from pipelink_rules.actions.requests import CompileRequest
from pipelink_rules.audit.audit_component import ComponentAudit, audit_component
from pipelink_rules.compile.object import compile_unit
from pipelink_rules.compile.options import classify_options
from pipelink_rules.compile.ptx_scan import Sources, scan
from pipelink_rules.compile.register_probe import link_probe, probe_role
from pipelink_rules.compile.register_probe_source import probe_source
from pipelink_rules.contract.header import digest_of, emit_header
from pipelink_rules.contract.sidecar import dump_interface, dump_sidecar, load_sidecar
from pipelink_rules.diagnostics.diagnostic import DiagnosticSink, Label, PipelinkError, error
from pipelink_rules.files.atomic import sha256, write_bytes, write_text
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.model.contract import Role
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import BuildRecord, Measured, RoleVerdict, Variant, WeakSymbol
from pipelink_rules.toolkit.command_lines import Unit, fatbin_argv, nvlink_argv
from pipelink_rules.toolkit.compiler_errors import Subject, compile_checked
from pipelink_rules.toolkit.fatbin import codegen_of
from pipelink_rules.toolkit.process import command_note, quote, run, work_folder
from pipelink_rules.toolkit.ptx import read_ptx
from pipelink_rules.toolkit.toolkit import Toolkit

_OPERATION = re.compile(r"\b(pl_\w+)\s*\(")


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
    verdicts: tuple[RoleVerdict, ...] = ()


def compile_component(
    request: CompileRequest, toolkit: Toolkit, inputs: Iterable[str]
) -> ObjectRecord:
    """Compile, scan and audit; write `<component>.fatbin`, `.shadow.ptx` and `.object.json`.

    inputs: every file that the build tracks for it.  A header that the compiler read but that is
    not among them is an error, and no file is written.
    """
    variant, folder = request.variant(), Path(request.out_dir)
    stem = variant.contract.component
    header = _write_header(variant, folder)
    options = classify_options(request.copts)
    unit = Unit(
        _one_source(request.sources, folder, stem),
        request.arch,
        (str(folder), *request.includes),
        request.defines,
        variant.flags or options.flags,
        options.other,
        request.strict,
    )

    def inspect(source: str, depfile: Path) -> None:
        system = (*toolkit.includes, request.out_dir)
        allowed = (source, *inputs)
        require_declared(request.label, source, depfile, allowed, system, request.declared)

    with work_folder(folder) as work:
        subject = Subject(f"component `{stem}`", variant.contract, header)
        compiled = compile_unit(unit, toolkit, work, subject, inspect)
        texts = {
            file: Path(file).read_text(encoding="utf-8", errors="replace")
            for file in (*request.sources, *request.declared)
            if Path(file).is_file()
        }
        code = compiled.ptx.read_text(encoding="utf-8")
        audited = _check_code(code, variant, Sources(texts), unit.includes, request.strict)
        record = ObjectRecord(
            toolkit=toolkit.version,
            fingerprint=toolkit.fingerprint,
            command=compiled.command,
            objects=(
                (f"{stem}.fatbin", sha256(compiled.fatbin)),
                (f"{stem}.shadow.ptx", sha256(compiled.ptx)),
            ),
            weak=compiled.weak,
            codegen=codegen_of(compiled.fatbin, toolkit),
            warnings="\n".join(filter(None, [compiled.warnings, _summaries(audited)])),
            verdicts=audited.verdicts,
        )
        os.replace(compiled.fatbin, folder / f"{stem}.fatbin")
        os.replace(compiled.ptx, folder / f"{stem}.shadow.ptx")
        write_json(folder / f"{stem}.object.json", record)
    return record


def compile_probe(request: CompileRequest, toolkit: Toolkit) -> None:
    """Write `<component>.contract.cuh` and `<component>.probe.fatbin`, independent of sources."""
    variant, folder = request.variant(), Path(request.out_dir)
    stem = variant.contract.component
    _write_header(variant, folder)
    with work_folder(folder) as work:
        source, probe = work / "probe.cu", work / "probe.fatbin"
        source.write_text(probe_source(variant), encoding="utf-8")
        includes = (str(folder), *request.includes)
        unit = Unit(str(source), request.arch, includes, flags=variant.flags, strict=False)
        argv = fatbin_argv(toolkit, unit, str(probe))
        compile_checked(argv, toolkit, Subject(f"the register probe of `{stem}`"))
        os.replace(probe, folder / f"{stem}.probe.fatbin")


def probe_component(request: CompileRequest, runtime: str, toolkit: Toolkit) -> None:
    """Write `<component>.interface.json` and `.contract.yaml` with the needs of the object.

    runtime: the release runtime for the target and the flags of the variant.
    """
    variant, arch, folder = request.variant(), request.arch, Path(request.out_dir)
    contract = variant.contract
    stem = contract.component
    record = read_json(folder / f"{stem}.object.json", ObjectRecord)
    subject = Subject(f"component `{stem}`", contract)
    objects = (folder / f"{stem}.fatbin", folder / f"{stem}.probe.fatbin", runtime)
    with work_folder(folder) as work:
        linked = link_probe(objects, arch, toolkit, work, subject)
        probes = tuple(
            (role.name, probe_role(variant, role, linked, arch, toolkit, work))
            for role in contract.roles
        )
    check_measurements(contract.roles, dict(probes), stem)
    measured = replace(variant, measured=probes)
    build = BuildRecord(
        toolkit=record.toolkit,
        fingerprint=record.fingerprint,
        command=record.command,
        objects=record.objects,
        probe=probes,
        weak=record.weak,
        codegen=record.codegen,
        verdicts=record.verdicts,
        extra=(("arch", arch),),
    )
    write_text(folder / f"{stem}.interface.json", dump_interface(measured))
    write_text(folder / f"{stem}.contract.yaml", dump_sidecar(measured, build))


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
) -> ComponentAudit:
    """Raise errors of the scan and the audit of PTX; return the verdicts."""
    module = read_ptx(code)
    violations = scan(module, variant, sources, runtime_operations(includes))
    if violations:
        raise PipelinkError(violations)
    audited = audit_component(module, variant, strict=strict)
    if any(item.severity == "error" for item in audited.diagnostics):
        raise PipelinkError(audited.diagnostics)
    return audited


def _summaries(audited: ComponentAudit) -> str:
    """Return one line for each inconclusive audit."""
    return "\n".join(
        f"warning[{item.code}]: {item.message}: {item.found}" for item in audited.diagnostics
    )


def runtime_operations(includes: Iterable[str | Path]) -> frozenset[str]:
    """Return the names that <pipelink/runtime.cuh> declares; empty if it is not on the path."""
    for folder in includes:
        path = Path(folder) / "pipelink/runtime.cuh"
        if path.is_file():
            return frozenset(_OPERATION.findall(path.read_text(encoding="utf-8")))
    return frozenset()


def check_measurements(roles: Iterable[Role], measured: Mapping[str, Measured], stem: str) -> None:
    """Raise PL0910 for roles whose contract declares fewer registers than the probe measured."""
    sink = DiagnosticSink()
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
                sink.add(
                    "PL0910",
                    f"role `{role.name}` of `{stem}` needs {needed} registers {why}, but its "
                    f"contract declares {declared}",
                    (role.where("registers"), f"registers: {clause} is {declared}"),
                    expected=f"{clause}: {needed} or more",
                    found=f"{clause}: {declared}",
                    at_run_time="the placement assigns too few registers, and the kernel spills",
                    suggestions=(f"set registers: {{{clause}: {needed}}} in the contract",),
                    subject=f"{stem}.{role.name}.{clause}",
                )
    sink.raise_if_any()


# -- prebuilt objects: audited from the code in the fat binary, without adjacent PTX files ---------
def unpack_prebuilt(
    sidecar: str, out_dir: str, arch: str, includes: Iterable[str], toolkit: Toolkit, strict: bool
) -> str:
    """Write object, shadow and record of a variant from prebuilt ones; return warnings.

    includes: of the device ABI.  The warnings state which audits are inconclusive; with `strict`
    these are errors.  Raise PL0904 if an object is missing, differs
    from its sidecar, or was built for another device ABI, and every error that the compilation of a
    component raises.
    """
    variant, build = load_sidecar(sidecar)
    stem = variant.contract.component
    recorded = dict(build.objects)
    _, *delivered = map(Path, finished_files(sidecar))
    for path in delivered:
        found = sha256(path) if path.is_file() else "no such file"
        if found != recorded.get(path.name, "not in the sidecar"):
            expected = f"sha256 {recorded.get(path.name)}"
            raise _mismatch(sidecar, str(path), expected, f"sha256 {found}")
    digest = digest_of(variant, variant.flags)
    if digest != variant.digest:
        raise _mismatch(sidecar, sidecar, f"variant {digest}", f"variant {variant.digest}")
    code = code_of_object(delivered[0], arch, toolkit, out_dir)
    audited = _check_code(code, variant, Sources({}), includes, strict)
    for path in delivered:
        write_bytes(Path(out_dir, path.name), path.read_bytes())
    record = ObjectRecord(
        toolkit=build.toolkit,
        fingerprint=build.fingerprint,
        command=build.command,
        objects=build.objects,
        weak=build.weak,
        codegen=build.codegen,
        warnings=_summaries(audited),
        verdicts=audited.verdicts,
    )
    write_json(Path(out_dir, f"{stem}.object.json"), record)
    return record.warnings


def _mismatch(sidecar: str, name: str, expected: str, found: str) -> PipelinkError:
    return error(
        "PL0904",
        f"{Path(name).name} does not match its sidecar, or was built by another version",
        Label(Span(name)),
        Label(Span(sidecar), "the sidecar") if name != sidecar else None,
        expected=expected,
        found=found,
        suggestions=("deliver object and sidecar of one build, built by this version, together",),
        subject=name,
    )


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
                Span(str(path)),
                expected=f"link-time code for {arch}",
                found=quote(output.text) or "no code",
                notes=(command_note(output),),
                suggestions=(f"use an object and a sidecar of one build for {arch}",),
                subject=str(path),
            )
        return out.read_text(encoding="utf-8", errors="replace")
