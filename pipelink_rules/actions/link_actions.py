"""Actions after the glue: link and audit, manifest and map, twins, the summary of a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelink_rules.actions import paths
from pipelink_rules.actions.stage_actions import allowed_findings
from pipelink_rules.diagnostics.diagnostic import PipelinkError, error
from pipelink_rules.files.atomic import write_text
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.model.linked_kernel import Audit
from pipelink_rules.model.program import MegakernelSpec, Program
from pipelink_rules.model.source_span import Span
from pipelink_rules.toolkit.toolkit import Toolkit

if TYPE_CHECKING:
    from pipelink_rules.link.twin import TwinUnit
    from pipelink_rules.report.diff import Link


@dataclass(frozen=True)
class LinkTimes:
    """`<name>.times.json`: how long the last link on this machine took."""

    FORMATS: ClassVar[tuple[str, ...]] = ("times",)

    link_seconds: float


def link_image(
    *,
    objects: Sequence[str],
    sidecars: Sequence[str],
    program: str,
    placement: str,
    backend: str,
    stem: str,
    times: str,
    toolkit: Toolkit,
    spec: MegakernelSpec | None = None,
) -> None:
    """Write `<stem>.cubin` and `<stem>.audit.json`; remove both if the audit finds a difference.

    times: the file for the seconds of the link, for the table; no output of the build, because they
    differ from run to run.  spec: the declaration with its source locations; the program of a build
    has none.
    """
    from pipelink_rules.link.audit_kernel import audit
    from pipelink_rules.link.link import link
    from pipelink_rules.place.problem import read_placement

    known = read_json(program, Program)
    if spec is not None:
        known = replace(known, spec=spec)
    placed = read_placement(placement, known)
    cubin = f"{stem}.cubin"
    log = link(objects, known.name, known.target, toolkit, backend, cubin, sidecars=sidecars)
    try:
        write_json(f"{stem}.audit.json", audit(cubin, known, placed, log, toolkit))
    except BaseException:
        Path(cubin).unlink(missing_ok=True)
        raise
    write_json(times, LinkTimes(round(log.seconds, 3)))


def write_reports(stem: str, runtime: str) -> None:
    """Write `<stem>.manifest.json` for the launcher, `<stem>.map.txt` and `<stem>.html`.

    runtime: the build of the device runtime that was linked, whatever was declared.
    """
    from pipelink_rules.place.problem import read_placement
    from pipelink_rules.report.html_map import render_page
    from pipelink_rules.report.manifest import manifest_of
    from pipelink_rules.report.map import render_map

    program = replace(read_json(f"{stem}.program.json", Program), runtime=runtime)
    placement = read_placement(f"{stem}.placement.json", program)
    audit = read_json(f"{stem}.audit.json", Audit)
    allowed = allowed_findings(program, placement, f"{stem}.check.json")
    manifest = manifest_of(program, placement, audit, f"{stem}.cubin", allowed)
    write_json(f"{stem}.manifest.json", manifest)
    write_text(f"{stem}.map.txt", render_map(program, placement, audit, allowed))
    write_text(f"{stem}.html", render_page(program, placement, audit, allowed))


def read_link(folder: str | Path) -> Link:
    """Return the link in a build folder; raise PL0010 if it contains no placed megakernel."""
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
    return link_of(place / found[0].name.removesuffix(".placement.json"))


def link_of(stem: Path) -> Link:
    """Return the link whose files begin with `stem`; without an audit nothing was linked."""
    from pipelink_rules.place.problem import read_placement
    from pipelink_rules.report.diff import Link

    program = read_json(f"{stem}.program.json", Program)
    placement = read_placement(f"{stem}.placement.json", program)
    audit = Path(f"{stem}.audit.json")
    found = read_json(audit, Audit) if audit.is_file() else None
    return Link(
        program, placement, found, allowed_findings(program, placement, f"{stem}.check.json")
    )


def build_twins(
    stem: str,
    units: Sequence[TwinUnit],
    runtime: Sequence[str],
    includes: Sequence[str],
    backend: str,
    toolkit: Toolkit,
) -> None:
    """Write `<stem>.twin.json` and the twins' cubins; raise PL0928 if the LTO twin differs.

    runtime: sources of the device runtime.  includes: folders for the runtime and the glue.
    """
    from pipelink_rules.link import twin

    program = read_json(f"{stem}.plan.json", Program)
    name, glue = program.name, f"{stem}.glue.cu"
    cubin, lto, native = f"{stem}.cubin", f"{stem}.lto_twin.cubin", f"{stem}.native_twin.cubin"
    logs = twin.build_twins(
        name,
        units,
        runtime,
        glue,
        includes,
        program.target,
        toolkit,
        backend,
        lto,
        native,
        flags=units[0].variant.flags if units else (),
    )
    report = twin.compare_twins(name, (cubin, None), (lto, logs[0]), (native, logs[1]), toolkit)
    out = Path(f"{stem}.twin.json")
    if not report.lto_identical:
        out.unlink(missing_ok=True)
        raise error(
            "PL0928",
            f"the machine code of `{name}` differs from its LTO twin: {report.lto_difference}",
            Span(glue),
            expected=f"the machine code of {lto}",
            found=f"different machine code in {cubin}",
            notes=("a component changes how another is compiled, or is not inlined",),
            suggestions=("compare both with `pipelink diff` and report the case",),
            subject=name,
        )
    write_json(out, report)


def summary_text(build: str, names: Sequence[tuple[str, str]]) -> str:
    """Return the summary table; "" without a built megakernel.  names: (target, megakernel)."""
    rows = []
    for arch, name in names:
        stem = Path(paths.megakernel_stem(build, arch, name))
        if stem.with_name(f"{name}.manifest.json").is_file():
            rows.append((str(stem.parent), arch, name, link_seconds(build, arch, name)))
    if not rows:
        return ""
    from pipelink_rules.report.summary_table import table_of_folders

    return str(table_of_folders(rows))


def link_seconds(build: str, arch: str, name: str) -> float | None:
    """Return the seconds of the last link on this machine; None if it came from the cache."""
    try:
        return read_json(paths.times_file(build, arch, name), LinkTimes).link_seconds
    except PipelinkError:
        return None
