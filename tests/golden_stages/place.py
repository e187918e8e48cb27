"""Runner of the placement's golden cases: problem.yaml in, what `place` says out.

`problem.yaml` is in the form of tests/unit/place/facts.py, plus `rlimit`, the solver's budget.
Beside a `placement.json` the case asks whether that placement solves the problem; a case that
places shows the placement as lines of numbers.
"""

from __future__ import annotations

from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.files.codec import read_json
from pipelink_rules.model.placement import Placement
from pipelink_rules.place.place import place
from pipelink_rules.place.solve import RLIMIT
from pipelink_rules.place.verify import demand
from tests.unit.place.facts import problem_from, read_facts


def run(case: Path) -> str | tuple[Diagnostic, ...]:
    """The findings of the case, or its placement in words."""
    shown = f"tests/golden/place/{case.name}"
    facts, spans = read_facts(case / "problem.yaml", f"{shown}/problem.yaml")
    problem = problem_from(facts, spans)
    saved = case / "placement.json"
    try:
        if saved.exists():
            demand(problem, read_json(saved, Placement), f"{shown}/placement.json")
            return ()
        return _words(place(problem, rlimit=facts.get("rlimit", RLIMIT)))
    except PipelinkError as refused:
        return refused.diagnostics


def _words(placement: Placement) -> str:
    lines = [
        f"{placement.name}: {placement.threads} threads, {placement.entry_registers} registers at "
        f"entry, {placement.shared_bytes:,} bytes of shared memory, {placement.solver}"
    ]
    lines += [f"  stages  {count:>7}  {name}" for name, count in placement.stages]
    lines += [f"  offset  {start:>7}  {name}" for name, start in placement.offsets]
    lines += [f"  mbarrier {start:>6}  {name}" for name, start in placement.barriers]
    lines += [f"  id      {number:>7}  {name}" for name, number in placement.named]
    lines += [f"  warp    {start:>7}  {name}" for name, start in placement.warps]
    lines += [
        f"  group {group.index} {group.registers:>7}  {', '.join(group.roles) or 'idle'}"
        for group in placement.warpgroups
    ]
    lines += [f"  column  {first:>7}  {name}" for name, first in placement.columns]
    if placement.tensor_columns:
        lines += [f"  allocated {placement.tensor_columns:>5}  columns of tensor memory"]
    return "\n".join([*lines, *placement.notes]) + "\n"
