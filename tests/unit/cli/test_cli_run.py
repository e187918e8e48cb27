"""`pipelink run` on the driver stub's machine: sizes, launches, outputs that were not written."""

from __future__ import annotations

import ctypes
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from fake_driver import FakeDriver
from manifests import GEMM, saved

from pipelink_rules.cli import main
from pipelink_rules.cli.run import values_of
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.linked_kernel import AllowedDiagnostics


class MemoryDriver(FakeDriver):
    """With memory (of the host) and events."""

    def cuMemAlloc(self, size: int) -> tuple[int, int]:
        buffer = ctypes.create_string_buffer(size + 256)
        pointer = (ctypes.addressof(buffer) + 255) // 256 * 256
        self.owners[pointer] = 0
        self.__dict__.setdefault("memory", {})[pointer] = buffer
        return 0, pointer

    def cuMemFree(self, pointer: int) -> tuple[int]:
        del self.__dict__["memory"][pointer]
        return (0,)

    def cuMemcpyHtoD(self, target: int, source: int, size: int) -> tuple[int]:
        ctypes.memmove(target, source, size)
        return (0,)

    def cuMemcpyDtoH(self, target: int, source: int, size: int) -> tuple[int]:
        ctypes.memmove(target, source, size)
        return (0,)

    def cuEventCreate(self, flags: int) -> tuple[int, int]:
        return 0, 1

    def cuEventRecord(self, event: int, stream: int) -> tuple[int]:
        return (0,)

    def cuEventSynchronize(self, event: int) -> tuple[int]:
        return (0,)

    def cuEventElapsedTime(self, start: int, end: int) -> tuple[int, float]:
        return 0, 0.0125


def test_run(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = MemoryDriver(parameters=8)
    monkeypatch.setattr("pipelink_rules.launch.driver.cuda_driver", lambda: driver)
    words = ["M=20", "N=16", "K=8", "scale=0.5", "--times", "3"]
    assert main(["run", str(saved(tmp_path)), *words]) == 0
    text = capsys.readouterr().out
    assert "gemm_bias (sm_90a) on NVIDIA H200" in text
    assert "a: bf16 [20, 8], in" in text
    assert "out: bf16 [20, 16], out; 320 elements not written" in text
    assert "3 launches: median 12.5 us, best 12.5 us" in text
    assert len(driver.launched) == 4 and not driver.__dict__["memory"]


def test_a_forced_link_says_so(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = MemoryDriver(parameters=8)
    monkeypatch.setattr("pipelink_rules.launch.driver.cuda_driver", lambda: driver)
    forced = (AllowedDiagnostics("PL0921", "`gemm_bias` has a stack", "outside of the loop only"),)
    manifest = dataclasses.replace(GEMM, allowed=forced)
    words = ["M=20", "N=16", "K=8", "--times", "0"]
    assert main(["run", str(saved(tmp_path, manifest)), *words]) == 0
    text = capsys.readouterr().out
    assert "PL0921 allowed" in text and "because: outside of the loop only" in text


def test_without_a_gpu(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "pipelink_rules.launch.driver.cuda_driver", lambda: FakeDriver(init_result=100)
    )
    assert main(["run", str(saved(tmp_path))]) == 1
    assert "PL1417" in capsys.readouterr().err


def test_sizes_by_default() -> None:
    sizes, scalars = values_of(GEMM, ["M=7"])
    assert sizes == {"M": 7, "N": 4096, "K": 4096} and scalars == {"scale": 1.0}
    with pytest.raises(PipelinkError, match="PL1402"):
        values_of(GEMM, ["Q=1"])


def test_random_numbers_are_ordinary() -> None:
    import array
    import struct

    from pipelink_rules.launch.device_array import DeviceArray
    from pipelink_rules.launch.driver import Driver

    driver = Driver(MemoryDriver())
    made = DeviceArray(driver, (1000, 33), "f32")
    made.fill_random()
    values = array.array("f", made.read())
    assert len(set(values)) > 30000 and all(0.5 <= abs(value) < 2 for value in values)
    half = DeviceArray(driver, (64, 8), "bf16")
    half.fill_random()
    for bits in array.array("H", half.read()):
        assert 0.5 <= abs(struct.unpack("<f", struct.pack("<I", bits << 16))[0]) < 2
    half.poison()
    assert half.left_poisoned() == 512
