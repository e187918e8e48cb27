"""Link stage: objects and sidecars -> cubin, with checks before and after the linker runs.

The linker is nvlink, the default, or libnvJitLink in a child process.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError, error
from pipelink_rules.diagnostics.wording import list_of, similar_name_help
from pipelink_rules.files.atomic import staged
from pipelink_rules.link.elf import Elf
from pipelink_rules.link.link_inputs import check_objects, read_objects
from pipelink_rules.link.linker_log import LinkLog, link_failure, read_log
from pipelink_rules.toolkit import process
from pipelink_rules.toolkit.command_lines import nvlink_argv
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
        words = {"library": toolkit.nvjitlink, "options": chosen}
        words |= {"objects": list(objects), "output": str(temporary)}
        job.write_text(json.dumps(words), encoding="utf-8")
        argv = process.child_argv("pipelink_rules.toolkit.nvjitlink_child", str(job))
        shown = ("nvJitLink", *chosen, *objects, "-o", str(out))
        start = time.perf_counter()
        environment = process.child_environment(toolkit.environment(os.environ))
        output = process.run_tool(argv, environment, timeout=process.TIMEOUT)
        seconds = time.perf_counter() - start
        process.check_alive(output)
        if output.code == _UNUSABLE:
            raise _unavailable(process.quote(output.text))
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
        output = process.run(argv, toolkit)
        seconds = time.perf_counter() - start
        if not output.ok:
            raise PipelinkError(link_failure(output.text, name, backend, shown))
    return read_log(output.text, backend, shown, seconds)


BACKENDS: Mapping[str, Callable[..., LinkLog]] = {"nvlink": nvlink, "nvjitlink": nvjitlink}


def link(
    objects: Sequence[str | Path],
    entry: str,
    arch: str,
    toolkit: Toolkit,
    backend: str,
    out: str | Path,
    *,
    sidecars: Iterable[str | Path] = (),
    options: Iterable[str] = (),
) -> LinkLog:
    """Link objects to the cubin `out`, whose kernel is `entry`.

    The order of `objects` does not matter.  sidecars: of the objects that have one; the others may
    have an adjacent `.weak.json`.  options: for the linker.  Raises PL0903, PL0904, PL1202,
    PL1203, PL1207, PL1208 before, PL1209 to PL1213 after the link, and leaves no file then.
    """
    if backend not in BACKENDS:
        raise error(
            "PL1214",
            f"unknown linker `{backend}`",
            expected=" or ".join(BACKENDS),
            found=backend,
            suggestions=similar_name_help(backend, BACKENDS),
            subject=backend,
        )
    known = read_objects(objects, sidecars, toolkit)
    refused = check_objects(known, arch, toolkit)
    if refused:
        raise PipelinkError(refused)
    paths = [one.path for one in known]
    log = link_unchecked(paths, entry, arch, toolkit, backend, out, options=options)
    verdicts = (verdict for one in known if one.build for verdict in one.build.verdicts)
    return replace(log, verdicts=tuple(verdicts))


def link_unchecked(
    objects: Sequence[str],
    entry: str,
    arch: str,
    toolkit: Toolkit,
    backend: str,
    out: str | Path,
    *,
    options: Iterable[str] = (),
) -> LinkLog:
    """Link objects in the given order and check the result."""
    log = BACKENDS[backend](objects, arch, toolkit, out, entry, options)
    refused = tuple(read_back(Path(out), entry, arch, log))
    if refused:
        Path(out).unlink(missing_ok=True)
        raise PipelinkError(refused)
    return log


def read_back(cubin: Path, entry: str, arch: str, log: LinkLog) -> Iterable[Diagnostic]:
    """Yield the errors of a link that the linker reports as successful."""
    if log.partial:
        yield Diagnostic(
            "PL1212",
            f"{list_of(Path(name).name for name in log.partial)} was linked as machine code",
            expected="link-time code in every object",
            found="partial link-time optimization",
            at_run_time="calls into it are not inlined: separate registers, stack and barriers",
            suggestions=(f"build it for {arch} with this toolkit",),
            subject=entry,
        )
    kernels = Elf(cubin.read_bytes()).kernels()
    if entry not in kernels:
        yield Diagnostic(
            "PL1213",
            f"the link succeeded, but the cubin has no kernel `{entry}`",
            expected=entry,
            found=", ".join(kernels) or "no kernel at all",
            suggestions=(f"build every object for {arch}", "or add the glue to the objects"),
            subject=entry,
        )
