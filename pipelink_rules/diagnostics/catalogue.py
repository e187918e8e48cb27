"""Which codes are there?  Collects the rows of the modules in `codes/`."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

from pipelink_rules.diagnostics import codes
from pipelink_rules.diagnostics.code import Code
from pipelink_rules.diagnostics.suggest import nearest

FAMILIES: Mapping[str, str] = MappingProxyType(
    {
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
        "10": "schedule and grid",
        "11": "numerics",
        "12": "toolkit and link",
        "13": "build rules",
        "14": "launch",
        "99": "a mistake of PipeLink itself",
    }
)
STAGES = ("text", "collect", "check", "place", "compile", "link", "build", "launch", "internal")


@lru_cache(maxsize=1)
def catalogue() -> Mapping[str, Code]:
    """All codes by id, sorted.  Of two rows with one id the first counts; see `clashes`."""
    rows: dict[str, Code] = {}
    for _, code in _rows():
        rows.setdefault(code.id, code)
    return MappingProxyType(dict(sorted(rows.items())))


def clashes() -> list[str]:
    """What is wrong with the rows themselves: shared ids or slugs, unknown families and stages."""
    found: list[str] = []
    seen: dict[str, str] = {}
    for module, code in _rows():
        for word in (code.id, code.slug):
            if word in seen:
                found.append(f"{module}: {word} ({code.id}) is taken by {seen[word]}")
            seen.setdefault(word, f"{code.id} of {module}")
        if not re.fullmatch(r"PL[0-9]{4}", code.id) or code.id[2:4] not in FAMILIES:
            found.append(f"{module}: {code.id} is in no family")
        if module[1:3] != code.id[2:4]:
            found.append(f"{module}: {code.id} belongs into another module")
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code.slug):
            found.append(f"{module}: {code.id} has a slug of other characters: {code.slug}")
        if code.stage not in STAGES:
            found.append(f"{module}: {code.id} has the unknown stage {code.stage}")
        if not code.purpose.endswith("."):
            found.append(f"{module}: the purpose of {code.id} is not a sentence")
    return found


def _rows() -> Iterator[tuple[str, Code]]:
    for module in sorted(item.name for item in pkgutil.iter_modules(codes.__path__)):
        for code in importlib.import_module(f"{codes.__name__}.{module}").CODES:
            yield module, code


def lookup(word: str) -> Code | None:
    """The code of `PL0202`, `pl202`, `202` or of its slug; None where there is none."""
    rows = catalogue()
    if matched := re.fullmatch(r"(?:[Pp][Ll])?([0-9]{1,4})", word.strip()):
        return rows.get(f"PL{int(matched.group(1)):04d}")
    slug = word.strip().lower().replace("_", "-").replace(" ", "-")
    return next((code for code in rows.values() if code.slug == slug), None)


def similar(word: str) -> str:
    """The id or slug most like an unknown word, or ""."""
    rows = catalogue()
    digits = re.sub(r"\D", "", word)
    if digits:
        return nearest(f"PL{digits[:4].zfill(4)}", rows)
    return nearest(word, [code.slug for code in rows.values()])
