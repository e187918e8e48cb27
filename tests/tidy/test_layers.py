"""The structure that docs/architecture.md describes, enforced."""

from __future__ import annotations

import ast
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PACKAGE = REPOSITORY / "pipelink_rules"

# In pipeline order: a package imports only those before it, and itself.
ORDER = [
    "model",
    "diagnostics",
    "files",
    "expression",
    "solver",
    "contract",
    "program",
    "check",
    "toolkit",
    "compile",
    "audit",
    "place",
    "glue",
    "link",
    "report",
    "actions",
    "cli",
    "scons",
]
LAUNCH = {
    "model",
    "diagnostics",
    "files",
    "expression",
    "launch",
}  # what runs where no linker is installed
LONGEST = 500  # lines of a Python file
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}

# Who may import what from outside, wherever in a file the import stands.
RESTRICTED = {
    "z3": {"pipelink_rules/solver/"},
    "SCons": {"pipelink_rules/scons/", "site_scons/"},
    "cuda": {"pipelink_rules/launch/", "pipelink_rules/toolkit/nvjitlink_child.py"},
    "torch": {"benchmarks/", "pipelink_rules/cli/"},
}


@cache
def sources() -> tuple[Path, ...]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return tuple(REPOSITORY / name for name in listed if (REPOSITORY / name).exists())


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module}
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def package_sources() -> list[Path]:
    return [path for path in sources() if PACKAGE in path.parents]


def test_imports_go_one_way() -> None:
    wrong = []
    for path in package_sources():
        place = path.relative_to(PACKAGE).parts[0]
        if place not in [*ORDER, "launch"]:
            continue
        allowed = LAUNCH if place == "launch" else set(ORDER[: ORDER.index(place) + 1])
        if place in ("cli", "scons"):
            allowed = {*allowed, "launch"} - ({"cli"} if place == "scons" else set())
        for name in imports_of(path):
            parts = name.split(".")
            if parts[0] == "pipelink_rules" and len(parts) > 1:
                target = parts[1]
                if target in [*ORDER, "launch"] and target not in allowed:
                    wrong.append(f"{path.relative_to(REPOSITORY)} imports {name}")
    assert not wrong


def test_every_folder_has_its_place() -> None:
    folders = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    assert folders == {*ORDER, "launch"}


@pytest.mark.parametrize("module", RESTRICTED)
def test_outside_modules_are_imported_in_one_place(module: str) -> None:
    wrong = [
        str(path.relative_to(REPOSITORY))
        for path in sources()
        if "tests/" not in str(path.relative_to(REPOSITORY))
        and any(name.split(".")[0] == module for name in imports_of(path))
        and not any(
            str(path.relative_to(REPOSITORY)).startswith(place) for place in RESTRICTED[module]
        )
    ]
    assert not wrong


def test_files_stay_short() -> None:
    long = {
        str(path.relative_to(REPOSITORY)): count
        for path in sources()
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST
    }
    assert not long


def test_names_say_something() -> None:
    assert not [str(path) for path in sources() if path.stem in VAGUE]


def test_test_modules_have_names_of_their_own() -> None:
    """pytest imports them by their base name alone."""
    seen: dict[str, str] = {}
    twice = []
    for path in sources():
        name = str(path.relative_to(REPOSITORY))
        if name.startswith("tests/") and path.stem != "conftest" and "golden/" not in name:
            if path.stem.startswith("test_") and path.stem in seen:
                twice.append((seen[path.stem], name))
            seen[path.stem] = name
    assert not twice


def test_modules_say_which_question_they_answer() -> None:
    silent = [
        str(path.relative_to(REPOSITORY))
        for path in package_sources()
        if ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is None
        and path.stat().st_size
    ]
    assert not silent


def test_nothing_evaluates_text() -> None:
    """No eval, no exec, no pickle and no unsafe YAML in the package."""
    pattern = re.compile(
        r"\b(eval|exec)\(|\bpickle\b|yaml\.(unsafe_)?load\((?!.*Loader=)|shell=True"
    )
    wrong = [
        f"{path.relative_to(REPOSITORY)}:{number}"
        for path in package_sources()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not wrong
