"""Golden stage `link`: what the checks of objects, the linker and the audit say.

A case is a `case.py` with `run()`, which returns or raises findings; `linked` makes its nouns.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.render import render_text


def run(case: Path) -> str:
    """The text a user would see."""
    spec = importlib.util.spec_from_file_location("golden_case", case / "case.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        findings = tuple(module.run())
    except PipelinkError as problem:
        findings = problem.diagnostics
    text = render_text(findings, root=case, outcome="nothing was linked")
    return text.replace(str(case), "CASE")
