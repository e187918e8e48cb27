"""Links with nvlink: the default."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipelink_rules.compile.command_lines import nvlink_argv
from pipelink_rules.compile.compiler_errors import run
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.atomic import staged
from pipelink_rules.link.linker_log import LinkLog, failure, read_log
from pipelink_rules.toolkit.toolkit import Toolkit


def nvlink(
    objects: Sequence[str],
    arch: str,
    toolkit: Toolkit,
    out: str | Path,
    name: str,
    options: Iterable[str] = (),
) -> LinkLog:
    """Links objects to `out`, a cubin; PL12xx where nvlink refuses."""
    backend = f"nvlink {toolkit.version}"
    with staged(out) as temporary:
        argv = nvlink_argv(toolkit, arch, objects, str(temporary), options=options)
        shown = tuple(part if part != str(temporary) else str(out) for part in argv)
        start = time.perf_counter()
        output = run(argv, toolkit)
        seconds = time.perf_counter() - start
        if not output.ok:
            raise PipelinkError(failure(output.text, name, backend, shown))
    return read_log(output.text, backend, shown, seconds)
