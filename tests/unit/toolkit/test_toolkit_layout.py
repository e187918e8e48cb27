"""Toolkits are found in every layout they are shipped in, and their libnvvm where nvlink looks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipelink_rules.toolkit.layout import (
    Incomplete,
    fingerprint_of,
    layout_of,
    root_of_nvcc,
    shim_nvvm,
    stat_key,
)

ENVIRON = {"PATH": "/usr/bin:/bin"}
WHEEL = [
    "bin/nvcc",
    "bin/ptxas",
    "bin/nvlink",
    "bin/fatbinary",
    "nvvm/bin/cicc",
    "nvvm/libdevice/libdevice.10.bc",
    "lib/libnvvm.so.4",
    "lib/libcudadevrt.a",
    "lib/libnvJitLink.so.13",
    "include/cuda_runtime.h",
    "include/crt/host_config.h",
]
RUN_FILE = [
    name.replace("lib/libnvvm.so.4", "nvvm/lib64/libnvvm.so").replace("lib/", "lib64/")
    for name in WHEEL
]


def make(root: Path, files: list[str]) -> Path:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


@pytest.mark.parametrize("files", [WHEEL, RUN_FILE], ids=["wheel", "run file"])
def test_both_layouts_are_complete(tmp_path: Path, files: list[str]) -> None:
    layout = layout_of(make(tmp_path, files), ENVIRON)
    assert layout.libnvvm.name.startswith("libnvvm.so")
    assert layout.nvjitlink is not None
    assert layout.libraries / "libcudadevrt.a" in layout.tools


@pytest.mark.parametrize("missing", sorted(set(WHEEL) - {"lib/libnvJitLink.so.13"}))
def test_what_is_missing_is_named(tmp_path: Path, missing: str) -> None:
    make(tmp_path, [name for name in WHEEL if name != missing])
    if missing == "include/crt/host_config.h":
        assert layout_of(tmp_path, ENVIRON)
        return
    with pytest.raises(Incomplete, match=missing.rsplit("/", 1)[-1].split(".")[0]):
        layout_of(tmp_path, ENVIRON)


def test_without_a_host_compiler_nothing_can_be_compiled(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("pipelink_rules.toolkit.layout.which", lambda *a, **k: None)
    with pytest.raises(Incomplete, match=r"g\+\+"):
        layout_of(make(tmp_path, WHEEL), ENVIRON)


def test_shim_is_made_once_and_repaired_when_it_points_elsewhere(tmp_path: Path) -> None:
    layout = layout_of(make(tmp_path / "cuda", WHEEL), ENVIRON)
    folder = shim_nvvm(layout, tmp_path / "build")
    link = folder / "lib64/libnvvm.so"
    assert os.readlink(link) == str(layout.libnvvm)
    link.unlink()
    link.symlink_to("/nowhere")
    assert shim_nvvm(layout, tmp_path / "build") == folder
    assert os.readlink(link) == str(layout.libnvvm)
    assert os.listdir(link.parent) == ["libnvvm.so"]


def test_a_toolkit_with_an_nvvm_folder_needs_no_shim(tmp_path: Path) -> None:
    layout = layout_of(make(tmp_path / "cuda", RUN_FILE), ENVIRON)
    assert shim_nvvm(layout, tmp_path / "build") == tmp_path / "cuda/nvvm"
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    "name", ["bin/ptxas", "lib/libnvvm.so.4", "include/cuda_runtime.h", "include/crt/host_config.h"]
)
def test_key_and_fingerprint_see_every_part(tmp_path: Path, name: str) -> None:
    layout = layout_of(make(tmp_path, WHEEL), ENVIRON)
    before = stat_key(layout), fingerprint_of(layout, ["nvcc 13.5"])
    (tmp_path / name).write_text("other")
    after = stat_key(layout), fingerprint_of(layout, ["nvcc 13.5"])
    assert before[0] != after[0] and before[1] != after[1]


def test_fingerprint_is_of_contents_not_of_places(tmp_path: Path) -> None:
    one = layout_of(make(tmp_path / "one", WHEEL), ENVIRON)
    two = layout_of(make(tmp_path / "two/deep", WHEEL), ENVIRON)
    assert fingerprint_of(one, ["nvcc 13.5"]) == fingerprint_of(two, ["nvcc 13.5"])
    assert fingerprint_of(one, ["nvcc 13.5"]) != fingerprint_of(two, ["nvcc 13.4"])


def test_a_wrapper_on_the_path_leads_to_its_toolkit() -> None:
    dryrun = "#$ _HERE_=/usr/local/cuda-13.3/bin\n#$ TOP=/usr/local/cuda-13.3/bin/..\n"
    assert root_of_nvcc(Path("/usr/bin/nvcc"), dryrun) == Path("/usr/local/cuda-13.3")
    assert root_of_nvcc(Path("/usr/bin/true"), "") == Path("/usr/bin/true").resolve().parent.parent
