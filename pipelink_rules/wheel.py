"""How does a wheel get the components, the device ABI and the error pages?  A copy at build time.

Named in pyproject.toml as the build_py command; nothing imports it at run time.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from setuptools.command.build_py import build_py

# setuptools loads this file by its path, outside of any package.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from pipelink_rules.files.installed_files import COPY, SHIPPED

_LEFT_OUT = {"__pycache__"}


class BuildPy(build_py):  # type: ignore[misc]
    """Copies the shipped folders into the package; an editable install finds the originals."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        target = Path(self.build_lib) / "pipelink_rules" / COPY
        shutil.rmtree(target, ignore_errors=True)  # a file deleted since the last build is gone
        for source in shipped_files(Path.cwd()):
            copy = target / source
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)

    def get_source_files(self) -> list[str]:
        return [*super().get_source_files(), *map(str, shipped_files(Path.cwd()))]


def shipped_files(root: Path) -> Iterator[Path]:
    """Every file of the shipped folders, relative to `root`, in a fixed order."""
    for folder in SHIPPED:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and not _LEFT_OUT.intersection(path.parts):
                yield path.relative_to(root)
