"""The pages of the placement's codes show what the golden cases show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelink_rules.diagnostics.catalogue import catalogue, page_of

REPOSITORY = Path(__file__).resolve().parents[3]
CODES = [code.id for code in catalogue().values() if code.stage == "place"]


@pytest.mark.parametrize("code", CODES)
def test_the_example_is_a_golden_case(code: str) -> None:
    page = page_of(catalogue()[code])
    assert page.startswith(f"# {code} {catalogue()[code].name}\n")
    (example,) = re.findall(r"```text\n(.*?)\n```", page, re.DOTALL)
    shown = [
        (case / "expect.txt")
        .read_text(encoding="utf-8")
        .replace(f"tests/golden/place/{case.name}/", "")
        for case in (REPOSITORY / "tests/golden/place").glob(f"{code}_*")
    ]
    assert any(example in text for text in shown), f"{code}: no golden case shows the example"
