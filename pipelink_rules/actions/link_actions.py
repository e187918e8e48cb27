"""The steps that make the result: link and audit, manifest and map."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from pipelink_rules.files.atomic import write_text
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.model.linked_kernel import Audit
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import MegakernelSpec, Program
from pipelink_rules.toolkit.toolkit import Toolkit


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


def link_image(request: LinkRequest, toolkit: Toolkit, spec: MegakernelSpec | None = None) -> Audit:
    """The cubin and what was found in it; neither is left where the audit finds a difference.

    spec: the declaration with its places, for findings; the program of a build has none.
    """
    from pipelink_rules.link.audit_kernel import audit
    from pipelink_rules.link.link import link

    program = read_json(request.program, Program)
    if spec is not None:
        program = replace(program, spec=spec)
    placement = read_json(request.placement, Placement)
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
    write_text(request.times, json.dumps({"link_seconds": round(log.seconds, 3)}) + "\n")
    return found


def write_reports(
    program: str,
    placement: str,
    audit: str,
    cubin: str,
    runtime: str,
    manifest: str,
    map_: str,
    page: str,
) -> None:
    """`<name>.manifest.json` for the launcher; `<name>.map.txt` and `<name>.html` for people.

    runtime: the build of the device runtime that was linked, whatever was declared.
    """
    from pipelink_rules.report.html_map import render_page
    from pipelink_rules.report.manifest import manifest_of
    from pipelink_rules.report.map import render_map

    noun = replace(read_json(program, Program), runtime=runtime)
    placed, found = read_json(placement, Placement), read_json(audit, Audit)
    write_json(manifest, manifest_of(noun, placed, found, cubin))
    write_text(map_, render_map(noun, placed, found))
    write_text(page, render_page(noun, placed, found))
