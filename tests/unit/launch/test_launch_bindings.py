"""The real bindings against a driver library without a GPU: argument kinds, cost of a call."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from manifests import GEMM, saved

from pipelink_rules.model.linked_kernel import KernelParameter, Workspace

HERE = Path(__file__).parent
pytest.importorskip("cuda.bindings.driver", reason="needs cuda-bindings (the toolkit extra)")


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("needs g++ to build the driver stub")
    folder = tmp_path_factory.mktemp("stub")
    source, library = HERE / "stub_driver.cpp", folder / "libcuda.so.1"
    command = [compiler, "-std=c++17", "-shared", "-fPIC", "-w", str(source), "-o", str(library)]
    subprocess.run([*command, f"-Wl,-soname,{library.name}"], check=True)
    return folder


def run(stub: Path, manifest: Path, calls: int, log: Path | None = None) -> float:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(stub)}
    environment["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, sys.path)])
    if log:
        environment["STUB_LOG"] = str(log)
    command = [sys.executable, str(HERE / "call_stub.py"), str(manifest), str(calls)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


def lines(stub: Path, folder: Path, **changes: Any) -> list[str]:
    run(stub, saved(folder, **changes), 0, folder / "log")
    return (folder / "log").read_text().splitlines()


def test_what_the_driver_gets(stub: Path, tmp_path: Path) -> None:
    assert lines(stub, tmp_path) == [
        "load ELF",
        "kernel pl_gemm_bias",
        "set 8 214016",
        "map 9 0x10000 [128 300] 256 [64 128] 1 0 3 3 0",
        "map 9 0x20000 [128 512] 256 [64 256] 1 0 3 3 0",
        "map 9 0x40000 [512 300] 1024 [64 16] 1 0 3 3 0",
        "launch 0x4000 6 384 214016 stream 0x7 N 512",
    ]


def test_a_cluster(stub: Path, tmp_path: Path) -> None:
    found = lines(stub, tmp_path, cluster=(2, 1, 1))
    assert found[-2:] == ["launch 0x4000 6 384 214016 with 1 attributes", "attribute 4 = 2"]
    assert "clusters in a grid of 2" in found


def test_ctas_that_wait_for_each_other(stub: Path, tmp_path: Path) -> None:
    found = lines(
        stub,
        tmp_path,
        coresident=True,
        workspace=(Workspace("sum.done", "counters", "u32", "M", True),),
        parameters=(*GEMM.parameters, KernelParameter("counters", "sum.done", "u32")),
    )
    assert found[3:5] == ["resident 0x4000 384 214016", "allocate 1280"]
    assert found[-3:] == [
        "clear 0x60000 = 0, 320, stream 0x7",
        "launch 0x4000 6 384 214016 with 1 attributes",
        "attribute 2 = 1",
    ]


def test_a_watchdog(stub: Path, tmp_path: Path) -> None:
    found = lines(stub, tmp_path, runtime="watchdog")
    assert found[3:6] == [
        "host 64 flags 3",
        "global pl_watchdog_report",
        "copy 0x5000 <- 0xd000, 8",
    ]


def test_a_call_with_cached_arguments_costs_under_10_us(stub: Path, tmp_path: Path) -> None:
    assert run(stub, saved(tmp_path), 1000) < 10
