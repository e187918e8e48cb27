"""The golden cases of the compile stage, with the real compiler, linker and assembler."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from linked import variant_of

from pipelink_rules.compile.variant import compile_variant
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.codec import read_json
from pipelink_rules.model.contract import Variant
from pipelink_rules.toolkit.toolkit import Toolkit

GOLDEN = Path(__file__).resolve().parents[2] / "golden/compile"
CASES = sorted(path.parent for path in GOLDEN.glob("PL*/*.cu"))
TILE = {"TM": 128, "TN": 128, "TK": 64}


def compile_case(folder: Path, toolkit: Toolkit, runtime: Path, repository: Path) -> None:
    copts = folder / "copts"
    compile_variant(
        variant_of(folder, **TILE),
        ["scale.cu"],
        [repository / "components/include"],
        copts.read_text().split() if copts.exists() else [],
        [],
        "sm_90a",
        toolkit,
        "out",
        runtime=runtime,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_case_is_refused_with_its_code(
    case: Path,
    toolkit: Toolkit,
    runtime: Path,
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(case, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PipelinkError) as problem:
        compile_case(tmp_path, toolkit, runtime, repository)
    assert [item.code for item in problem.value.diagnostics] == [case.name[:6]]
    left = sorted(path.name for path in (tmp_path / "out").glob("*"))
    assert left in ([], ["scale.contract.cuh"])  # nothing half-made


def test_a_component_that_keeps_the_rules(
    toolkit: Toolkit,
    runtime: Path,
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = GOLDEN / "PL0910_promise_too_small"
    shutil.copytree(case, tmp_path, dirs_exist_ok=True)
    contract = tmp_path / "scale.contract.yaml"
    contract.write_text(contract.read_text().replace("min: TN // 4", "min: TN // 2 + 24"))
    monkeypatch.chdir(tmp_path)
    compile_case(tmp_path, toolkit, runtime, repository)
    found = read_json("out/scale.interface.json", Variant)
    measured = dict(found.measured)["apply"]
    assert 64 < measured.registers <= 88 and measured.registers % 8 == 0
    assert (measured.entry, measured.stack_bytes, measured.shared_bytes) == (24, 0, 0)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "scale.contract.cuh",
        "scale.contract.yaml",
        "scale.fatbin",
        "scale.interface.json",
        "scale.shadow.ptx",
    ]
