"""compile_commands.json for editors: one entry a source, for the first variant that uses it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pipelink_rules.actions import paths
from pipelink_rules.files.atomic import write_text
from pipelink_rules.scons.session import BUILD, Session

if TYPE_CHECKING:
    from pipelink_rules.scons.graph import Graph
    from pipelink_rules.scons.resolve import ResolvedMegakernel, Resolver

FILE = "compile_commands.json"


def write_compile_commands(
    session: Session, graph: Graph, resolved: dict[str, ResolvedMegakernel], resolver: Resolver
) -> None:
    """Writes the file at the top, where it differs from what is there."""
    if not resolved:
        return
    from pipelink_rules.toolkit.command_lines import Unit, fatbin_argv

    entries: dict[str, dict[str, Any]] = {}
    for item in resolved.values():
        for instance in item.asked.instances:
            rule, variant = item.rules[instance.name], instance.variant
            arch = item.asked.archs[0]
            files = paths.named_files(arch, variant.name, variant.component)
            headers = graph.headers(rule.label)
            for node in rule.srcs:
                if str(node) in entries:
                    continue
                unit = Unit(
                    source=str(node),
                    arch=arch,
                    includes=(f"{BUILD}/{files.folder}", *headers.folders),
                    defines=(*headers.defines, *rule.local_defines, "__CUDACC_RDC__"),
                    flags=variant.flags,
                    options=resolver.options(rule).other,
                )
                argv = fatbin_argv(session.toolkit, unit, f"{BUILD}/{files.fatbin}")
                entries[str(node)] = {
                    "arguments": argv,
                    "directory": str(session.top),
                    "file": str(node),
                    "output": f"{BUILD}/{files.fatbin}",
                }
    text = json.dumps([entries[key] for key in sorted(entries)], indent=1) + "\n"
    path = session.top / FILE
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
