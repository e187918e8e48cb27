"""Components with raw ports next to shipped ones: audited, linked, equal to their twins."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from checkout import Checkout, copy_of_repository

from pipelink_rules.files.codec import read_json
from pipelink_rules.model.linked_kernel import Audit, TwinReport

pytestmark = pytest.mark.live
HERE = Path(__file__).parent


def cutlass_headers() -> Path | None:
    """Return the headers of the wheel nvidia-cutlass; None if it is not installed."""
    found = importlib.util.find_spec("cutlass_library")
    for folder in found.submodule_search_locations or () if found else ():
        include = Path(folder) / "source/include"
        if (include / "cute/arch/copy_sm90_tma.hpp").is_file():
            return include
    return None


@pytest.fixture(scope="module")
def raw(toolkit: object, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Build the raw megakernels with their twins; every audit must be conclusive."""
    checkout = copy_of_repository(tmp_path_factory.mktemp("raw"))
    package = checkout.path / "megakernels/raw"
    shutil.copytree(HERE / "raw", package)
    shutil.copytree(HERE.parent / "contract_mismatch/raw", package, dirs_exist_ok=True)
    headers = cutlass_headers()
    if headers is not None:
        for library in ("cute", "cutlass"):
            shutil.copytree(headers / library, package / "cute/include" / library)
    commands = [
        "scons twins=1 strict=1 megakernels/raw_gemm megakernels/raw_pair megakernels/raw_stream"
    ]
    if headers is not None:
        commands.append("scons strict=1 megakernels/cute_gemm")
    for command in commands:
        done = checkout.run(command)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return checkout


@pytest.mark.parametrize("name", ["raw_gemm", "raw_pair", "raw_stream"])
def test_linked_is_the_lto_twin(raw: Checkout, name: str) -> None:
    twin = read_json(raw.megakernel(name) / f"{name}.twin.json", TwinReport)
    assert twin.lto_identical, twin.lto_difference
    assert twin.lto.instructions > 100


def test_components_of_cute_link_too(raw: Checkout) -> None:
    if cutlass_headers() is None:
        pytest.skip("the wheel nvidia-cutlass is not installed: no headers of CuTe")
    folder = raw.megakernel("cute_gemm")
    audit = read_json(folder / "cute_gemm.audit.json", Audit)
    assert audit.stack_bytes == audit.spill_stores == audit.spill_loads == 0
    assert not audit.calls and not audit.warnings
    sidecar = next((raw.path / "build/sm_90a/variants").glob("cute_load_ab_*/*.contract.yaml"))
    assert "PL0932" not in sidecar.read_text()
