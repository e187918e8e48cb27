"""A copy of the repository in a separate folder, and commands run there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Checkout:
    """A copy of the repository in a separate folder."""

    path: Path

    def run(self, command: str, *, seconds: int = 600) -> subprocess.CompletedProcess[str]:
        """Run a command in a shell, with the programs of this interpreter first on the path."""
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.path),
        }
        return subprocess.run(
            command,
            shell=True,
            cwd=self.path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def megakernel(self, name: str, arch: str = "sm_90a") -> Path:
        """Return the folder of a megakernel in the build."""
        return self.path / "build" / arch / "megakernels" / name


def copy_of_repository(path: Path) -> Checkout:
    """Copy what git would clone, and what is not committed yet."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
    ).stdout.split(b"\0")
    for name in map(os.fsdecode, listed):
        source = REPOSITORY / name
        if name and source.is_file():
            target = path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    return Checkout(path)
