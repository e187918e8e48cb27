"""Measure the structure of the tool: files, lines, fragments, cycles, repeated names.

    python -m benchmarks.measure.code_structure            # this checkout
    python -m benchmarks.measure.code_structure 8c79a23 HEAD

A fragment is a file under 60 lines with exactly one importer (`__init__` and entry points aside).
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "pipelink_rules"
ENTRY_POINTS = {"__init__.py", "__main__.py", "nvjitlink_child.py"}  # started, not imported
SMALL = 60  # lines


@dataclass(frozen=True)
class Structure:
    """The modules of the package in one tree of files, by dotted name."""

    tree: Path
    files: dict[str, Path]
    lines: dict[str, int]
    modules: dict[str, ast.Module]
    imports: dict[str, set[str]]

    @classmethod
    def of(cls, tree: Path) -> Structure:
        files = {
            ".".join(path.relative_to(tree).with_suffix("").parts): path
            for path in sorted((tree / PACKAGE).rglob("*.py"))
        }
        texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
        modules = {name: ast.parse(text) for name, text in texts.items()}
        return cls(
            tree,
            files,
            {name: len(text.splitlines()) for name, text in texts.items()},
            modules,
            {name: _imports(module, files) - {name} for name, module in modules.items()},
        )

    def small(self) -> list[str]:
        """Modules under 60 lines, entry points aside."""
        return [
            name
            for name, path in self.files.items()
            if self.lines[name] < SMALL and path.name not in ENTRY_POINTS
        ]

    def fragments(self) -> list[str]:
        """Small modules with exactly one importer."""
        importers = Counter(target for targets in self.imports.values() for target in targets)
        return [name for name in self.small() if importers[name] == 1]

    def cycles(self) -> list[set[str]]:
        """Sets of modules that import each other: strongly connected components."""
        reach: dict[str, set[str]] = {}
        for start in self.imports:
            seen: set[str] = set()
            stack = list(self.imports[start])
            while stack:
                name = stack.pop()
                if name not in seen:
                    seen.add(name)
                    stack += self.imports[name]
            reach[start] = seen
        groups: dict[frozenset[str], None] = {}
        for name in self.imports:
            if name in reach[name]:
                groups[frozenset(other for other in reach[name] if name in reach[other])] = None
        return [set(group) for group in groups]

    def repeated_files(self) -> list[str]:
        """File names that two packages use."""
        return _repeated(path.name for path in self.files.values() if path.name != "__init__.py")

    def repeated_classes(self) -> list[str]:
        """Class names that two modules define."""
        return _repeated(
            node.name
            for module in self.modules.values()
            for node in module.body
            if isinstance(node, ast.ClassDef)
        )


def measure(tree: Path) -> dict[str, int]:
    """Name -> number, in the order in which they are printed."""
    structure = Structure.of(tree)
    cycles = structure.cycles()
    return {
        "files": len(structure.files),
        "lines": sum(structure.lines.values()),
        "longest file": max(structure.lines.values()),
        "files under 60 lines": len(structure.small()),
        "fragments (under 60 lines, one importer)": len(structure.fragments()),
        "import cycles": len(cycles),
        "files in cycles": sum(map(len, cycles)),
        "file names used more than once": len(structure.repeated_files()),
        "class names used more than once": len(structure.repeated_classes()),
        "contract lines": _contract_lines(tree),
    }


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _imports(module: ast.Module, files: dict[str, Path]) -> set[str]:
    found = set()
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(PACKAGE):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in files else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found if name in files}


def _contract_lines(tree: Path) -> int:
    return sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in (tree / "components").rglob("*.contract.yaml")
    )


def _checkout(revision: str, folder: Path) -> Path:
    packed = subprocess.run(
        ["git", "archive", revision, PACKAGE, "components"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def main() -> None:
    columns: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as work:
        for index, revision in enumerate(sys.argv[1:]):
            folder = Path(work) / str(index)
            folder.mkdir()
            columns[revision] = measure(_checkout(revision, folder))
    if not columns:
        columns["this checkout"] = measure(ROOT)
    rows: dict[str, list[int]] = defaultdict(list)
    for values in columns.values():
        for name, value in values.items():
            rows[name].append(value)
    print(f"{'':42}" + "".join(f"{name:>16}" for name in columns))
    for name, cells in rows.items():
        print(f"{name:42}" + "".join(f"{cell:>16,}" for cell in cells))


if __name__ == "__main__":
    main()
