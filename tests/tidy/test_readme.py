"""The diagnostic that README.md shows is what the golden case prints."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from repository_files import REPOSITORY

README = REPOSITORY / "README.md"
SHOWN = re.compile(r"(<!-- generated: (?P<case>\S+) -->\n```text\n)(?P<text>.*?)(\n```\n)", re.S)


def first_diagnostic(case: str) -> str:
    """Return the expected text of a golden case without the summary."""
    text = (REPOSITORY / case).read_text(encoding="utf-8")
    return re.split(r"\n\n(?=(?:error|warning): )", text)[0].rstrip()


def test_readme_shows_what_is_printed(request: pytest.FixtureRequest) -> None:
    page = README.read_text(encoding="utf-8")
    (shown,) = SHOWN.finditer(page)
    expected = first_diagnostic(shown["case"])
    if request.config.getoption("--update-golden") and shown["text"] != expected:
        README.write_text(page.replace(shown["text"], expected), encoding="utf-8")
    else:
        assert shown["text"] == expected, "pytest tests/tidy/test_readme.py --update-golden"


def numbers(pattern: str, page: str) -> tuple[str, ...]:
    """Return the groups of the only line of a page that matches."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    (found,) = re.finditer(pattern, text, flags=re.M)
    return found.groups()


def test_readme_quotes_the_results() -> None:
    page = " ".join(README.read_text(encoding="utf-8").split())
    mutants, survivors = numbers(r"^\| all \| (\d+) \|.* (\d+) \|$", "docs/validation.md")
    assert f"{int(mutants):,} mutated contracts and declarations (none survives)" in page
    assert survivors == "0"
    invalid, correct = numbers(
        r"^(\d+) of the invalid megakernels.*; (\d+) computed correct results",
        "docs/validation.md",
    )
    assert f"{invalid} invalid kernels" in page
    assert f"of which {int(invalid) - int(correct)} hang" in page

    def large_gemm(against: str) -> tuple[str, ...]:
        cells = rf"^\| gemm \| 8192x8192x8192 \| {against} \|(?: \S+ \|) (\S+) \|"
        return numbers(rf"{cells}(?: \S+ \|){{3}} (\S+) \|", "docs/results.md")

    rate, cublas = large_gemm("cuBLAS")
    assert f"**{float(rate):.0f} TFLOP/s**" in page
    twin = large_gemm("native twin")[1]
    assert f"{float(cublas):.3f}x the time of cuBLAS, and {twin}x the time" in page


def test_links_of_pages_lead_somewhere() -> None:
    missing = []
    for page in sorted({README, *REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")}):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            path, _, anchor = target.partition("#")
            if path.startswith(("http:", "https:")):
                continue
            file = (page.parent / path) if path else page
            if not file.exists() or (
                anchor and file.suffix == ".md" and anchor not in anchors(file)
            ):
                missing.append(f"{page.name}: {target}")
    assert not missing


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
