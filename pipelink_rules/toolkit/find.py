"""Search for the CUDA toolkit: the first candidate that passes the self-test, with a cache.

cuda-pathfinder cannot replace this: it returns one path for each tool, follows CUDA_HOME, and
reports neither the other candidates nor the reason of a rejection.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any

from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.files.atomic import write_text
from pipelink_rules.toolkit.layout import (
    Incomplete,
    Layout,
    fingerprint_of,
    layout_of,
    root_of_nvcc,
    shim_nvvm,
    stat_key,
)
from pipelink_rules.toolkit.process import run_tool
from pipelink_rules.toolkit.self_test import probe, probe_nvjitlink, tool_environment
from pipelink_rules.toolkit.toolkit import Toolkit, ToolkitRejected

# Of a toolkit and of its layout; "" where it has none.
_PATHS = (
    *("nvcc", "ptxas", "nvlink", "cicc", "cuobjdump", "nvdisasm", "nvjitlink"),
    *("libraries", "libnvvm", "host_compiler"),
)
_FORMAT = "pipelink/probe/2"  # of probe.json: increment the version when the self-test changes


@dataclass(frozen=True)
class Candidate:
    """A folder that may be a toolkit, and its origin."""

    source: str
    root: Path


def candidates(environ: Mapping[str, str]) -> Iterator[Candidate]:
    """Yield the candidates in order, each once; CUDA_HOME is ignored."""
    done: set[Path] = set()
    for candidate in _all_candidates(environ):
        real = candidate.root.resolve()
        if real not in done:
            done.add(real)
            yield candidate


def _all_candidates(environ: Mapping[str, str]) -> Iterator[Candidate]:
    chosen = environ.get("PIPELINK_CUDA", "")
    if chosen:
        yield Candidate("$PIPELINK_CUDA", Path(chosen).absolute())
    for entry in sys.path:
        for root in sorted(Path(entry or ".").glob("nvidia/cu[0-9]*"), reverse=True):
            if (root / "bin/nvcc").exists():
                yield Candidate("wheels of this python", root.absolute())
    nvcc = which("nvcc", path=environ.get("PATH", ""))
    if nvcc:
        root_found = root_of_nvcc(Path(nvcc), _dryrun(nvcc, environ))
        if root_found:
            yield Candidate("nvcc on PATH", root_found.absolute())
    for root in system_roots():
        yield Candidate("/usr/local", root)


def system_roots() -> list[Path]:
    """Return the toolkits in the installers' default folder, the newest first."""
    found = sorted(Path("/usr/local").glob("cuda*"), key=_newest_first, reverse=True)
    return [root for root in found if (root / "bin/nvcc").exists()]


def _newest_first(root: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", root.name)) or (999,)


def _dryrun(nvcc: str, environ: Mapping[str, str]) -> str:
    argv = [nvcc, "-dryrun", "-E", "-x", "cu", os.devnull]
    return run_tool(argv, {"PATH": environ.get("PATH", "/usr/bin:/bin")}, timeout=30).text


def find_toolkit(build_dir: str | Path, environ: Mapping[str, str] | None = None) -> Toolkit:
    """Return the toolkit of this build.

    Candidates: $PIPELINK_CUDA, the pip wheels of this interpreter, nvcc on PATH, /usr/local/cuda*.
    If $PIPELINK_CUDA is set and rejected, no other candidate is tried.
    Raise PL1201 with the reason of every candidate if none passes.
    """
    environ = os.environ if environ is None else environ
    refused: list[ToolkitRejected] = []
    for candidate in candidates(environ):
        found = probe_candidate(candidate, build_dir, environ)
        if isinstance(found, Toolkit):
            return replace(found, refused=tuple(refused))
        refused.append(found)
        if candidate.source == "$PIPELINK_CUDA":
            break
    raise error(
        "PL1201",
        "no usable CUDA toolkit was found",
        expected="a CUDA 13 toolkit whose nvlink (13.2 or later) links two objects with setmaxnreg",
        found="; ".join(f"{item.root}: rejected" for item in refused) or "no toolkit",
        notes=tuple(f"{one.source}: {one.root} {one.version}: {one.reason}" for one in refused),
        suggestions=(
            "python -m pip install 'pipelink[toolkit]'",
            "or set PIPELINK_CUDA to the folder of a toolkit",
            "or run `pipelink doctor`, which shows every candidate",
        ),
        subject="toolkit",
    )


def probe_candidate(
    candidate: Candidate, build_dir: str | Path, environ: Mapping[str, str]
) -> Toolkit | ToolkitRejected:
    """Test one candidate; an unchanged one is read from `.toolkit/probe.json`."""
    folder = Path(build_dir).absolute() / ".toolkit"
    try:
        layout = layout_of(candidate.root, environ)
    except Incomplete as missing:
        return ToolkitRejected(candidate.source, str(candidate.root), "", str(missing))
    key = stat_key(layout)
    root, source = str(candidate.root), candidate.source
    known = _cached(folder, root, key, lambda: _probe_layout(layout, folder, environ))
    version, reason = str(known["version"]), str(known["reason"])
    if reason:
        return ToolkitRejected(source, root, version, reason)
    return Toolkit(
        root=root,
        source=source,
        version=version,
        fingerprint=str(known["fingerprint"]),
        **{name: str(getattr(layout, name) or "") for name in _PATHS},
        nvvmpath=str(shim_nvvm(layout, folder)),
        includes=tuple(map(str, layout.includes)),
        archs=tuple(known["archs"]),
        refused=(),
    )


def _probe_layout(layout: Layout, folder: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return version, reason of a rejection ("" = accepted), fingerprint and architectures."""
    environment = tool_environment(layout, environ)

    def output(*argv: object) -> str:
        return run_tool([str(part) for part in argv], environment, timeout=60).text

    tools = {"nvcc": layout.nvcc, "nvlink": layout.nvlink, "ptxas": layout.ptxas}
    versions = {name: _version(output(tool, "--version")) for name, tool in tools.items()}
    versions["g++"] = output(layout.host_compiler, "-dumpfullversion")
    version, fingerprint, archs = versions["nvcc"], "", []
    reason = "its nvcc does not run"
    if version:
        reason = probe(layout, shim_nvvm(layout, folder), folder, environ)
    if not reason:
        archs = sorted(output(layout.nvcc, "--list-gpu-arch").split())
        fingerprint = fingerprint_of(layout, (f"{k} {v}" for k, v in sorted(versions.items())))
    return {"version": version, "reason": reason, "fingerprint": fingerprint, "archs": archs}


def _version(text: str) -> str:
    found = re.search(r"\bV(\d+(?:\.\d+)+)", text)
    return found[1] if found else ""


def nvjitlink_reason(toolkit: Toolkit, build_dir: str | Path, environ: Mapping[str, str]) -> str:
    """Return why the nvJitLink backend of this toolkit fails, '' if it works; cached as well."""
    folder = Path(build_dir).absolute() / ".toolkit"
    layout = layout_of(Path(toolkit.root), environ)
    name = f"nvjitlink {toolkit.root} {sys.executable}"
    test = partial(probe_nvjitlink, layout, folder, environ)
    return str(_cached(folder, name, stat_key(layout), lambda: {"reason": test()})["reason"])


def _read(folder: Path) -> dict[str, dict[str, Any]]:
    try:
        data = json.loads((folder / "probe.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(data, dict) or data.get("format") != _FORMAT:
        return {}
    found = data.get("candidates", {})
    return found if isinstance(found, dict) else {}


def _cached(
    folder: Path, name: str, key: str, test: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """Return the result of a test, which runs unless probe.json has it under the same key."""
    known = _read(folder).get(name)
    if not isinstance(known, dict) or known.get("key") != key:
        known = {"key": key, **test()}
        # Two builds may write simultaneously: the last one wins, the other only tests once more.
        data = {"format": _FORMAT, "candidates": {**_read(folder), name: known}}
        write_text(folder / "probe.json", json.dumps(data, indent=2, sort_keys=True) + "\n")
    return known
