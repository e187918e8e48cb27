"""Kernels with clusters, built: which objects they share, and their twins."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from checkout import Checkout

from pipelink_rules.files.codec import read_json
from pipelink_rules.model.linked_kernel import Manifest, TwinReport
from pipelink_rules.toolkit.toolkit import Toolkit

pytestmark = pytest.mark.live
NAME = "gemm_multicast"


def opcodes(cubin: Path, toolkit: Toolkit) -> list[str]:
    from pipelink_rules.link.sass import disassemble

    return [line for line in disassemble(cubin, toolkit).splitlines() if "/*0" in line]


def test_loader_and_mainloop_are_the_objects_of_gemm(built: Checkout) -> None:
    """For a cluster only the tile scheduler is compiled again."""
    used = [
        set(re.findall(r"pl_(\w+_[0-9a-f]{12})::", text))
        for text in (
            (built.megakernel(name) / f"{name}.glue.cu").read_text() for name in ("gemm", NAME)
        )
    ]
    assert {re.sub("_[0-9a-f]{12}$", "", name) for name in used[0] ^ used[1]} == {
        "persistent_tiles",
        "cluster_tiles",
    }
    assert len(used[0] & used[1]) == 3


def test_four_ctas_build_and_are_their_twin(built: Checkout, tmp_path: Path) -> None:
    copy = Checkout(tmp_path / "copy")
    shutil.copytree(built.path, copy.path)
    folder = copy.path / "megakernels" / "gemm_2x2"
    folder.mkdir()
    text = (copy.path / "megakernels" / NAME / "SConscript").read_text()
    text = text.replace(NAME, "gemm_2x2").replace("cluster=(2, 1, 1)", "cluster=(2, 2, 1)")
    (folder / "SConscript").write_text(text)
    done = copy.run("scons megakernels/gemm_2x2 twins=1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CudaCompile  //components/gemm" not in done.stdout
    made = copy.megakernel("gemm_2x2")
    assert read_json(made / "gemm_2x2.twin.json", TwinReport).lto_identical
    manifest = read_json(made / "gemm_2x2.manifest.json", Manifest)
    assert (manifest.cluster, manifest.grid[:1]) == ((2, 2, 1), "4")
    assert {p.name: p.box for p in manifest.parameters if p.box} == {
        "a": (64, 64),
        "b": (128, 64),
        "out": (16, 64),
    }
