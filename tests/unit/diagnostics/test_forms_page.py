"""docs/diagnostics.md says which forms and exit codes there are."""

from __future__ import annotations

import re
from pathlib import Path

from pipelink_rules.diagnostics import render
from pipelink_rules.scons.options import HELP

PAGE = (Path(__file__).resolve().parents[3] / "docs/diagnostics.md").read_text(encoding="utf-8")


def test_every_exit_code_is_listed() -> None:
    listed = {int(code) for code in re.findall(r"^\| (\d) \|", PAGE, re.M)}
    assert listed == {value for name, value in vars(render).items() if name.startswith("EXIT_")}


def test_every_form_is_listed() -> None:
    forms = HELP["diag"][0].split("|")
    assert forms == ["text", "json", "sarif"]
    for form in forms[1:]:
        assert f"`--diag={form}`" in PAGE and f"`diag={form}`" in PAGE
        assert f"`build/diagnostics.{form}`" in PAGE
    assert render.JSON_SCHEMA in PAGE
