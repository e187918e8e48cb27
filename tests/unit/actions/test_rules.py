"""The version of the rules: what an edit to the package rebuilds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pipelink_rules
from pipelink_rules.actions import build_key

PACKAGE = Path(pipelink_rules.__file__).parent
# What a stage may import without being part of it: words for people, and the tools of the build.
PROSE = {"diagnostics"}


def packages_of(path: Path) -> set[str]:
    """Parts of the package that a module imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        names += [item.name for item in node.names] if isinstance(node, ast.Import) else []
        found |= {name.split(".")[1] for name in names if name.startswith("pipelink_rules.")}
    return found


@pytest.mark.parametrize("stage", build_key.STAGES)
def test_a_stage_knows_all_packages_it_is_made_of(stage: str) -> None:
    """Whatever the packages of a stage import is in its version, or is only words."""
    parts = set(build_key.STAGES[stage])
    for part in sorted(parts - {"__init__.py", "actions"}):
        for path in (PACKAGE / part).rglob("*.py"):
            missing = packages_of(path) - parts - PROSE
            assert not missing, f"{stage}: {path.relative_to(PACKAGE)} imports {sorted(missing)}"


def test_an_edit_changes_the_versions_of_its_stage_and_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in ("model", "place", "glue"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "x.py").write_text("x = 1\n")
    (tmp_path / "__init__.py").write_text("")
    monkeypatch.setattr(pipelink_rules, "__file__", str(tmp_path / "__init__.py"))

    def versions() -> dict[str, str]:
        build_key.tool_version.cache_clear()
        build_key._digest.cache_clear()
        return {stage: build_key.tool_version(stage) for stage in build_key.STAGES}

    try:
        before = versions()
        (tmp_path / "place/x.py").write_text("x = 2\n")
        after = versions()
    finally:
        monkeypatch.undo()
        build_key.tool_version.cache_clear()
        build_key._digest.cache_clear()
    changed = {stage for stage in build_key.STAGES if before[stage] != after[stage]}
    assert changed == {stage for stage, parts in build_key.STAGES.items() if "place" in parts}
