"""Bugs that others met in the open: the same mistake does not link, the fixed form does."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from link_fixtures import bare_variant
from programs import stage

from pipelink_rules.actions.component import check_measurements
from pipelink_rules.check.check import check
from pipelink_rules.compile.ptx_scan import Sources, scan
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.contract import Registers, Role
from pipelink_rules.model.source_span import Expr
from pipelink_rules.model.target import TARGETS
from pipelink_rules.model.variant import Measured
from pipelink_rules.place.place import place
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.toolkit.ptx import read_ptx

TABLE = Path(__file__).parent / "public_bugs" / "threads.yaml"
THREADS: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
CASES = [entry for entry in THREADS if "code" in entry]


def linked(base: str, edits: dict[str, Any]) -> list[str]:
    """Codes of a composition, from its texts to its placement."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = stage().program_of(Path(folder), {"base": base, "edits": edits})
            found = check(program, TARGETS[program.target])
            if found:
                return [item.code for item in found]
            place(placement_problem(program))
        except PipelinkError as problem:
            return [item.code for item in problem.diagnostics]
    return []


def scanned(body: str) -> list[str]:
    """Codes of an entry whose PTX has this body."""
    bare = bare_variant("scale")
    variant = replace(bare, contract=replace(bare.contract, roles=(Role("apply", Expr("4")),)))
    text = (
        ".version 9.5\n.target sm_90a\n.address_size 64\n"
        f".visible .func {variant.symbol('apply')}(\n\t.param .b64 p0\n)\n{{\n{body}\n\tret;\n}}\n"
    )
    return [i.code for i in scan(read_ptx(text), variant, Sources({"scale.cu": ""}), frozenset())]


def probed(promised: int, needed: int) -> list[str]:
    """Codes of a role that promises fewer registers than its object needs, or not."""
    registers = Registers(Expr(str(promised)), Expr("64"), Expr("24"))
    role = Role("apply", Expr("4"), registers=registers)
    try:
        check_measurements([role], {"apply": Measured(needed, 24, 0, 0)}, "scale")
    except PipelinkError as problem:
        return [item.code for item in problem.diagnostics]
    return []


def more_barriers(number: int) -> dict[str, Any]:
    """Edits: `number` more named barriers, each used once a work tile."""
    names = [f"more{index}" for index in range(number)]
    lines = "".join(f"  {name}: {{roles: [add], count: 128}}\n" for name in names)
    syncs = "".join(f"      - sync {name}\n" for name in names)
    return {
        "join": [
            ["named_barriers:\n", f"named_barriers:\n{lines}"],
            ["      - fence async\n", f"{syncs}      - fence async\n"],
        ]
    }


def forms(entry: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Findings of the wrong and of the fixed form."""
    if "ptx" in entry:
        return scanned(entry["ptx"]["wrong"]), scanned(entry["ptx"]["fixed"])
    if "measured" in entry:
        needed = entry["measured"]["registers"]
        return probed(entry["measured"]["promised"], needed), probed(needed, needed)
    if "barriers" in entry:
        wrong, fixed = (more_barriers(entry["barriers"][form]) for form in ("wrong", "fixed"))
        return linked(entry["base"], wrong), linked(entry["base"], fixed)
    return linked(entry["base"], entry["wrong"]), linked(entry["base"], entry.get("fixed", {}))


@pytest.mark.parametrize("entry", CASES, ids=lambda entry: entry["thread"][0])
def test_wrong_form_is_refused_and_fixed_form_links(entry: dict[str, Any]) -> None:
    wrong, fixed = forms(entry)
    assert entry["code"] in wrong
    assert fixed == []


def test_every_thread_is_caught_or_has_a_reason() -> None:
    for entry in THREADS:
        assert ("code" in entry) != ("not_yet" in entry), entry["thread"]
    names = [name for entry in THREADS for name in entry["thread"]]
    assert len(set(names)) >= 50
