"""docs/coverage.md is what the codes and docs/failures.yaml give, and what it names exists."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pipelink_rules.diagnostics.catalogue import catalogue

REPOSITORY = Path(__file__).resolve().parent.parent.parent


@cache
def maker() -> ModuleType:
    path = REPOSITORY / "docs" / "make_catalogue.py"
    spec = importlib.util.spec_from_file_location("make_catalogue", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows() -> list[dict[str, Any]]:
    return [row for family in maker().failures() for row in family["rows"]]


def test_the_page_is_up_to_date() -> None:
    page = (REPOSITORY / "docs/coverage.md").read_text(encoding="utf-8")
    assert page == maker().render(), "run: python docs/make_catalogue.py"
    index = (REPOSITORY / "docs/errors/index.md").read_text(encoding="utf-8")
    assert index == maker().render_index(), "run: python docs/make_catalogue.py"


def test_every_row_is_decided() -> None:
    assert not [r["what"] for r in rows() if not (r.get("codes") or r.get("by") or "missing" in r)]
    assert not [r["what"] for r in rows() if r.get("codes") and not (r.get("shown") or "note" in r)]


def test_what_a_row_names_exists() -> None:
    wrong = []
    for row in rows():
        wrong += [code for code in row.get("codes", ()) if code not in catalogue()]
        for named in (row.get("by", ""), row.get("shown", "")):
            path, _, name = named.partition("::")
            if not named:
                continue
            if not name:
                wrong += (
                    [] if (REPOSITORY / "tests/golden" / path / "expect.txt").exists() else [path]
                )
            elif not re.search(rf"\b{name}\b", (REPOSITORY / path).read_text(encoding="utf-8")):
                wrong.append(named)
    assert not wrong


def test_a_golden_case_shows_a_code_of_its_row() -> None:
    wrong = []
    for row in rows():
        shown = row.get("shown", "")
        if shown and "::" not in shown and row.get("codes"):
            text = (REPOSITORY / "tests/golden" / shown / "expect.txt").read_text(encoding="utf-8")
            if not any(f"[{code}]" in text for code in row["codes"]):
                wrong.append(shown)
    assert not wrong


def test_planned_numbers_occur_once() -> None:
    numbers = [row["number"] for row in rows() if row["number"]]
    assert len(numbers) == len(set(numbers)) >= 50
