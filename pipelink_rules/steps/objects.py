"""The steps that make objects: components, the device runtime and the glue compiled; prebuilt ones taken over."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipelink_rules.model.contract import Variant
from pipelink_rules.steps.headers import require_declared
from pipelink_rules.toolkit.toolkit import Toolkit


@dataclass(frozen=True)
class CompileRequest:
    """A variant to compile.  Paths are relative to the folder of the build's top."""

    label: str
    variant: Variant
    sources: tuple[str, ...]
    includes: tuple[str, ...]
    copts: tuple[str, ...]  # without code-generation flags: those are the variant's
    defines: tuple[str, ...]
    arch: str
    out_dir: str
    declared: tuple[str, ...]  # headers of the component and of what it depends on


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


def compile_component(request: CompileRequest, toolkit: Toolkit, inputs: Iterable[str]) -> None:
    """Object, interface, sidecar, shadow and header of a variant.

    inputs: every file the build watches for it; a header that the compiler read and that is not
    among them is an error, and then nothing is written.
    """
    raise NotImplementedError


def compile_object(request: ObjectRequest, toolkit: Toolkit, inputs: Iterable[str]) -> None:
    """The fatbin of one source, with the same check of its headers."""
    from pipelink_rules.compile.nvcc import Unit, fatbin_argv
    from pipelink_rules.compile.run import Subject, compile_checked
    from pipelink_rules.files.atomic import staged

    unit = Unit(request.source, request.arch, request.includes, request.defines, request.flags)
    with tempfile.TemporaryDirectory() as folder, staged(request.out) as out:
        depfile = str(Path(folder, "depfile.d"))
        argv = fatbin_argv(toolkit, unit, str(out), depfile)
        compile_checked(argv, toolkit, Subject(request.label))
        require_declared(
            request.label,
            request.source,
            depfile,
            (request.source, *inputs),
            toolkit.includes,
            request.declared,
        )


def finished_files(sidecar: str) -> tuple[str, ...]:
    """The files of a prebuilt variant: the sidecar and what lies beside it under its name."""
    path = Path(sidecar)
    stem = path.name.removesuffix(".contract.yaml")
    suffixes = (".contract.yaml", ".fatbin", ".shadow.ptx")
    return tuple(str(path.with_name(stem + suffix)) for suffix in suffixes)


def unpack_prebuilt(sidecar: str, arch: str, out_dir: str, toolkit: Toolkit) -> None:
    """The files of a variant from finished ones; digests are checked, the header is generated."""
    raise NotImplementedError


_ = shutil
