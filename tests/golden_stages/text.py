"""Golden stage `text`: what reading and binding a contract says.

A case is a `*.contract.yaml`, and optionally `case.json` with what to do with it:
`arguments` and `flags` to bind it, or `sidecar`, `stage_file` or `explain` instead of a contract.
"""

from __future__ import annotations

import json
from pathlib import Path

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.load import load_contract
from pipelink_rules.contract.sidecar import load_sidecar
from pipelink_rules.diagnostics.catalogue import explain
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.render import render_text
from pipelink_rules.files.codec import read_json
from pipelink_rules.model.program import Program
from pipelink_rules.model.source_span import Span


def run(case: Path) -> str:
    """The text a user would see."""
    settings = case / "case.json"
    todo = json.loads(settings.read_text()) if settings.exists() else {}
    try:
        if "sidecar" in todo:
            load_sidecar(todo["sidecar"])
        elif "stage_file" in todo:
            read_json(todo["stage_file"], Program)
        elif "explain" in todo:
            explain(todo["explain"])
        else:
            _contract(case, todo)
    except PipelinkError as problem:
        return render_text(problem.diagnostics, outcome="nothing was compiled")
    return "no findings\n"


def _contract(case: Path, todo: dict[str, object]) -> None:
    found = sorted(path.name for path in case.glob("*.contract.yaml"))
    contract = load_contract(str(todo.get("contract", found[0] if found else "")))
    if "arguments" in todo:
        place = Span("SConscript", *_line_of("SConscript", contract.component))
        bind(contract, todo["arguments"], todo.get("flags", ()), place)  # type: ignore[arg-type]


def _line_of(file: str, word: str) -> tuple[int, int, int]:
    """Where the instance is declared, as a declaration would say."""
    for number, line in enumerate(Path(file).read_text().split("\n"), 1):
        if word in line:
            start = line.index('"')
            return number, start + 1, len(line.rstrip(", ")) - start
    raise ValueError(f"{file} has no {word}")
