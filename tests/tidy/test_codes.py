"""Every code has a page, is raised somewhere, and is shown by a test."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from pipelink_rules.diagnostics.catalogue import catalogue

REPOSITORY = Path(__file__).resolve().parent.parent.parent


@cache
def text_of(folder: str, without: str = "-") -> str:
    return "\n".join(
        path.read_text(encoding="utf-8", errors="replace")
        for path in sorted((REPOSITORY / folder).rglob("*"))
        if path.is_file()
        and without not in str(path.relative_to(REPOSITORY))
        and "__pycache__" not in str(path)
    )


def codes() -> list[str]:
    return sorted(catalogue())


def test_every_code_has_a_page() -> None:
    pages = {path.stem for path in (REPOSITORY / "docs/errors").glob("PL*.md")}
    assert pages == set(codes())


def test_every_page_says_what_how_and_why() -> None:
    thin = [
        code
        for code in codes()
        if len((REPOSITORY / f"docs/errors/{code}.md").read_text(encoding="utf-8")) < 200
    ]
    assert not thin


def test_every_code_is_raised() -> None:
    raised = set(re.findall(r"PL[0-9]{4}", text_of("pipelink_rules")))
    assert not sorted(set(codes()) - raised)


def test_no_code_is_raised_that_nobody_explains() -> None:
    raised = set(re.findall(r'"(PL[0-9]{4})"', text_of("pipelink_rules")))
    assert not sorted(raised - set(codes()))


def test_every_code_is_shown_by_a_test() -> None:
    shown = set(re.findall(r"PL[0-9]{4}", text_of("tests", "tidy")))
    shown |= {path.name[:6] for path in (REPOSITORY / "tests/golden").glob("*/PL*")}
    assert not sorted(set(codes()) - shown)
