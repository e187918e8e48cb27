"""The step that proves the link: both twins, compared with the kernel that was linked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.model.program import Program
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.toolkit import Toolkit

if TYPE_CHECKING:
    from pipelink_rules.link.twin import TwinReport


@dataclass(frozen=True)
class TwinUnit:
    """One variant and what its object was compiled from; paths relative to the top."""

    variant: Variant
    sources: tuple[str, ...]
    includes: tuple[str, ...]  # the first is the folder of its generated header
    defines: tuple[str, ...] = ()


@dataclass(frozen=True)
class TwinRequest:
    """The linked kernel and everything it was made of.  Paths are relative to the top."""

    units: tuple[TwinUnit, ...]
    runtime: tuple[str, ...]  # sources
    runtime_includes: tuple[str, ...]
    glue: str
    variants: str  # folder above the variants' own folders
    program: str
    placement: str
    audit: str
    cubin: str
    arch: str
    backend: str
    build: str
    lto_cubin: str
    native_cubin: str
    out: str


def build_twins(request: TwinRequest, toolkit: Toolkit) -> TwinReport:
    """`<name>.twin.json` and the twins' cubins; PL0928 where the LTO twin is another kernel."""
    from pipelink_rules.link import twin

    name = read_json(request.program, Program).name
    units = [
        twin.TwinUnit(u.variant, u.includes[0], u.sources, u.includes[1:], u.defines)
        for u in request.units
    ]
    flags = request.units[0].variant.flags if request.units else ()
    logs = twin.build_twins(
        name,
        units,
        request.runtime,
        request.glue,
        (*request.runtime_includes, request.variants),
        request.arch,
        toolkit,
        request.backend,
        request.lto_cubin,
        request.native_cubin,
        flags=flags,
    )
    report = twin.compare_twins(
        name,
        (request.cubin, None),
        (request.lto_cubin, logs[0]),
        (request.native_cubin, logs[1]),
        toolkit,
    )
    write_json(request.out, report)
    if not report.lto_identical:
        Path(request.out).unlink(missing_ok=True)
        raise PipelinkError(
            Diagnostic(
                "PL0928",
                f"the linked `{name}` is not its LTO twin: {report.lto_difference}",
                (Label(Span(request.glue)),),
                expected=f"the machine code of {request.lto_cubin}",
                found=f"other machine code in {request.cubin}",
                notes=("a component changes how another one is compiled, or is not inlined",),
                helps=("compare with `pipelink diff`, and report the case",),
                subject=name,
            )
        )
    return report
