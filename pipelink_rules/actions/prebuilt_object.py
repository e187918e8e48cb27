"""Does an object without a source keep its contract?  Its own code is read, not its shadow.

The linker gives the code of an object as PTX: what a shadow says of it need not be true.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pipelink_rules.actions.component import audit_summaries, runtime_operations
from pipelink_rules.audit.audit_role import audit_roles
from pipelink_rules.compile.command_lines import nvlink_argv
from pipelink_rules.compile.compiler_errors import command_note, quote, run
from pipelink_rules.compile.object import work_folder
from pipelink_rules.compile.ptx import read_ptx
from pipelink_rules.compile.ptx_scan import scan
from pipelink_rules.compile.source_search import Sources
from pipelink_rules.diagnostics.diagnostic import Label, PipelinkError, error
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.toolkit import Toolkit


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
    """Refuses an object that breaks a rule or its contract, like one that is being compiled.

    The result says what could not be audited, '' where nothing.  folder: for temporary files.
    """
    module = read_ptx(code_of_object(path, arch, toolkit, folder))
    findings = scan(module, variant, Sources({}), runtime_operations(includes))
    if findings:
        raise PipelinkError(findings)
    audited = audit_roles(module, variant, strict=strict)
    if any(item.severity == "error" for item in audited):
        raise PipelinkError(audited)
    return audit_summaries(audited)


def code_of_object(path: str | Path, arch: str, toolkit: Toolkit, folder: str | Path) -> str:
    """The PTX of one object, linked with nothing; PL0904 where there is none in it."""
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
                helps=("deliver object and sidecar of one build, for this target",),
                subject=str(path),
            )
        return out.read_text(encoding="utf-8", errors="replace")
