"""The catalogue and its pages: every code is unique, explained, and shown by a golden case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelink_rules.diagnostics.catalogue import (
    FAMILIES,
    STAGES,
    catalogue,
    code_of,
    explain,
    list_codes,
    lookup,
    page_of,
    pages_folder,
    parse_page,
    similar,
)
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.wording import nearest, similar_name_help
from pipelink_rules.files.installed_files import shipped

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted((ROOT / "docs" / "errors").glob("PL*.md"))
# Families whose whole catalogue has pages and golden cases in `text`.
TEXT = [code for code in catalogue() if "PL0001" <= code <= "PL0039" or code == "PL1101"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_front_matter_is_complete(page: Path) -> None:
    code, _ = parse_page(page.read_text())
    assert code.id == page.stem and code.id[2:4] in FAMILIES
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code.name)
    assert code.stage in STAGES
    assert code.rationale.endswith(".") and isinstance(code.spec, str)


def test_names_are_unique() -> None:
    names = [code.name for code in catalogue().values()]
    assert len(names) == len(set(names)) == len(PAGES) >= 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# PL0001\n",
        "---\ncode: PL0001\n",
        "---\ncode: [\n---\n",
        "---\ncode: PL0001\n---\n",
        "---\njust text\n---\n",
        "---\ncode: PL0001\nname: x\nstage: text\nrationale: y.\ncolor: red\n---\n",
    ],
)
def test_broken_front_matter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="front matter"):
        parse_page(text)


def test_one_code_reads_one_page(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = Path.read_text

    def logged(path: Path, *more: str, **named: str) -> str:
        read.append(path.name)
        return real(path, *more, **named)

    code_of.cache_clear()
    monkeypatch.setattr(Path, "read_text", logged)
    assert code_of("PL0504") is not None
    assert read == ["PL0504.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_is_that_of_its_code(page: Path) -> None:
    row = catalogue()[page.stem]
    lines = page_of(row).split("\n")
    assert lines[0] == f"# {row.id} {row.name}"
    heads = [line for line in lines if line.startswith("## ")]
    assert heads == ["## Example", "## Fix", "## Specification"]
    assert f"[{row.id}]" in page.read_text()


@pytest.mark.parametrize("code", TEXT)
def test_example_of_the_page_is_what_a_golden_case_shows(code: str) -> None:
    page = (ROOT / "docs" / "errors" / f"{code}.md").read_text()
    (example,) = re.findall(r"## Example\n.*?```text\n(.*?)\n```", page, re.DOTALL)
    texts = [path.read_text() for path in (ROOT / "tests/golden/text").glob(f"{code}_*/expect.txt")]
    assert any(example in text for text in texts), "copy the finding from expect.txt into the page"


def test_codes_that_are_raised_are_in_the_catalogue() -> None:
    for path in sorted((ROOT / "pipelink_rules").rglob("*.py")):
        for code in re.findall(r"\"(PL[0-9]{4})\"", path.read_text()):
            assert code in catalogue(), f"{path}: {code}"


@pytest.mark.parametrize(
    "word", ["PL0031", "pl0031", "31", "0031", "expression-name", "Expression Name", " PL0031 "]
)
def test_lookup(word: str) -> None:
    code = lookup(word)
    assert code is not None and code.id == "PL0031"


@pytest.mark.parametrize("word", ["", "PL", "PL31x", "99999", "no-such-slug", "PL9999"])
def test_lookup_of_nothing(word: str) -> None:
    assert lookup(word) is None


def test_explain_shows_the_page() -> None:
    page = (ROOT / "docs/errors/PL0031.md").read_text()
    assert page.endswith(explain("expression-name"))
    assert explain("31").startswith("# PL0031 expression-name\n")


def test_a_code_without_a_page_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pipelink_rules.diagnostics.catalogue.pages_folder", lambda: tmp_path)
    code_of.cache_clear()
    try:
        assert code_of("PL0028") is None and not catalogue()
    finally:
        monkeypatch.undo()
        code_of.cache_clear()


@pytest.mark.parametrize(
    ("word", "meant"), [("expresion-name", "expression-name"), ("PL0O31", "PL0031"), ("zzz", "")]
)
def test_explain_of_an_unknown_code(word: str, meant: str) -> None:
    with pytest.raises(PipelinkError) as caught:
        explain(word)
    (found,) = caught.value.diagnostics
    assert found.code == "PL0033"
    assert (f"a similar name exists: `{meant}`" in found.suggestions[0]) is bool(meant)
    assert similar("zzz") == ""


def test_pages_are_found_where_they_are_shipped() -> None:
    assert pages_folder() == shipped("docs", "errors")


def test_list_has_every_code() -> None:
    text = list_codes()
    for code in catalogue().values():
        assert f"  {code.id}  {code.name}\n" in text


def test_suggestions() -> None:
    assert nearest("arivals", ["arrivals", "rate"]) == "arrivals"
    assert nearest("ARRIVALS", ["arrivals", "rate"]) == "arrivals"
    assert nearest("color", ["arrivals", "rate"]) == ""
    assert similar_name_help("color", ["rate", "arrivals"], "clauses") == (
        "clauses: arrivals, rate",
    )
    assert similar_name_help("rat", ["rate"]) == ("a similar name exists: `rate`",)
    assert similar_name_help("x", []) == ()
    assert similar_name_help("x", [f"name{n}" for n in range(40)])[0].endswith("...")
