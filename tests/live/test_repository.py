"""The megakernels of this repository, built: every claim that needs no GPU."""

from __future__ import annotations

import re

import pytest
from checkout import Checkout, copy_of_repository
from shipped_declarations import megakernels, pairs

from pipelink_rules.files.atomic import sha256
from pipelink_rules.files.codec import read_json
from pipelink_rules.model.linked_kernel import Audit, Manifest, TwinReport
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.place.verify import verify

pytestmark = pytest.mark.live
PAIRS = pytest.mark.parametrize(("name", "arch"), pairs())
SAMPLES = ["gemm_bias_gelu_epilogue_warps", "scaled_add"]  # a handover; two variants of a source


def test_at_least_eight_megakernels() -> None:
    assert len(megakernels()) >= 8


@PAIRS
def test_linked_is_the_lto_twin(built: Checkout, name: str, arch: str) -> None:
    twin = read_json(built.megakernel(name, arch) / f"{name}.twin.json", TwinReport)
    assert twin.lto_identical, twin.lto_difference
    assert twin.lto.text_sha256 == twin.linked.text_sha256
    assert twin.lto.instructions > 100


@PAIRS
def test_native_twin_has_the_same_registers_and_spills(
    built: Checkout, name: str, arch: str
) -> None:
    twin = read_json(built.megakernel(name, arch) / f"{name}.twin.json", TwinReport)
    assert twin.native.spill_stores == twin.native.spill_loads == twin.native.stack_bytes == 0
    placement = read_json(built.megakernel(name, arch) / f"{name}.placement.json", Placement)
    if placement.setmaxnreg:  # otherwise the compiler may use any number below the bound
        assert twin.native.registers == twin.linked.registers


@PAIRS
def test_nothing_is_spilled_called_or_static(built: Checkout, name: str, arch: str) -> None:
    audit = read_json(built.megakernel(name, arch) / f"{name}.audit.json", Audit)
    assert audit.stack_bytes == audit.spill_stores == audit.spill_loads == 0
    assert audit.static_shared_bytes == 0
    # The compiler adds a trap after every deallocation of tensor memory.
    assert all("tcgen05_guardrail_trap" in call for call in audit.calls), audit.calls
    assert not audit.warnings


@PAIRS
def test_machine_code_has_the_registers_that_were_placed(
    built: Checkout, name: str, arch: str
) -> None:
    folder = built.megakernel(name, arch)
    audit = read_json(folder / f"{name}.audit.json", Audit)
    placement = read_json(folder / f"{name}.placement.json", Placement)
    program = read_json(folder / f"{name}.program.json", Program)
    assert verify(placement_problem(program), placement) == []
    wanted = sorted(
        {g.registers for g in placement.warpgroups if g.registers != placement.entry_registers}
    )
    assert sorted(set(audit.setmaxnreg)) == (wanted if placement.setmaxnreg else [])


@PAIRS
def test_manifest_describes_its_cubin(built: Checkout, name: str, arch: str) -> None:
    folder = built.megakernel(name, arch)
    manifest = read_json(folder / f"{name}.manifest.json", Manifest)
    assert manifest.cubin_sha256 == sha256(folder / manifest.cubin)
    assert {tensor.name for tensor in manifest.tensors} == set(megakernels()[name]["tensors"])
    text = (folder / f"{name}.map.txt").read_text()
    for word in ("Shared memory", "Warps and registers", "Connections"):
        assert word in text


def test_epilogue_warps_reuse_the_objects_of_the_fused_kernel(built: Checkout) -> None:
    """Loader and mainloop of the fused and of the split epilogue are the same files."""
    programs = [
        read_json(built.megakernel(name) / f"{name}.program.json", Program)
        for name in ("gemm_bias_gelu_128", "gemm_bias_gelu_epilogue_warps")
    ]
    fused, split = ({i.name: i.variant.name for i in p.instances} for p in programs)
    assert fused == split
    assert len(programs[1].roles) == len(programs[0].roles) + 1


def test_the_table_names_every_megakernel_and_its_twin(built: Checkout) -> None:
    done = built.run("scons twins=1")
    assert done.returncode == 0
    for name, arch in pairs():
        assert re.search(rf"{name} +{arch} .* identical", done.stdout), done.stdout


def test_a_null_build_runs_nothing(built: Checkout) -> None:
    done = built.run("scons -q twins=1")
    assert done.returncode == 0, done.stdout
    done = built.run("scons -Q twins=1")
    assert not re.search(r"^(CudaCompile|Probe|Place|DeviceLink)", done.stdout, re.MULTILINE)


def test_two_directories_give_the_same_bytes(
    built: Checkout, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = copy_of_repository(tmp_path_factory.mktemp("elsewhere") / "deep" / "er")
    targets = " ".join(f"megakernels/{name}" for name in SAMPLES)
    done = other.run(f"scons arch=sm_90a {targets}")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in SAMPLES:
        for suffix in ("cubin", "glue.cu", "placement.json"):
            here, there = (c.megakernel(name) / f"{name}.{suffix}" for c in (built, other))
            assert here.read_bytes() == there.read_bytes(), suffix


@pytest.mark.parametrize("name", SAMPLES)
def test_both_link_backends_give_the_twin(built: Checkout, name: str) -> None:
    done = built.run(f"scons linker=nvjitlink twins=1 arch=sm_90a megakernels/{name}")
    assert done.returncode == 0, done.stdout + done.stderr
    twin = read_json(built.megakernel(name) / f"{name}.twin.json", TwinReport)
    assert twin.lto_identical, twin.lto_difference
    back = built.run(f"scons twins=1 arch=sm_90a megakernels/{name}")
    assert back.returncode == 0, back.stdout + back.stderr
