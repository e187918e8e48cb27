"""Actions after the glue: link and audit, manifest and map, twins, the summary of a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelink_rules.actions import paths
from pipelink_rules.actions.stage_actions import allowed_findings
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError, error
from pipelink_rules.files.atomic import write_text
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.model.linked_kernel import Audit, TwinReport
from pipelink_rules.model.program import MegakernelSpec, Program
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.toolkit import Toolkit

if TYPE_CHECKING:
    from pipelink_rules.report.diff import Link


@dataclass(frozen=True)
class LinkRequest:
    """A link.  Paths are relative to the top."""

    objects: tuple[str, ...]
    sidecars: tuple[str, ...]
    program: str
    placement: str
    arch: str
    backend: str
    cubin: str
    audit: str
    times: str  # seconds of the link, for the table; no output: it differs from run to run


@dataclass(frozen=True)
class LinkTimes:
    """`<name>.times.json`: how long the last link on this machine took."""

    FORMATS: ClassVar[tuple[str, ...]] = ("times",)

    link_seconds: float


def link_image(request: LinkRequest, toolkit: Toolkit, spec: MegakernelSpec | None = None) -> Audit:
    """Write the cubin and its audit; remove both if the audit finds a difference.

    spec: the declaration with its source locations; the program of a build has none.
    """
    from pipelink_rules.link.audit_kernel import audit
    from pipelink_rules.link.link import link
    from pipelink_rules.place.problem import read_placement

    program = read_json(request.program, Program)
    if spec is not None:
        program = replace(program, spec=spec)
    placement = read_placement(request.placement, program)
    log = link(
        request.objects,
        program.name,
        request.arch,
        toolkit,
        request.backend,
        request.cubin,
        sidecars=request.sidecars,
    )
    try:
        found: Audit = audit(request.cubin, program, placement, log, toolkit)
        write_json(request.audit, found)
    except BaseException:
        Path(request.cubin).unlink(missing_ok=True)
        raise
    write_json(request.times, LinkTimes(round(log.seconds, 3)))
    return found


@dataclass(frozen=True)
class ReportRequest:
    """The reports about a link and their files.  Paths are relative to the top."""

    program: str
    check: str
    placement: str
    audit: str
    cubin: str
    runtime: str  # the build of the device runtime that was linked, whatever was declared
    manifest: str
    map: str
    page: str


def write_reports(request: ReportRequest) -> None:
    """Write `<name>.manifest.json` for the launcher, `<name>.map.txt` and `<name>.html`."""
    from pipelink_rules.place.problem import read_placement
    from pipelink_rules.report.html_map import render_page
    from pipelink_rules.report.manifest import manifest_of
    from pipelink_rules.report.map import render_map

    program = replace(read_json(request.program, Program), runtime=request.runtime)
    placement, audit = read_placement(request.placement, program), read_json(request.audit, Audit)
    allowed = allowed_findings(program, placement, request.check)
    write_json(request.manifest, manifest_of(program, placement, audit, request.cubin, allowed))
    write_text(request.map, render_map(program, placement, audit, allowed))
    write_text(request.page, render_page(program, placement, audit, allowed))


def read_link(folder: str | Path) -> Link:
    """Return the link in a build folder; raise PL0010 if it contains no placed megakernel."""
    from pipelink_rules.place.problem import read_placement
    from pipelink_rules.report.diff import Link

    place = Path(folder)
    found = sorted(place.glob("*.placement.json"))
    if len(found) != 1:
        raise error(
            "PL0010",
            f"{place} is not the folder of one megakernel",
            Span(str(place)),
            expected="build/<target>/megakernels/<name> with one *.placement.json",
            found=", ".join(item.name for item in found) or "no *.placement.json",
            suggestions=(f"run `scons megakernels/{place.name}` first",),
        )
    stem = found[0].name.removesuffix(".placement.json")
    program = read_json(place / f"{stem}.program.json", Program)
    placement = read_placement(found[0], program)
    audit = place / f"{stem}.audit.json"
    return Link(
        program,
        placement,
        read_json(audit, Audit) if audit.exists() else None,
        allowed_findings(program, placement, place / f"{stem}.check.json"),
    )


@dataclass(frozen=True)
class TwinUnit:
    """One variant and what its object was compiled from; paths relative to the top."""

    variant: Variant
    sources: tuple[str, ...]
    includes: tuple[str, ...]  # the first is the folder of its generated header
    defines: tuple[str, ...] = ()


@dataclass(frozen=True)
class TwinRequest:
    """The linked kernel and all its inputs.  Paths are relative to the top."""

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
    """Write `<name>.twin.json` and the twins' cubins; raise PL0928 if the LTO twin differs."""
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
                f"the machine code of `{name}` differs from its LTO twin: {report.lto_difference}",
                (Label(Span(request.glue)),),
                expected=f"the machine code of {request.lto_cubin}",
                found=f"different machine code in {request.cubin}",
                notes=("a component changes how another is compiled, or is not inlined",),
                suggestions=("compare both with `pipelink diff` and report the case",),
                subject=name,
            )
        )
    return report


def summary_text(build: str, names: Sequence[tuple[str, str]]) -> str:
    """Return the summary table; "" without a built megakernel.  names: (target, megakernel)."""
    folders = [(arch, name, Path(build, arch, "megakernels", name)) for arch, name in names]
    folders = [item for item in folders if (item[2] / f"{item[1]}.manifest.json").is_file()]
    if not folders:
        return ""
    times = {(arch, name): link_seconds(build, arch, name) for arch, name, _ in folders}
    from pipelink_rules.report.summary_table import table_of_folders

    rows = [(str(folder), arch, name, times[arch, name]) for arch, name, folder in folders]
    return str(table_of_folders(rows))


def link_seconds(build: str, arch: str, name: str) -> float | None:
    """Return the seconds of the last link on this machine; None if it came from the cache."""
    try:
        return read_json(paths.times_file(build, arch, name), LinkTimes).link_seconds
    except PipelinkError:
        return None
