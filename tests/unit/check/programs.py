"""Programs for the tests of `check`: the golden bases with edited contracts."""

from __future__ import annotations

import importlib.util
import tempfile
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.program import Program

STAGE = Path(__file__).resolve().parents[2] / "golden_stages" / "check.py"


@lru_cache(maxsize=1)
def stage() -> ModuleType:
    """The runner of the golden cases."""
    spec = importlib.util.spec_from_file_location("golden_stage_check_programs", STAGE)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def program(base: str, **edits: list[list[str]]) -> Program:
    """A base (gemm, stream, join, total) with edits: file -> [[text, replacement], ...]."""
    settings: dict[str, Any] = {"base": base, "edits": edits}
    with tempfile.TemporaryDirectory() as folder:
        return stage().program_of(Path(folder), settings)


def findings(base: str, **edits: list[list[str]]) -> tuple[Diagnostic, ...]:
    """What `check` finds in it."""
    with tempfile.TemporaryDirectory() as folder:
        return stage().findings(Path(folder), {"base": base, "edits": edits})


def found(base: str, **edits: list[list[str]]) -> list[tuple[str, str]]:
    """(code, subject) of the findings."""
    return [(item.code, item.subject) for item in findings(base, **edits)]
