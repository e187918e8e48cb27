"""The catalogue of codes, read from the front matter of the error pages.

Every page begins with YAML between two lines of `---`: code, name, stage, rationale and
spec.  A page is read when its code is needed, so a run without diagnostics reads none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.diagnostics.wording import nearest

FAMILIES: Mapping[str, str] = {
    "00": "contract and specification text",
    "01": "resources of an SM",
    "02": "mbarriers: counts and bytes",
    "03": "named barriers",
    "04": "liveness",
    "05": "order, proxies and races",
    "06": "layout and tensor maps",
    "07": "warps and registers",
    "08": "tensor memory and clusters",
    "09": "objects compared with their contracts",
    "10": "tile scheduler and grid",
    "11": "numerics",
    "12": "toolkit and link",
    "13": "build rules",
    "14": "launch",
    "99": "a mistake of PipeLink itself",
}
STAGES = ("text", "resolve", "check", "place", "compile", "link", "build", "launch", "internal")


@dataclass(frozen=True)
class Code:
    """One kind of diagnostic.  Ids are never reused or renumbered."""

    id: str  # "PL0202"
    name: str  # "transaction-bytes"
    stage: str  # one of STAGES
    rationale: str  # one sentence: what goes wrong without this check
    spec: str = ""  # the hardware or tool rule, with its source


def pages_folder() -> Path:
    """The folder of the pages: in a wheel below the package, else in the checkout beside it."""
    package = Path(__file__).resolve().parent.parent
    shipped = package / "_shipped" / "docs" / "errors"
    return shipped if shipped.is_dir() else package.parent / "docs" / "errors"


@cache
def code_of(code: str) -> Code | None:
    """The entry of one code, from its page; None where there is no such page, or a broken one."""
    try:
        return parse_page((pages_folder() / f"{code}.md").read_text(encoding="utf-8"))[0]
    except (OSError, ValueError):
        return None


def catalogue() -> Mapping[str, Code]:
    """All codes by id, sorted."""
    ids = sorted(path.stem for path in pages_folder().glob("PL[0-9][0-9][0-9][0-9].md"))
    return {name: code for name in ids if (code := code_of(name))}


def parse_page(text: str) -> tuple[Code, str]:
    """The entry in the front matter of a page, and the page without it.  Raises ValueError."""
    import yaml  # type: ignore[import-untyped]  # lazily: a run without diagnostics reads no page

    matched = re.match(r"---\n(.*?)\n---\n\n?", text, re.DOTALL)
    if matched is None:
        raise ValueError("the page has no front matter")
    try:
        fields: Any = yaml.safe_load(matched.group(1))
        return Code(fields.pop("code"), **fields), text[matched.end() :]
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as problem:
        raise ValueError(f"the front matter cannot be read: {problem}") from problem


def lookup(word: str) -> Code | None:
    """The code of `PL0202`, `pl202`, `202` or of its name; None where there is none."""
    if matched := re.fullmatch(r"(?:[Pp][Ll])?([0-9]{1,4})", word.strip()):
        return code_of(f"PL{int(matched.group(1)):04d}")
    name = word.strip().lower().replace("_", "-").replace(" ", "-")
    return next((code for code in catalogue().values() if code.name == name), None)


def similar(word: str) -> str:
    """The id or name most like an unknown word, or ""."""
    rows = catalogue()
    digits = re.sub(r"\D", "", word)
    if digits:
        return nearest(f"PL{digits[:4].zfill(4)}", rows)
    return nearest(word, [code.name for code in rows.values()])


def explain(word: str) -> str:
    """The page of a code, given by id, number or name; PL0033 where there is no such code."""
    code = lookup(word)
    if code is not None:
        return page_of(code)
    fix, found = "`pipelink explain` lists all codes", similar(word)
    if found and (other := lookup(found)):
        fix = (
            f"a similar name exists: `{found}` ({other.id if other.name == found else other.name})"
        )
    raise error(
        "PL0033",
        f"unknown code `{word[:60]}`",
        expected="a code like PL0031, its number or its name",
        found=word[:60],
        suggestions=(fix,),
        subject=word,
    )


def page_of(code: Code) -> str:
    """The text of the page of a code, without its front matter."""
    text = (pages_folder() / f"{code.id}.md").read_text(encoding="utf-8")
    return parse_page(text)[1].rstrip() + "\n"


def list_codes() -> str:
    """All codes, one a line, by family."""
    lines: list[str] = []
    family = ""
    for code in catalogue().values():
        if code.id[2:4] != family:
            family = code.id[2:4]
            lines += [*([""] if lines else []), f"PL{family}xx  {FAMILIES.get(family, '')}"]
        lines.append(f"  {code.id}  {code.name}")
    return "\n".join(lines) + "\n"
