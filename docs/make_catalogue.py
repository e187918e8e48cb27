"""Writes docs/coverage.md and docs/errors/index.md: python docs/make_catalogue.py.

Both are made of the front matter of the error pages and of docs/failures.yaml.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from pipelink_rules.diagnostics.catalogue import FAMILIES, Code, catalogue  # noqa: E402

PAGE = DOCS / "coverage.md"
INDEX = DOCS / "errors" / "index.md"
INDEX_HEAD = """# Diagnostics by code

Made by `python docs/make_catalogue.py` from the front matter of the pages in this folder.
"""
HEAD = """# What is checked

Made by `python docs/make_catalogue.py` from the codes and `docs/failures.yaml`. The first table is
read from the failure, the second from the code; `pipelink explain CODE` shows its page.

## What can go wrong, and who sees to it

*A code*: found and told under it. *By construction*: the linker owns the decision, in that
function. *Not in schema v1*: a contract cannot say it yet, so no composition can get it wrong, or
what comes near it is refused. Rows that changed: `docs/adr/0007-failures-without-a-check.md`.
"""


def failures() -> list[dict[str, Any]]:
    """The families of failures with their rows."""
    loaded: list[dict[str, Any]] = yaml.safe_load((DOCS / "failures.yaml").read_text("utf-8"))
    return loaded


def render() -> str:
    """The text of the page."""
    return "\n".join((HEAD, *_failures(), "## Codes", "", *_codes()))


def _failures() -> Iterator[str]:
    for family in failures():
        yield f"### {family['family']}\n"
        yield "| planned | what goes wrong | decided | shown by |"
        yield "|---|---|---|---|"
        for row in family["rows"]:
            cells = (row["number"], row["what"], _decided(row), _shown(row.get("shown", "")))
            yield f"| {' | '.join(cells)} |"
        yield ""


def _decided(row: dict[str, Any]) -> str:
    parts = []
    if row.get("codes"):
        parts.append(", ".join(f"[{code}](errors/{code}.md)" for code in row["codes"]))
    if row.get("by"):
        parts.append(f"by construction: `{row['by']}`")
    if row.get("missing"):
        parts.append(f"not in schema v1: {row['missing']}")
    if row.get("note"):
        parts.append(row["note"])
    return "; ".join(parts)


def _shown(shown: str) -> str:
    if not shown:
        return ""
    return f"`{shown}`" if "::" in shown else f"`tests/golden/{shown}`"


def _codes() -> Iterator[str]:
    for number, title in FAMILIES.items():
        rows = [code for code in catalogue().values() if code.id[2:4] == number]
        if not rows:
            continue
        yield f"### PL{number}xx: {title}\n"
        yield "| code | name | stage | purpose | rule |"
        yield "|---|---|---|---|---|"
        for code in rows:
            cells = (f"[{code.id}](errors/{code.id}.md)", code.name, code.stage, code.rationale)
            yield f"| {' | '.join((*cells, code.spec))} |".replace("|  |", "| |")
        yield ""


def render_index() -> str:
    """The text of docs/errors/index.md: one line a code, by family."""
    lines = [INDEX_HEAD]
    for number, title in FAMILIES.items():
        rows = [code for code in catalogue().values() if code.id[2:4] == number]
        if rows:
            lines += [f"## PL{number}xx: {title}\n", *map(_index_line, rows), ""]
    return "\n".join(lines)


def _index_line(code: Code) -> str:
    return f"- [{code.id}]({code.id}.md) `{code.name}`: {code.rationale}"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
    INDEX.write_text(render_index(), encoding="utf-8")
