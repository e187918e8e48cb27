"""Instrumented runtimes on a GPU: docs/debugging.md, on small shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built import ROOT, built
from numbers_bf16 import upload

from pipelink_rules.launch import load
from pipelink_rules.launch.compare_recording import agrees, compare, report
from pipelink_rules.launch.device_array import DeviceArray
from pipelink_rules.launch.driver import Device, Driver
from pipelink_rules.report.stalls import role_times, stall_report

pytestmark = pytest.mark.gpu
M, N, K = 512, 1024, 1024
NAMES = pytest.mark.parametrize("name", ["gemm", "gemm_multicast"])


def linked(name: str, runtime: str, folder: Path) -> Path:
    """Return a megakernel with another runtime: linked before, or now if there is a toolkit."""
    manifest = built(name)
    from pipelink_rules.cli import main

    found = ROOT / "build" / runtime / name / f"{name}.manifest.json"
    if found.is_file():
        return found
    if main(["link", str(manifest.parent), "-o", str(folder), "--runtime", runtime]):
        pytest.skip(f"no toolkit here to link the {runtime} runtime with")
    return folder / f"{name}.manifest.json"


@pytest.fixture(scope="module")
def arrays(driver: Driver, hopper: Device) -> dict[str, Any]:
    random = np.random.default_rng(3)
    a, _ = upload(driver, random.standard_normal((M, K)))
    b, _ = upload(driver, random.standard_normal((N, K)) / K**0.5)
    return {"a": a, "b": b, "out": DeviceArray(driver, (M, N), "bf16")}


@NAMES
def test_trace_shows_waiting_roles(name: str, arrays: dict[str, Any], tmp_path: Path) -> None:
    kernel = load(linked(name, "trace", tmp_path))
    recording = kernel.trace(**arrays, ctas=2)
    assert {row.cta for row in recording.rows} == {0, 1}
    assert {role.name for role in role_times(recording)} == {"load", "mma+store"}
    for row in recording.rows:
        assert row.operations == len(row.decoded()) > K // 64
        assert all(0 < event.cycles < 10**7 for event in row.decoded())
    assert "bound" in stall_report(recording) or "busy" in stall_report(recording)


@NAMES
def test_recording_matches_the_contracts(name: str, arrays: dict[str, Any], tmp_path: Path) -> None:
    kernel = load(linked(name, "record", tmp_path))
    recording = kernel.record(**arrays)
    results = compare(recording)
    assert agrees(results), report(recording, results)
    assert not recording.problem and len(recording.rows) == 9 * recording.grid


@NAMES
def test_jitter_changes_no_bit(name: str, arrays: dict[str, Any], tmp_path: Path) -> None:
    release, late = load(built(name)), load(linked(name, "jitter", tmp_path))
    out = arrays["out"]
    release(**arrays)
    release.synchronize()
    wanted = out.read()
    for seed in range(10):
        late.seed(seed, cycles=1 << 4 + seed)
        out.poison()
        late(**arrays)
        late.synchronize()
        assert out.read() == wanted, f"seed {seed}"
