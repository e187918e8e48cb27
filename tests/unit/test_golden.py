"""Golden cases: inputs in a folder, the whole output in `expect.txt` beside them.

    tests/golden/<stage>/<case>/        inputs of the case, and expect.txt
    tests/golden_stages/<stage>.py      run(case: Path) -> str, called in the folder of the case;
                                        or -> its diagnostics, with files relative to the checkout

A case whose name begins with a code must show that code.  To add a stage, add its two parts; to
accept a changed output, run `pytest tests/unit/test_golden.py --update-golden` and read the diff.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from pipelink_rules.diagnostics.render import render_text

TESTS = Path(__file__).resolve().parent.parent
GOLDEN = TESTS / "golden"
STAGES = sorted(path.stem for path in (TESTS / "golden_stages").glob("*.py"))
CASES = sorted(
    case.relative_to(GOLDEN)
    for stage in STAGES
    for case in (GOLDEN / stage).glob("*")
    if case.is_dir()
)


@cache
def stage_module(stage: str) -> ModuleType:
    """The runner of a stage."""
    path = TESTS / "golden_stages" / f"{stage}.py"
    spec = importlib.util.spec_from_file_location(f"golden_stage_{stage}", path)
    assert spec and spec.loader and path.exists(), f"there is no runner {path}"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", CASES, ids=str)
def test_output_is_as_expected(name: Path, request: pytest.FixtureRequest) -> None:
    case = GOLDEN / name
    module = stage_module(name.parts[0])
    with contextlib.chdir(case):
        result = module.run(case)
    actual = result if isinstance(result, str) else render_text(result, root=TESTS.parent)
    actual = actual or "no findings\n"
    code = re.match(r"PL[0-9]{4}", case.name)
    assert code is None or f"[{code.group()}]" in actual, (
        f"the case does not show its code:\n{actual}"
    )
    expect = case / "expect.txt"
    if request.config.getoption("--update-golden"):
        expect.write_text(actual, encoding="utf-8")
    wanted = expect.read_text(encoding="utf-8") if expect.exists() else ""
    if actual != wanted:
        diff = difflib.unified_diff(
            wanted.splitlines(), actual.splitlines(), "expect.txt", "actual", lineterm=""
        )
        pytest.fail("\n".join(diff) + "\naccept with: pytest --update-golden", pytrace=False)


def test_every_stage_has_cases() -> None:
    assert set(STAGES) == {name.parts[0] for name in CASES}
