"""What stands behind a code?  `explain("PL0202")` -> its page, or else its catalogue row."""

from __future__ import annotations

from pathlib import Path

from pipelink_rules.diagnostics.catalogue import FAMILIES, catalogue, lookup, similar
from pipelink_rules.diagnostics.code import Code
from pipelink_rules.diagnostics.diagnostic import error


def pages_folder() -> Path:
    """The folder of the pages: in a wheel below the package, else in the checkout beside it."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_shipped" / "docs" / "errors"
    return shipped if shipped.is_dir() else package.parent / "docs" / "errors"


def explain(word: str) -> str:
    """The page of a code, given by id, number or slug; PL0033 where there is no such code."""
    code = lookup(word)
    if code is None:
        found = similar(word)
        raise error(
            "PL0033",
            f"there is no code `{word[:60]}`",
            expected="a code like PL0031, its number or its name",
            found=word[:60],
            helps=(
                (f"did you mean `{found}` ({_row(found)})?",)
                if found
                else ("`pipelink explain` lists all codes",)
            ),
            subject=word,
        )
    try:
        return (pages_folder() / f"{code.id}.md").read_text(encoding="utf-8").rstrip() + "\n"
    except OSError:
        return _from_row(code)


def list_codes() -> str:
    """All codes, one a line, by family."""
    lines: list[str] = []
    family = ""
    for code in catalogue().values():
        if code.id[2:4] != family:
            family = code.id[2:4]
            lines += [*([""] if lines else []), f"PL{family}xx  {FAMILIES.get(family, '')}"]
        lines.append(f"  {code.id}  {code.slug}")
    return "\n".join(lines) + "\n"


def _row(word: str) -> str:
    code = lookup(word)
    if code is None:
        return ""
    return code.id if code.slug == word else code.slug


def _from_row(code: Code) -> str:
    rule = f"\nRule: {code.rule}.\n" if code.rule else ""
    return f"# {code.id} {code.slug}\n\n{code.purpose}\n{rule}"
