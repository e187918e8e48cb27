"""`pipelink check` answers in under half a second: an idle core needs 0.15 to 0.25 s.

The seconds of the processor are measured, not those of the clock: other work on the machine must
not decide.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from shipped_declarations import megakernels, program_of

from pipelink_rules.files.codec import write_json
from pipelink_rules.program.spec import parse_declaration

ROOT = Path(__file__).resolve().parents[3]
NAME = "gemm_bias_gelu_epilogue_warps"  # the most roles and rings
LONGEST = 0.5  # seconds
# What only other commands need, and what would cost more than the check itself.
HEAVY = {"z3", "SCons", "numpy", "rich", "cuda", "torch", "jsonschema", "filelock"}


def run(*words: str) -> tuple[float, str]:
    """Seconds of the processor, and what was printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent, done.stdout


@pytest.fixture(scope="module", params=["program", "spec"])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A megakernel as the build writes it, and as it was declared (contracts are read then)."""
    noun = (
        program_of(NAME) if request.param == "program" else parse_declaration(**megakernels()[NAME])
    )
    return write_json(tmp_path_factory.mktemp("speed") / f"{NAME}.{request.param}.json", noun)


def test_it_answers_in_half_a_second(file: Path) -> None:
    words = ("-m", "pipelink_rules.cli", "check", "--root", str(ROOT), str(file))
    spent, text = min(run(*words) for _ in range(3))
    assert "no errors or warnings" in text
    assert spent < LONGEST


def test_it_loads_nothing_heavy(file: Path) -> None:
    code = (
        "import json, sys; from pipelink_rules.cli import main; main(sys.argv[1:]); "
        "print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    _, text = run("-c", code, "check", "--root", str(ROOT), str(file))
    assert not HEAVY & set(json.loads(text.splitlines()[-1]))
