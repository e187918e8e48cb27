"""Measure the structure of the tool: files, lines, fragments, cycles, repeated names.

    python benchmarks/code_structure.py            # this checkout
    python benchmarks/code_structure.py 8c79a23 HEAD

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
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "pipelink_rules"
ENTRY_POINTS = {"__init__.py", "__main__.py", "nvjitlink_child.py"}


def measure(tree: Path) -> dict[str, object]:
    """Name -> number, in the order in which they are printed."""
    files = {
        ".".join(path.relative_to(tree).with_suffix("").parts): path
        for path in sorted((tree / PACKAGE).rglob("*.py"))
    }
    texts = {name: path.read_text(encoding="utf-8") for name, path in files.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    graph = {name: _imports(module, files) - {name} for name, module in trees.items()}
    importers = Counter(target for targets in graph.values() for target in targets)
    lines = {name: len(text.splitlines()) for name, text in texts.items()}
    small = [n for n in files if lines[n] < 60 and files[n].name not in ENTRY_POINTS]
    classes = Counter(
        node.name
        for module in trees.values()
        for node in module.body
        if isinstance(node, ast.ClassDef)
    )
    stems = Counter(path.name for path in files.values() if path.name != "__init__.py")
    return {
        "files": len(files),
        "lines": sum(lines.values()),
        "longest file": max(lines.values()),
        "files under 60 lines": len(small),
        "fragments (under 60 lines, one importer)": sum(importers[name] == 1 for name in small),
        "import cycles": len(cycles(graph)),
        "files in cycles": sum(map(len, cycles(graph))),
        "file names used more than once": sum(count > 1 for count in stems.values()),
        "class names used more than once": sum(count > 1 for count in classes.values()),
        "contract lines": _contract_lines(tree),
    }


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


def cycles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The strongly connected components of more than one node, found by reachability."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        stack = list(graph[start])
        while stack:
            name = stack.pop()
            if name not in seen:
                seen.add(name)
                stack += graph[name]
        reach[start] = seen
    groups: dict[frozenset[str], None] = {}
    for name in graph:
        if name in reach[name]:
            groups[frozenset(other for other in reach[name] if name in reach[other])] = None
    return [set(group) for group in groups]


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
    columns: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory() as work:
        for index, revision in enumerate(sys.argv[1:]):
            folder = Path(work) / str(index)
            folder.mkdir()
            columns[revision] = measure(_checkout(revision, folder))
    if not columns:
        columns["this checkout"] = measure(ROOT)
    rows: dict[str, list[object]] = defaultdict(list)
    for values in columns.values():
        for name, value in values.items():
            rows[name].append(value)
    print(f"{'':42}" + "".join(f"{name:>16}" for name in columns))
    for name, cells in rows.items():
        print(f"{name:42}" + "".join(f"{cell:>16,}" for cell in cells))


if __name__ == "__main__":
    main()
