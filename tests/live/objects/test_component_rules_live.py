"""The golden cases of the compile stage, with the real compiler, linker and assembler."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from link_fixtures import variant_of

from pipelink_rules.actions.component import compile_component, compile_probe, probe_component
from pipelink_rules.actions.requests import CompileRequest
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.codec import read_json
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.toolkit import Toolkit

GOLDEN = Path(__file__).resolve().parents[2] / "golden/compile"
CASES = sorted(path.parent for path in GOLDEN.glob("PL*/*.cu"))
TILE = {"TM": 128, "TN": 128, "TK": 64}


def compile_case(folder: Path, toolkit: Toolkit, runtime: Path, repository: Path) -> None:
    copts = folder / "copts"
    (source,) = folder.glob("*.cu")
    include = repository / "components/include"
    headers = tuple(str(path) for path in include.rglob("*.cuh"))
    variant = variant_of(folder, **TILE)
    request = CompileRequest(
        label="//case:scale",
        variant=lambda: variant,
        sources=(source.name,),
        includes=(str(include),),
        copts=tuple(copts.read_text().split()) if copts.exists() else (),
        defines=(),
        arch="sm_90a",
        out_dir="out",
        declared=(),
        strict=(folder / "strict").is_file(),
    )
    stem = Path("out") / variant.contract.component
    written = [".object.json", ".probe.fatbin"]
    try:
        compile_component(request, toolkit, headers)
        compile_probe(request, toolkit)
        probe_component(request, str(runtime), toolkit)
    except BaseException:
        written += [".fatbin", ".shadow.ptx"]
        raise
    finally:  # as a build removes what a failed action and its inputs leave
        for suffix in written:
            Path(f"{stem}{suffix}").unlink(missing_ok=True)


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
    (contract,) = case.glob("*.contract.yaml")
    assert left in ([], [contract.with_suffix(".cuh").name])  # no partial output


def test_valid_component_compiles(
    toolkit: Toolkit,
    runtime: Path,
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = GOLDEN / "PL0910_declared_minimum_too_small"
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


# An index that is unknown at compile time puts the array into local memory.
DYNAMIC_INDEX = """float v[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) v[i] = port.acc[i];
  port.acc[0] = v[work.n & 63] + v[(work.n >> 8) & 63];"""
# Volatile reads of the clock keep their order, and the first is used last: all are live together.
MANY_VALUES = """float v[320];
#pragma unroll
  for (int i = 0; i < 320; ++i)
    asm volatile("{.reg .u32 t; mov.u32 t, %%clock; mov.b32 %0, t;}" : "=f"(v[i]));
#pragma unroll
  for (int i = 0; i < 320; ++i) port.acc[i % 64] = port.acc[i % 64] * v[319 - i] + 1.0f;"""


@pytest.mark.parametrize(
    ("body", "code", "word"),
    [
        pytest.param(DYNAMIC_INDEX, "PL0902", "local memory", id="dynamic index"),
        pytest.param(MANY_VALUES, "PL0910", "than a thread can have", id="many values"),
    ],
)
def test_errors_that_only_the_probe_detects(
    body: str,
    code: str,
    word: str,
    toolkit: Toolkit,
    runtime: Path,
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(GOLDEN / "PL0910_declared_minimum_too_small", tmp_path, dirs_exist_ok=True)
    source = tmp_path / "scale.cu"
    head, _, _ = source.read_text().partition("#pragma unroll")
    source.write_text(f"{head}  {body}\n}}\n")
    contract = tmp_path / "scale.contract.yaml"
    contract.write_text(contract.read_text().replace("min: TN // 4", "min: 240"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PipelinkError) as problem:
        compile_case(tmp_path, toolkit, runtime, repository)
    (finding,) = problem.value.diagnostics
    assert (finding.code, word in finding.message) == (code, True)
