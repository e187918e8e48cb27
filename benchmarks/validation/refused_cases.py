"""Read the refused megakernels of refused_on_gpu.yaml and apply their edits in memory.

`findings_of` runs only the check; `declaration_of` and `files_of` are written to a copy of the
repository for the link.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.paths import ROOT

TABLE = Path(__file__).with_name("refused_on_gpu.yaml")
SUFFIXES = {"contract": ".contract.yaml", "source": ".cu"}


@dataclass(frozen=True)
class Case:
    """One invalid megakernel."""

    name: str
    megakernel: str
    codes: tuple[str, ...]
    what: str
    declaration: Mapping[str, Any] = field(default_factory=dict)
    edits: Mapping[str, Mapping[str, list[list[str]]]] = field(default_factory=dict)
    placement: Mapping[str, Any] = field(default_factory=dict)
    glue: tuple[tuple[str, str], ...] = ()
    boxes: Mapping[str, list[int]] = field(default_factory=dict)
    inconclusive: bool = False
    also: tuple[str, ...] = ()  # further errors of the audit of the linked kernel
    sizes: Mapping[str, int] = field(default_factory=dict)
    harmless: str = ""  # why the results can be correct

    @property
    def later(self) -> bool:
        """Return whether files of later stages than the check are edited."""
        return bool(self.placement or self.glue or self.boxes or self.inconclusive)

    @property
    def checked(self) -> bool:
        """Return whether a contract or declaration can express the mistake."""
        return bool(self.edits or self.declaration)


def cases() -> list[Case]:
    """Return all cases, in the order of the file."""
    rows = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    for row in rows:
        row["codes"], row["also"] = tuple(row["codes"]), tuple(row.get("also", ()))
        row["glue"] = tuple((old, new) for old, new in row.get("glue", ()))
    return [Case(**row) for row in rows]


def edited(text: str, pairs: list[list[str]] | tuple[tuple[str, str], ...], where: str) -> str:
    """Replace every old part, which must occur once, by the new one."""
    for old, new in pairs:
        if text.count(old) != 1:
            raise ValueError(f"{where}: {text.count(old)} times {old!r}")
        text = text.replace(old, new)
    return text


def files_of(case: Case) -> dict[str, str]:
    """Return file -> text with the edits of the case."""
    found = {}
    for component, parts in case.edits.items():
        for part, pairs in parts.items():
            name = component + SUFFIXES[part]
            text = (ROOT / name).read_text(encoding="utf-8")
            found[name] = edited(text, pairs, f"{case.name}, {name}")
    return found


def declaration_of(case: Case, *, allowed: bool) -> dict[str, Any]:
    """Return the keywords of `env.Megakernel`; allowed: with `allow` for the codes."""
    import shipped_declarations

    made = dict(shipped_declarations.megakernels()[case.megakernel])
    for key, value in case.declaration.items():
        value = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
        made[key] = {**made.get(key, {}), **value}
    if allowed and case.checked and not case.inconclusive:
        made["allow"] = dict.fromkeys(case.codes, "to see what the GPU makes of it")
    return made


def findings_of(case: Case) -> set[str]:
    """Return the codes that the check reports for the edited contracts and declaration."""
    import shipped_declarations

    from pipelink_rules.check.check import check
    from pipelink_rules.contract.load import parse_contract
    from pipelink_rules.model.target import TARGETS
    from pipelink_rules.program.infer import bind_instances
    from pipelink_rules.program.resolve import resolve
    from pipelink_rules.program.spec import parse_declaration

    contracts = dict(shipped_declarations.contracts())
    for name, text in files_of(case).items():
        if name.endswith(SUFFIXES["contract"]):
            package, _, file = name.rpartition("/")
            label = f"//{package}:{file.removesuffix(SUFFIXES['contract'])}"
            contracts[label] = parse_contract(text, name)
    spec = parse_declaration(**declaration_of(case, allowed=False))
    program = resolve(spec, bind_instances(spec, contracts, {}), "sm_90a")
    return {item.code for item in check(program, TARGETS["sm_90a"])}
