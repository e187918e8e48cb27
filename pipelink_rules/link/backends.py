"""Linker backends: nvlink, the default, and libnvJitLink in a child process."""

import json
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import PipelinkError, error
from pipelink_rules.files.atomic import staged
from pipelink_rules.link.linker_log import LinkLog, link_failure, read_log
from pipelink_rules.toolkit.command_lines import nvlink_argv
from pipelink_rules.toolkit.process import (
    TIMEOUT,
    check_alive,
    child_argv,
    child_environment,
    quote,
    run,
    run_tool,
)
from pipelink_rules.toolkit.toolkit import Toolkit

_UNUSABLE = 3  # exit status of the child: no library, no binding


def nvjitlink(
    objects: Sequence[str],
    arch: str,
    toolkit: Toolkit,
    out: str | Path,
    name: str,
    options: Iterable[str] = (),
) -> LinkLog:
    """Link objects to the cubin `out`; PL1214 if the library is unusable, PL12xx if it fails."""
    backend = f"nvJitLink {toolkit.version}"
    if not toolkit.nvjitlink:
        raise _unavailable("the toolkit has no libnvJitLink")
    chosen = [f"-arch={arch}", "-lto", "-verbose", "-Xptxas=-v", *options]
    with staged(out) as temporary, tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.json"
        job.write_text(
            json.dumps(
                {
                    "library": toolkit.nvjitlink,
                    "options": chosen,
                    "objects": list(objects),
                    "output": str(temporary),
                }
            ),
            encoding="utf-8",
        )
        argv = child_argv("pipelink_rules.toolkit.nvjitlink_child", str(job))
        shown = ("nvJitLink", *chosen, *objects, "-o", str(out))
        start = time.perf_counter()
        environment = child_environment(toolkit.environment(os.environ))
        output = run_tool(argv, environment, timeout=TIMEOUT)
        seconds = time.perf_counter() - start
        check_alive(output)
        if output.code == _UNUSABLE:
            raise _unavailable(quote(output.text))
        if not output.ok:
            raise PipelinkError(link_failure(output.text, name, backend, shown))
    return read_log(output.text, backend, shown, seconds)


def _unavailable(reason: str) -> PipelinkError:
    return error(
        "PL1214",
        "the nvJitLink backend is not available",
        expected="libnvJitLink of the toolkit and the cuda.bindings package",
        found=reason,
        suggestions=(
            "python -m pip install 'pipelink[toolkit]'",
            "or link with the default backend (linker=nvlink)",
        ),
        subject="nvjitlink",
    )


def nvlink(
    objects: Sequence[str],
    arch: str,
    toolkit: Toolkit,
    out: str | Path,
    name: str,
    options: Iterable[str] = (),
) -> LinkLog:
    """Link objects to the cubin `out`; PL12xx if nvlink fails."""
    backend = f"nvlink {toolkit.version}"
    with staged(out) as temporary:
        argv = nvlink_argv(toolkit, arch, objects, str(temporary), options=options)
        shown = tuple(part if part != str(temporary) else str(out) for part in argv)
        start = time.perf_counter()
        output = run(argv, toolkit)
        seconds = time.perf_counter() - start
        if not output.ok:
            raise PipelinkError(link_failure(output.text, name, backend, shown))
    return read_log(output.text, backend, shown, seconds)
