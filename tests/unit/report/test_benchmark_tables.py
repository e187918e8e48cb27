"""The benchmark scripts: every megakernel has a reference, tables show what was measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.measure import references, tables
from benchmarks.monolith import baseline
from tests import shipped_declarations

ROOT = Path(__file__).parents[3]

MEGAKERNELS = sorted({**shipped_declarations.megakernels(), **shipped_declarations.built_by_name()})


@pytest.mark.parametrize("name", MEGAKERNELS)
def test_every_megakernel_has_a_reference(name: str) -> None:
    found = references.reference_of(name, {"x": 16384})
    assert found is not None
    assert len(found.shapes) >= 12
    assert found.unit in ("TFLOP/s", "TB/s") and found.work(found.timed) > 1e9


def test_gemm_shapes_are_ragged() -> None:
    shapes = references.GEMM_SHAPES
    assert any(m % 128 for m, _, _ in shapes) and any(n % 256 for _, n, _ in shapes)
    assert any(k % 64 for _, _, k in shapes) and any(k < 64 for _, _, k in shapes)
    assert all(n % 8 == 0 and k % 8 == 0 for _, n, k in shapes)


RESULTS: dict[str, Any] = {
    "date": "2026-01-02 03:04 UTC",
    "card": "NVIDIA H200",
    "driver": "580.1",
    "driver_cuda": "13.0",
    "toolkit": "13.5.37",
    "torch": "2.0",
    "command": "python run.py",
    "parts": {
        "correctness": {
            "rows": [
                {"megakernel": "gemm", "sizes": {"M": 1}, "worst": 0.25, "relative_norm": 1e-3,
                 "verdict": "ok"},
                {"megakernel": "gemm", "sizes": {"M": 2}, "worst": 3.0, "relative_norm": 1e-2,
                 "verdict": "2 elements not written"},
            ]
        },
        "repeat": {"rows": [{"megakernel": "gemm", "launches": 1000, "differing": 1}]},
        "sanitizer": {"rows": [{"megakernel": "gemm", "tool": "memcheck", "verdict": "ok"}]},
        "gemm": {
            "rows": [
                {"megakernel": "gemm", "sizes": {"M": 1, "N": 2, "K": 3}, "rival": "cuBLAS",
                 "unit": "TFLOP/s", "rate": 700.0, "rival_rate": 710.0, "a_us": 10.0,
                 "b_us": 9.9, "ratio": 1.0014, "ratio_low": 0.99, "ratio_high": 1.01,
                 "pairs": 300},
            ]
        },
    },
}  # fmt: skip


def test_the_page(tmp_path: Path) -> None:
    file = tmp_path / "h200.json"
    file.write_text(json.dumps(RESULTS))
    text = tables.page([file])
    assert "## NVIDIA H200" in text and "driver 580.1 (CUDA 13.0), toolkit 13.5.37" in text
    assert (
        "| gemm | 2 | 3.00 | 1.0e-02 | 1 wrong: 2 elements not written | 999 of 1000 | - | ok | - |"
        in text
    )
    assert "| gemm | 1x2x3 | cuBLAS | 10.0 | 700.00 | 9.9 | 710.00 | TFLOP/s | 1.0014 |" in text


def test_the_page_in_the_repository_is_made_of_the_results_in_it() -> None:
    results = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
    if not results:
        pytest.skip("nothing was measured yet")
    assert tables.PAGE.read_text() == tables.page(results), (
        "run python -m benchmarks.measure.tables"
    )


def test_the_summary_of_no_results() -> None:
    text = tables.summary_text({"date": "today", "command": "x", "parts": {}})
    assert text == "today; `x`."


@pytest.mark.parametrize("cluster", [1, 2])
def test_the_baseline_says_what_its_source_says(cluster: int) -> None:
    source = baseline.SOURCE.read_text()
    manifest = baseline.manifest(cluster)
    assert f"__launch_bounds__({manifest.threads}, 1)" in source
    assert "pipelink" not in source.lower().replace("nothing here comes from pipelink", "")
    from pipelink_rules.expression.evaluate import value_of

    sizes = {"M": 4096, "N": 4096, "sms": 132}
    assert value_of(manifest.grid, sizes) == 132
    assert value_of(manifest.grid, {**sizes, "M": 1, "N": 8}) == cluster
