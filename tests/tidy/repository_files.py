"""The files of the repository as git lists them, and what the tests of this folder read in them."""

from __future__ import annotations

import ast
import subprocess
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "pipelink_rules"


@cache
def files(*patterns: str) -> tuple[Path, ...]:
    """Return the tracked and the new files that match, deleted ones aside."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    return tuple(path for name in listed if name and (path := REPOSITORY / name).is_file())


def relative(path: Path) -> str:
    """Return the path below the repository."""
    return path.relative_to(REPOSITORY).as_posix()


@cache
def text_of(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text(encoding="utf-8", errors="replace")


@cache
def module_of(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(text_of(path))


def package_files() -> list[Path]:
    """Return the Python files of the tool."""
    return [path for path in files("*.py") if PACKAGE in path.parents]
