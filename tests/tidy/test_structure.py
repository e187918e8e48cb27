"""Sizes, fragments, import cycles and names; structure.yaml has the exceptions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from repository_files import REPOSITORY, files, module_of, package_files, relative, text_of

from benchmarks.measure.code_structure import Structure

LONGEST = 500  # lines of a Python file; ruff checks the complexity of functions
VAGUE = {"utils", "util", "helpers", "helper", "common", "manager", "base", "misc"}
EXCEPTIONS: dict[str, list[Any]] = yaml.safe_load(
    Path(__file__).with_name("structure.yaml").read_text(encoding="utf-8")
)


@cache
def structure() -> Structure:
    return Structure.of(REPOSITORY)


def untyped_arguments() -> Iterator[str]:
    """Yield the functions that take `*args: Any`."""
    for name, module in structure().modules.items():
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                rest = node.args.vararg
                if rest and rest.annotation and ast.unparse(rest.annotation) == "Any":
                    yield f"{name}.{node.name}"


FOUND = {
    "fragments": lambda: structure().fragments(),
    "cycles": lambda: [sorted(cycle) for cycle in structure().cycles()],
    "file_names": lambda: structure().repeated_files(),
    "class_names": lambda: structure().repeated_classes(),
    "untyped_arguments": lambda: list(untyped_arguments()),
}


@pytest.mark.parametrize("kind", FOUND)
def test_only_listed_exceptions_exist(kind: str) -> None:
    found, listed = sorted(FOUND[kind]()), sorted(EXCEPTIONS[kind])
    assert found == listed, f"{kind}: correct the code, or remove what structure.yaml lists in vain"


def test_every_list_has_its_rule() -> None:
    assert set(EXCEPTIONS) == set(FOUND)


def test_files_stay_short() -> None:
    lengths = {relative(path): len(text_of(path).splitlines()) for path in files("*.py")}
    assert not {name: length for name, length in lengths.items() if length > LONGEST}


def test_file_names_are_specific() -> None:
    assert not [relative(path) for path in files("*.py") if path.stem in VAGUE]


def test_test_modules_have_different_names() -> None:
    """pytest imports them by their base name alone."""
    names = [
        path.name
        for path in files("tests/*.py")
        if path.name.startswith("test_") and "golden" not in path.parts
    ]
    assert not {name for name in names if names.count(name) > 1}


def test_modules_have_docstrings() -> None:
    assert not [
        relative(path)
        for path in package_files()
        if path.stat().st_size and ast.get_docstring(module_of(path)) is None
    ]


def test_no_text_is_evaluated() -> None:
    """There is no eval, no exec, no pickle and no unsafe YAML in the package."""
    pattern = re.compile(
        r"\b(eval|exec)\(|\bpickle\b|yaml\.(unsafe_)?load\((?!.*Loader=)|shell=True"
    )
    assert not [
        f"{relative(path)}:{number}"
        for path in package_files()
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if pattern.search(line)
    ]
