"""Golden stage `build`: what the build rules say to a declaration or to the world around them.

A case is a small project (SConstruct, and what it names) in which `scons` runs with the arguments
of `arguments`, or a `case.py` whose `run()` raises the findings of a step.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.render import render_text

ROOT = Path(__file__).resolve().parent.parent.parent


def run(case: Path) -> str:
    """The text a user would see."""
    with tempfile.TemporaryDirectory() as name:
        project = Path(name, "project")
        shutil.copytree(case, project, ignore=shutil.ignore_patterns("expect.txt", "arguments"))
        if (case / "case.py").is_file():
            return _raised(case, project)
        return _scons(case, project)


def _raised(case: Path, project: Path) -> str:
    spec = importlib.util.spec_from_file_location("golden_build_case", case / "case.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        with _inside(project):
            module.run()
    except PipelinkError as problem:
        return render_text(problem.diagnostics, root=project)
    return "no findings\n"


def _scons(case: Path, project: Path) -> str:
    arguments = case / "arguments"
    words = arguments.read_text(encoding="utf-8").split() if arguments.is_file() else []
    command = [sys.executable, "-m", "SCons", "-Q", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    found = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    text = found.stderr.replace(str(project), "PROJECT")
    end = text.find('\nFile "')
    return f"{text[:end] if end >= 0 else text.rstrip()}\nexit status {found.returncode}\n"


class _inside:
    """The working directory, for the steps take paths relative to the top."""

    def __init__(self, folder: Path):
        self._folder, self._before = folder, Path.cwd()

    def __enter__(self) -> None:
        os.chdir(self._folder)

    def __exit__(self, *_: object) -> None:
        os.chdir(self._before)
