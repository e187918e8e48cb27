"""Golden stage `check`: what checking a program says.

A case is `case.json`: `base`, one of the declarations in `check_components/` (gemm, tensor, ...:
without edits they have no finding), and `edits`: file -> [[text, replacement], ...], made to the
declaration (SConscript) and to the contracts (`load`, ...) before they are read.  `flags` gives
code-generation flags to a component.  `"then": "place"` goes on to the placement of a program
without findings.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pipelink_rules.check.check import check, resolve_checked
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.diagnostics.allow import apply_allowances, unused
from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.diagnostics.render import render_text
from pipelink_rules.model.program import MegakernelSpec, Program
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place.place import place
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.spec import parse_declaration

PARTS = Path(__file__).resolve().parent / "check_components"


def run(case: Path) -> str:
    """The text a user would see."""
    settings = json.loads((case / "case.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        found = findings(Path(folder), settings)
        text = render_text(found, root=folder, outcome="nothing was compiled")
    return text or "no findings\n"


def findings(root: Path, settings: dict[str, Any]) -> tuple[Diagnostic, ...]:
    """The findings of an edited base; `root` is filled with the files that they quote."""
    try:
        program = program_of(root, settings)
    except PipelinkError as problem:
        return problem.diagnostics
    found = apply_allowances(check(program, TARGETS[program.target]), program.spec)
    found = (*found, *unused(found, program.spec))
    if found or "then" not in settings:
        return found
    try:
        place(placement_problem(program))
    except PipelinkError as problem:
        return problem.diagnostics
    return ()


def program_of(root: Path, settings: dict[str, Any]) -> Program:
    """The program of an edited base, its files written below `root`."""
    edits = settings.get("edits", {})
    contracts = {}
    (root / "parts").mkdir()
    for path in sorted(PARTS.glob("*.contract.yaml")):
        name = path.name.split(".")[0]
        text = _edited(path.read_text(encoding="utf-8"), edits.get(name, ()))
        (root / "parts" / path.name).write_text(text, encoding="utf-8")
        contracts[f"//parts:{name}"] = (text, f"parts/{path.name}")
    declaration = PARTS / f"{settings['base']}.SConscript"
    text = _edited(declaration.read_text(encoding="utf-8"), edits.get("SConscript", ()))
    place = f"megakernels/{settings['base']}/SConscript"
    (root / place).parent.mkdir(parents=True)
    (root / place).write_text(text, encoding="utf-8")
    spec = _declared(text, place)
    flags = {f"//parts:{name}": value for name, value in settings.get("flags", {}).items()}
    used = {item.label: parse_contract(*contracts[item.label]) for item in spec.instances}
    return resolve_checked(spec, bind_instances(spec, used, flags), spec.archs[0])


def _edited(text: str, edits: Any) -> str:
    for old, new in edits:
        assert text.count(old) == 1, f"{text.count(old)} times in the text: {old!r}"
        text = text.replace(old, new)
    return text


def _declared(text: str, place: str) -> MegakernelSpec:
    """The one megakernel that an SConscript declares, as the build would read it."""
    found: list[MegakernelSpec] = []

    class Environment:
        def Megakernel(self, **clauses: Any) -> None:
            line = sys._getframe(1).f_lineno
            found.append(parse_declaration(**clauses, span=Span(place, line, 1), text=text))

    exec(compile(text, place, "exec"), {"env": Environment()})  # a test's own file
    (spec,) = found
    return spec
