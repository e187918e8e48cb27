"""The golden cases of the launcher (tests/golden/launch): one per code, quoted by its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelink_rules.diagnostics.catalogue import catalogue

ROOT = Path(__file__).parents[3]
CASES = sorted((ROOT / "tests" / "golden" / "launch").glob("PL*"))


def test_every_code_has_a_case() -> None:
    assert [folder.name for folder in CASES] == [
        f"{code.id}_{code.name}" for code in catalogue().values() if code.stage == "launch"
    ]


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: folder.name)
def test_the_page_quotes_the_message(folder: Path) -> None:
    text = (folder / "expect.txt").read_text(encoding="utf-8")
    page = ROOT / "docs" / "errors" / f"{folder.name.partition('_')[0]}.md"
    assert text.partition("\n\n")[0] in page.read_text(encoding="utf-8")
