"""Packages import in one direction, in the order of docs/architecture.md."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from repository_files import PACKAGE, REPOSITORY, files, module_of, package_files, relative, text_of

# A package imports only those before it, and itself.
ORDER = [
    "model",
    "diagnostics",
    "expression",
    "files",
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
ALLOWED = {package: {*ORDER[: place + 1], package} for place, package in enumerate(ORDER)}
# `launch` runs without a linker; the front ends use it, and do not use each other.
ALLOWED["launch"] = {"model", "diagnostics", "files", "expression", "launch"}
ALLOWED["cli"] |= {"launch"}
ALLOWED["scons"] = ALLOWED["scons"] - {"cli"} | {"launch"}

# Third-party module -> files that may import it, wherever in them the import is.
RESTRICTED = {
    "z3": ("pipelink_rules/solver/",),
    "SCons": ("pipelink_rules/scons/", "site_scons/"),
    "cuda": ("pipelink_rules/launch/", "pipelink_rules/toolkit/nvjitlink_child.py"),
    "torch": ("benchmarks/", "pipelink_rules/cli/"),
}


def imports_of(path: Path) -> set[str]:
    """Return the dotted names that a file imports."""
    found: set[str] = set()
    for node in ast.walk(module_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def packages_of(path: Path) -> set[str]:
    """Return the packages of PipeLink that a file imports."""
    parts = (name.split(".") for name in imports_of(path))
    return {name[1] for name in parts if name[0] == PACKAGE.name and len(name) > 1} & set(ALLOWED)


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_go_one_way(package: str) -> None:
    paths = [path for path in package_files() if path.parent != PACKAGE]
    inside = [path for path in paths if path.relative_to(PACKAGE).parts[0] == package]
    assert inside
    wrong = {relative(path): packages_of(path) - ALLOWED[package] for path in inside}
    assert not {name: packages for name, packages in wrong.items() if packages}


def test_every_package_has_a_place_in_the_order() -> None:
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} == set(ALLOWED)


def test_architecture_lists_the_packages_in_order() -> None:
    page = text_of(REPOSITORY / "docs/architecture.md")
    assert re.findall(r"^\| `(\w+)` \|", page, flags=re.M) == [*ORDER, "launch"]


@pytest.mark.parametrize("module", RESTRICTED)
def test_third_party_modules_are_imported_in_one_place(module: str) -> None:
    assert not [
        relative(path)
        for path in files("*.py")
        if not relative(path).startswith(("tests/", *RESTRICTED[module]))
        and any(name.split(".")[0] == module for name in imports_of(path))
    ]
