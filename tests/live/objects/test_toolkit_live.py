"""The self-test of toolkits, with real ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipelink_rules.compile.object import compile_object
from pipelink_rules.toolkit.find import Candidate, find_toolkit, nvjitlink_reason, probe_candidate
from pipelink_rules.toolkit.toolkit import Toolkit, ToolkitRejected, version_tuple

OLD = Path("/usr/local/cuda-13.0")


def test_the_toolkit_links_what_13_0_and_13_1_do_not(toolkit: Toolkit) -> None:
    assert version_tuple(toolkit.version) >= (13, 2)
    assert len(toolkit.fingerprint) == 64
    assert (Path(toolkit.nvvmpath) / "lib64/libnvvm.so").exists()


def test_self_test_is_cached(toolkit: Toolkit, tmp_path: Path, monkeypatch) -> None:
    first = find_toolkit(tmp_path)
    monkeypatch.setattr("pipelink_rules.toolkit.find.probe", None)
    assert find_toolkit(tmp_path) == first
    assert first.fingerprint == toolkit.fingerprint


@pytest.mark.skipif(not (OLD / "bin/nvcc").exists(), reason="there is no CUDA 13.0")
def test_13_0_is_rejected_with_the_reason(tmp_path: Path) -> None:
    found = probe_candidate(Candidate("test", OLD), tmp_path, os.environ)
    assert isinstance(found, ToolkitRejected)
    assert found.version.startswith("13.0.")
    assert "drops the 'a' of sm_90a" in found.reason


def test_both_back_ends_pass(toolkit: Toolkit, tmp_path: Path) -> None:
    if not toolkit.nvjitlink:
        pytest.skip("the toolkit has no libnvJitLink")
    assert nvjitlink_reason(toolkit, tmp_path, os.environ) == ""


def test_hidden_flags_of_the_caller_do_not_reach_the_compiler(
    toolkit: Toolkit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """-G cannot be combined with link-time optimization, so it would fail here."""
    source = tmp_path / "one.cu"
    source.write_text('extern "C" __device__ float one() { return 1.0f; }\n')
    for name in ("NVCC_APPEND_FLAGS", "NVCC_PREPEND_FLAGS"):
        monkeypatch.setenv(name, "-G --no-such-option")
    compile_object(source, tmp_path / "one.fatbin", "sm_90a", toolkit)
    assert (tmp_path / "one.fatbin").stat().st_size > 0
