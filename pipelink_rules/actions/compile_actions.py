"""Actions that compile components, the device runtime and the glue to objects."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from pipelink_rules.actions.header_deps import require_declared
from pipelink_rules.diagnostics.diagnostic import Label, PipelinkError, error
from pipelink_rules.files.atomic import sha256, write_bytes, write_text
from pipelink_rules.files.codec import write_json
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.toolkit import Toolkit

_FINISHED = (".contract.yaml", ".fatbin", ".shadow.ptx")


@dataclass(frozen=True)
class CompileRequest:
    """A variant to compile.  Paths are relative to the folder of the build's top."""

    label: str
    variant: Callable[[], Variant]  # in full, when an action runs
    sources: tuple[str, ...]
    includes: tuple[str, ...]
    copts: tuple[str, ...]  # without code-generation flags: those are the variant's
    defines: tuple[str, ...]
    arch: str
    out_dir: str
    declared: tuple[str, ...]  # headers of the component and of what it depends on
    strict: bool = False  # warnings and inconclusive audits are errors


@dataclass(frozen=True)
class PrebuiltRequest:
    """A prebuilt object to import."""

    sidecar: str
    out_dir: str
    arch: str
    includes: tuple[str, ...]  # of the device ABI
    strict: bool = False  # inconclusive audits are errors


@dataclass(frozen=True)
class ObjectRequest:
    """One source that becomes one fatbin: the device runtime, the glue."""

    label: str
    source: str
    includes: tuple[str, ...]
    defines: tuple[str, ...]
    arch: str
    out: str
    declared: tuple[str, ...]
    flags: tuple[str, ...] = ()
    generated: bool = False  # by the linker: its headers are known and not checked


def compile_component(request: CompileRequest, toolkit: Toolkit, inputs: Iterable[str]) -> str:
    """Write object, shadow and record of a variant; return the compiler's warnings.

    inputs: every file that the build tracks for it.  A header that the compiler read but that is
    not among them is an error, and no file is written.
    """
    from pipelink_rules.actions.component import compile_code

    return compile_code(
        request.variant(),
        request.sources,
        request.includes,
        request.copts,
        request.defines,
        request.arch,
        toolkit,
        request.out_dir,
        (*request.sources, *request.declared),
        inspect=_inspect(request.label, request.declared, inputs, toolkit, request.out_dir),
        strict=request.strict,
    ).warnings


def write_header(variant: Variant, out: str) -> None:
    """Write the header that a component's source includes."""
    from pipelink_rules.contract.header import emit_header

    write_text(out, emit_header(variant))


def compile_probe_kernel(request: CompileRequest, toolkit: Toolkit) -> None:
    """Compile the kernel that the register probe links."""
    from pipelink_rules.actions.component import compile_probe

    compile_probe(request.variant(), request.includes, request.arch, toolkit, request.out_dir)


def probe_component(request: CompileRequest, runtime: str, toolkit: Toolkit) -> None:
    """Write interface and sidecar of a variant with the measured needs of its object.

    runtime: the release runtime for the target and the flags of the variant.
    """
    from pipelink_rules.actions.component import probe_variant

    probe_variant(request.variant(), request.arch, toolkit, request.out_dir, runtime)


def compile_source(request: ObjectRequest, toolkit: Toolkit, inputs: Iterable[str]) -> None:
    """Compile one source to a fatbin and its table of weak symbols; its headers are checked too."""
    from pipelink_rules.compile.object import compile_object

    compile_object(
        request.source,
        request.out,
        request.arch,
        toolkit,
        includes=request.includes,
        defines=request.defines,
        flags=request.flags,
        name=request.label,
        inspect=None
        if request.generated
        else _inspect(request.label, request.declared, inputs, toolkit),
    )


def _inspect(
    label: str,
    declared: Iterable[str],
    inputs: Iterable[str],
    toolkit: Toolkit,
    folder: str = "",
) -> Callable[[str, Path], None]:
    """Return the check of the dependency file.  folder: generated files."""
    allowed = set(inputs)

    def inspect(source: str, depfile: Path) -> None:
        system = (*toolkit.includes, *([folder] if folder else []))
        require_declared(label, source, depfile, (source, *allowed), system, declared)

    return inspect


def finished_files(sidecar: str) -> tuple[str, ...]:
    """Return the files of a prebuilt variant: the sidecar, and object and shadow beside it."""
    path = Path(sidecar)
    stem = path.name.removesuffix(".contract.yaml")
    return tuple(str(path.with_name(stem + suffix)) for suffix in _FINISHED)


def unpack_prebuilt(request: PrebuiltRequest, toolkit: Toolkit) -> str:
    """Write object, shadow and record of a variant from prebuilt ones; return warnings.

    The warnings state which audits are inconclusive.  Raise PL0904 if an object is missing, differs
    from its sidecar, or was built for another device ABI, and every error that the compilation of a
    component raises.
    """
    from pipelink_rules.actions.component import ObjectRecord, audit_object
    from pipelink_rules.contract.header import digest_of
    from pipelink_rules.contract.sidecar import load_sidecar

    sidecar, out_dir = request.sidecar, request.out_dir
    variant, build = load_sidecar(sidecar)
    stem = variant.contract.component
    recorded = dict(build.objects)
    for name in finished_files(sidecar)[1:]:
        path = Path(name)
        found = sha256(path) if path.is_file() else "no such file"
        if found != recorded.get(path.name, "not in the sidecar"):
            raise _mismatch(sidecar, name, f"sha256 {recorded.get(path.name)}", f"sha256 {found}")
    digest = digest_of(variant, variant.flags)
    if digest != variant.digest:
        raise _mismatch(sidecar, sidecar, f"variant {digest}", f"variant {variant.digest}")
    warnings = audit_object(
        variant,
        Path(sidecar).with_name(f"{stem}.fatbin"),
        request.arch,
        toolkit,
        out_dir,
        request.includes,
        strict=request.strict,
    )
    for suffix in _FINISHED[1:]:
        name = f"{stem}{suffix}"
        write_bytes(Path(out_dir, name), Path(sidecar).with_name(name).read_bytes())
    record = ObjectRecord(
        toolkit=build.toolkit,
        fingerprint=build.fingerprint,
        command=build.command,
        objects=build.objects,
        weak=build.weak,
        codegen=build.codegen,
        warnings=warnings,
    )
    write_json(Path(out_dir, f"{stem}.object.json"), record)
    return warnings


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
