"""Stage `glue`: `case.txt` names a megakernel and a target; the text is its glue."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from shipped_declarations import placement_of, program_of

from pipelink_rules.glue.emit import emit_glue


def run(case: Path) -> str:
    name, arch = (case / "case.txt").read_text(encoding="utf-8").split()
    return emit_glue(program_of(name, arch), placement_of(name, arch))
