"""A copy of the repository in which invalid megakernels are linked one after the other.

The copy keeps its build directory: a component that two cases do not change is compiled once.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from checkout import Checkout, copy_of_repository

ARCH = "sm_90a"


class NotLinked(Exception):
    """The link was rejected nevertheless; has the output of the build."""


class Copy:
    """The copy at `folder`, updated from the repository."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        for item in folder.iterdir():  # except the build directory, which tracks what is stale
            if item.name not in ("build", ".sconsign.dblite"):
                shutil.rmtree(item) if item.is_dir() else item.unlink()
        for item in folder.glob("build/*/runtime/*"):  # `pipelink link` would use them
            item.unlink()
        self.path = folder.resolve()
        self._checkout: Checkout = copy_of_repository(self.path)

    @contextmanager
    def edited(self, files: Mapping[str, str]) -> Iterator[None]:
        """Write these texts to the files, and restore the files afterwards."""
        before = {name: (self.path / name).read_text(encoding="utf-8") for name in files}
        try:
            for name, text in files.items():
                (self.path / name).write_text(text, encoding="utf-8")
            yield
        finally:
            for name, text in before.items():
                (self.path / name).write_text(text, encoding="utf-8")

    def build(self, megakernel: str, runtime: str) -> Path:
        """Run `scons` and return the folder; raise NotLinked if it fails."""
        self._run(f"python -m SCons -Q arch={ARCH} runtime={runtime} megakernels/{megakernel}")
        return self._checkout.megakernel(megakernel, ARCH)

    def relink(self, megakernel: str, runtime: str, out: Path) -> Path:
        """Run `pipelink link` on what was built, into `out`."""
        folder = self._checkout.megakernel(megakernel, ARCH)
        words = f"link {folder} -o {out} --runtime {runtime}"
        self._run(f"python -m pipelink_rules.cli {words}")
        return out

    def _run(self, command: str) -> None:
        done = self._checkout.run(command)
        if done.returncode:
            raise NotLinked(said(done.stdout + done.stderr))


def said(output: str) -> str:
    """Return the errors in the output of a build."""
    lines = [line for line in output.splitlines() if line.startswith("error[")]
    return "; ".join(lines) or output[-2000:]


def sconscript_of(declaration: Mapping[str, Any]) -> str:
    """Return an SConscript with this declaration."""
    keywords = "".join(f"    {name}={value!r},\n" for name, value in declaration.items())
    return f'Import("env")\n\nenv.Megakernel(\n{keywords})\n'
