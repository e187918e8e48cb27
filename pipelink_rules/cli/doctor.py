"""`pipelink doctor`: usable toolkits, compiler and GPU, and why others were rejected."""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from pipelink_rules import __version__
from pipelink_rules.cli.command_io import report
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.toolkit.toolkit import Toolkit

_PACKAGES = ("scons", "z3-solver", "pyyaml", "filelock", "cuda-bindings")

Line = tuple[str, str]  # (what, about it)


def run_doctor(arguments: argparse.Namespace) -> int:
    """Print the report; return 0 if a megakernel can be built."""
    from pipelink_rules.toolkit.find import find_toolkit

    code = 0
    lines = [*_python(), *_compiler(), *_toolkits(arguments.build)]
    try:
        toolkit = find_toolkit(arguments.build)
        lines += _backends(toolkit, arguments.build)
    except PipelinkError as problem:
        code = report(problem.diagnostics, arguments)
    lines += _gpus()
    if arguments.diag == "text":
        width = max(len(name) for name, _ in lines)
        previous = ""
        for name, text in lines:
            print(f"{name if name != previous else '':{width}}  {text}")
            previous = name
    return code


def _python() -> Iterator[Line]:
    yield "pipelink", f"{__version__}, Python {platform.python_version()} ({sys.executable})"
    for name in _PACKAGES:
        try:
            yield "package", f"{name} {version(name)}"
        except PackageNotFoundError:
            yield "package", f"{name}: not installed"


def _compiler() -> Iterator[Line]:
    found = shutil.which("g++")
    if found is None:
        yield "g++", "not found: nvcc preprocesses with it (Debian: apt-get install g++)"
        return
    done = subprocess.run([found, "-dumpfullversion"], capture_output=True, text=True, check=False)
    yield "g++", f"{done.stdout.strip() or 'version unknown'} ({found})"


def _toolkits(build: str) -> Iterator[Line]:
    """Yield every candidate in the order of preference, with its self-test."""
    from pipelink_rules.toolkit.find import candidates, probe_candidate

    selected = False
    for candidate in candidates(os.environ):
        found = probe_candidate(candidate, build, os.environ)
        place = f"{found.source}: {found.root}"
        if isinstance(found, Toolkit):
            result = "usable, not selected" if selected else "selected"
            yield "toolkit", f"{found.version} {result} ({place})"
            selected = True
        else:
            yield "toolkit", f"{found.version or '?'} rejected ({place}): {found.reason}"
    if not selected:
        yield "toolkit", "none usable"


def _backends(toolkit: Toolkit, build: str) -> Iterator[Line]:
    from pipelink_rules.toolkit.find import nvjitlink_reason

    yield "linker", "nvlink: passes the self-test (default)"
    reason = nvjitlink_reason(toolkit, build, os.environ)
    yield "linker", f"nvjitlink: {f'rejected: {reason}' if reason else 'passes the self-test'}"
    for name in ("cuobjdump", "nvdisasm"):
        where = getattr(toolkit, name)
        yield "audit", f"{name}: {where or 'not found: the audit after linking requires it'}"


def _gpus() -> Iterator[Line]:
    from pipelink_rules.launch.driver import Driver
    from pipelink_rules.model.target import TARGETS

    try:
        driver = Driver()
        count = int(driver.call("cuDeviceGetCount"))
        number = int(driver.call("cuDriverGetVersion"))
    except PipelinkError as problem:
        item = problem.diagnostics[0]
        yield "GPU", f"none ({item.found or item.message}); required only to run"
        return
    yield "driver", f"CUDA {number // 1000}.{number % 1000 // 10}"
    for ordinal in range(count):
        device = driver.device(ordinal)
        major, minor = device.capability
        fits = [name for name, target in TARGETS.items() if target.runs_on == device.capability]
        yield (
            "GPU",
            f"{ordinal}: {device.name}, compute capability {major}.{minor}, {device.sms} SMs; "
            f"runs {', '.join(fits) or 'none of the targets'}",
        )
