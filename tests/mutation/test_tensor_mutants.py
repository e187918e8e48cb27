"""Wrong operations on tensor memory do not pass: each is refused, or runs well however it runs."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml
from mutants import Mutant, applied, mutants_of
from unit.check.interleavings import OK, explore
from unit.check.mutations import with_known_bytes
from unit.check.programs import stage

from pipelink_rules.check.check import check
from pipelink_rules.check.protocol.cases import ranges
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.model import unroll
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.program import Program
from pipelink_rules.model.target import TARGETS

PARTS = Path(__file__).resolve().parents[1] / "golden_stages" / "check_components"
# kinds of changes to operations; with these nothing may be left to a reason
STRICT = ("without op", "without fence", "tensor form", "verb")
BODIES = (*STRICT, "without await", "doubled op", "order", "loop", "depth", "lag", "arrivals")


def checked(name: str, text: str, mutant: Mutant, data: dict[str, Any]) -> Program | str:
    """The program where it is accepted, else the first code."""
    changed = yaml.safe_dump(applied(data, mutant), sort_keys=False)
    with tempfile.TemporaryDirectory() as folder:
        try:
            settings = {"base": "tensor", "edits": {name: [[text, changed]]}}
            program: Program = stage().program_of(Path(folder), settings)
        except PipelinkError as problem:
            return problem.diagnostics[0].code
    found = check(program, TARGETS[program.target])
    return found[0].code if found else program


def runs_well(program: Program) -> bool:
    """Every interleaving of a few work tiles, for the smallest stages and few trips."""
    protocol = ProtocolIndex(program)
    stages = {channel.name: channel.minimum for channel in program.channels}
    for trip in (1, 2):
        work = {field: values.clip(trip) for field, values in ranges(program).items()}
        composition, problems = compose(protocol, stages, [work])
        if problems or explore(unroll(with_known_bytes(composition), 3), 60_000) != OK:
            return False
    return True


def test_every_wrong_operation_is_refused() -> None:
    refused: Counter[str] = Counter()
    accepted: list[Mutant] = []
    for name in ("accumulate", "drain"):
        text = (PARTS / f"{name}.contract.yaml").read_text(encoding="utf-8")
        data = yaml.safe_load(text)
        for mutant in mutants_of(name, data):
            if mutant.kind not in BODIES:
                continue
            found = checked(name, text, mutant, data)
            if isinstance(found, str):
                refused[found] += 1
                continue
            assert mutant.kind not in STRICT, mutant
            assert runs_well(found), mutant
            accepted.append(mutant)
    assert sum(refused.values()) > 70 and refused["PL0509"] >= 10 and refused["PL0504"] >= 1
    assert 0 < len(accepted) < 25  # doubled fences and waits, other numbers of rounds
