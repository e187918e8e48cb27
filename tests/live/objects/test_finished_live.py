"""Prebuilt objects with a valid sidecar and other code are rejected by the audit of the object."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pipelink_rules.actions.component import unpack_prebuilt
from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.header import emit_header
from pipelink_rules.contract.load import load_contract
from pipelink_rules.contract.sidecar import dump_sidecar
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.atomic import sha256
from pipelink_rules.model.variant import BuildRecord
from pipelink_rules.toolkit.command_lines import Unit, fatbin_argv
from pipelink_rules.toolkit.compiler_errors import Subject, compile_checked
from pipelink_rules.toolkit.toolkit import Toolkit

RELEASE = "  pl_ring_release(at.block, port.block);"
MISMATCHES = {  # edit of bulk_store_rows.cu -> code
    "honest": ("", "", ()),
    "leaves one store": ("pl_store_wait(0)", "pl_store_wait(1)", ("PL0918",)),
    "no await": ("  pl_store_wait(0);  // the copy has read the stage\n", "", ("PL0934",)),
    "counts in global memory": (
        RELEASE,
        f"  atomicAdd(reinterpret_cast<int*>(port.Y), 1);\n{RELEASE}",
        ("PL0936",),
    ),
    "prints": (RELEASE, f'  printf("%d", work.row);\n{RELEASE}', ("PL0902",)),
    "meets all threads": (RELEASE, f"  __syncthreads();\n{RELEASE}", ("PL0907",)),
    "keeps a count": (
        RELEASE,
        f"  static __device__ int calls;\n  port.block.stage += atomicAdd(&calls, 0);\n{RELEASE}",
        ("PL0911",),
    ),
    "asks the data": (
        RELEASE,
        f"  if (*reinterpret_cast<volatile int*>(at.block.data) == 0)\n  {RELEASE}",
        ("PL0932",),
    ),
}


@pytest.fixture(scope="module")
def deliver(toolkit: Toolkit, repository: Path, tmp_path_factory: pytest.TempPathFactory):
    """Return a sidecar with valid digests for an edited source, next to unedited PTX."""
    folder = repository / "components/stream"

    def delivered(old: str, new: str, digest: str = "") -> Path:
        contract = load_contract(str(folder / "bulk_store_rows.contract.yaml"))
        variant = bind(contract, {"ROWS": 4, "D": 256})
        place = tmp_path_factory.mktemp("delivered")
        (place / "bulk_store_rows.contract.cuh").write_text(emit_header(variant))
        text = (folder / "bulk_store_rows.cu").read_text()
        assert old in text
        source = place / "bulk_store_rows.cu"
        source.write_text("#include <cstdio>\n" + text.replace(old, new, 1))
        includes = (str(place), str(repository / "components/include"))
        fatbin = place / "bulk_store_rows.fatbin"
        unit = Unit(str(source), "sm_90a", includes, strict=False)
        compile_checked(fatbin_argv(toolkit, unit, str(fatbin)), toolkit, Subject("a lie"))
        shadow = place / "bulk_store_rows.shadow.ptx"
        shadow.write_text("// whatever its maker likes to show\n")
        objects = tuple((path.name, sha256(path)) for path in (fatbin, shadow))
        build = BuildRecord(toolkit.version, toolkit.fingerprint, objects=objects)
        sidecar = place / "bulk_store_rows.contract.yaml"
        sidecar.write_text(dump_sidecar(replace(variant, digest=digest or variant.digest), build))
        return sidecar

    return delivered


@pytest.fixture
def unpack(toolkit: Toolkit, repository: Path):
    """Import a delivered object into the folder `out` beside its sidecar."""
    includes = (str(repository / "components/include"),)

    def unpacked(sidecar: Path, arch: str = "sm_90a", *, strict: bool = False) -> str:
        out = str(sidecar.parent / "out")
        return unpack_prebuilt(str(sidecar), out, arch, includes, toolkit, strict)

    return unpacked


@pytest.mark.parametrize("name", MISMATCHES)
def test_prebuilt_object_must_match_its_sidecar(name: str, deliver, unpack) -> None:
    old, new, codes = MISMATCHES[name]
    sidecar = deliver(old, new)
    if not codes:
        assert unpack(sidecar, strict=True) == ""
        return
    with pytest.raises(PipelinkError) as caught:
        unpack(sidecar, strict=True)
    assert tuple(item.code for item in caught.value.diagnostics) == codes
    assert all(item.labels for item in caught.value.diagnostics)
    assert not list((sidecar.parent / "out").glob("*.fatbin"))


def test_inconclusive_audit_is_reported(deliver, unpack) -> None:
    old, new, _ = MISMATCHES["asks the data"]
    assert "warning[PL0932]" in unpack(deliver(old, new))


def test_object_without_link_time_code_is_rejected(deliver, unpack) -> None:
    with pytest.raises(PipelinkError) as caught:
        unpack(deliver("", ""), "sm_100a")  # it has code for sm_90a
    (found,) = caught.value.diagnostics
    assert found.code == "PL0904" and "sm_100a" in found.expected
