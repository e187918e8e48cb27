"""Every refusal: the code, the argument it names, what was expected."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from fake_arrays import Capsule, Interface, TorchLike
from fake_driver import FakeDriver
from manifests import CUBIN, GEMM, saved
from test_launch_call import arguments

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.launch import LaunchError, WatchdogError, load
from pipelink_rules.model.linked_kernel import AllowedDiagnostics


def refused(tmp_path: Path, driver: FakeDriver | None = None, **changes: Any) -> LaunchError:
    kernel = load(saved(tmp_path), driver=driver or FakeDriver(parameters=8))
    with pytest.raises(LaunchError) as caught:
        kernel(**{k: v for k, v in arguments(**changes).items() if v is not ...})
    return caught.value


@pytest.mark.parametrize(
    ("changes", "code", "subject", "said"),
    [
        ({"a": ...}, "PL1402", "a", "a: bf16 [M, K]"),
        ({"scale": ...}, "PL1402", "scale", "a number"),
        ({"biass": 1}, "PL1402", "biass", "similar name exists: `bias`"),
        ({"a": [1, 2]}, "PL1403", "a", "DLPack or __cuda_array_interface__"),
        ({"a": TorchLike(64, (300, 128), device=-1)}, "PL1403", "a", "host memory"),
        ({"a": Capsule(64, (300, 128), device=(1, 0))}, "PL1403", "a", "host memory"),
        ({"a": TorchLike(0x1000, (300, 128), "torch.float32")}, "PL1404", "a", "bf16 [M, K]"),
        ({"bias": Interface(0x1000, (512,), "<f2")}, "PL1404", "bias", "f16"),
        ({"a": TorchLike(0x1000, (300,))}, "PL1405", "a", "1 dimension, but 2 are required"),
        ({"b": TorchLike(0x1000, (512, 64))}, "PL1405", "b", "K = 128 from a.shape[1]"),
        ({"a": TorchLike(0x1000, (300, 128), strides=(256, 1))}, "PL1406", "a", "[256, 1]"),
        ({"bias": TorchLike(0x1008, (512,))}, "PL1407", "bias", "not aligned to 16 bytes"),
        ({"b": TorchLike(0x1000, (512, 128), device=1)}, "PL1408", "b", "device 1"),
        ({"scale": "1"}, "PL1411", "scale", "not a valid f32 number"),
        ({"scale": 1e60}, "PL1411", "scale", "not a valid f32 number"),
        ({"out": ...}, "PL1412", "out", "allocator"),
        (
            {"out": Capsule(0x1000, (300, 512), versioned=True, readonly=True)},
            "PL1418",
            "out",
            "read-only",
        ),
    ],
)
def test_one_wrong_argument(
    tmp_path: Path, changes: dict[str, Any], code: str, subject: str, said: str
) -> None:
    problem = refused(tmp_path, **changes)
    assert [(item.code, item.subject) for item in problem.diagnostics] == [(code, subject)]
    assert said in str(problem)


def test_all_diagnostics_are_raised_together(tmp_path: Path) -> None:
    problem = refused(
        tmp_path,
        a=TorchLike(0x1000, (300, 128), "torch.float16"),
        bias=TorchLike(0x1002, (512,)),
        scale=None,
    )
    assert [item.code for item in problem.diagnostics] == ["PL1402"]  # names come first
    problem = refused(
        tmp_path, a=TorchLike(0x1000, (300, 128), "torch.float16"), bias=TorchLike(0x1002, (512,))
    )
    assert [(item.code, item.subject) for item in problem.diagnostics] == [
        ("PL1404", "a"),
        ("PL1407", "bias"),
    ]


def sizes(m: int, n: int, k: int) -> dict[str, Any]:
    return {
        "a": TorchLike(0x10000, (m, k)),
        "b": TorchLike(0x20000, (n, k)),
        "bias": TorchLike(0x30000, (n,)),
        "out": TorchLike(0x40000, (m, n)),
    }


@pytest.mark.parametrize(
    ("shape", "code", "said"),
    [
        ((300, 512, 100), "PL1409", "K % 8 == 0"),
        ((300, 510, 128), "PL1409", "pad N to 512"),
        ((0, 512, 128), "PL1409", "1 <= M <= 2147483647"),
        ((300, 512, 65544), "PL1410", "K <= 65536, required by load (components/gemm/"),
    ],
)
def test_sizes(tmp_path: Path, shape: tuple[int, int, int], code: str, said: str) -> None:
    problem = refused(tmp_path, **sizes(*shape))
    assert [item.code for item in problem.diagnostics] == [code]
    assert said in str(problem)


def test_a_rejected_call_is_not_cached(tmp_path: Path) -> None:
    driver = FakeDriver(parameters=8)
    kernel = load(saved(tmp_path), driver=driver)
    for _ in range(2):
        with pytest.raises(LaunchError):
            kernel(**arguments(a=TorchLike(0x1000, (300, 128), strides=(256, 1))))
    kernel(**arguments())
    with pytest.raises(LaunchError):
        kernel(**arguments(), typo=1)
    assert len(driver.launched) == 1


def test_an_unsupported_device_is_named(tmp_path: Path) -> None:
    driver = FakeDriver(capability=(8, 0), name="NVIDIA A100-SXM4-80GB")
    problem = refused(tmp_path, driver)
    (item,) = problem.diagnostics
    assert item.code == "PL1401"
    assert item.message == (
        "`gemm_bias` is linked for sm_90a and cannot run on NVIDIA A100-SXM4-80GB"
    )
    assert item.expected == "compute capability 9.0 (Hopper, H100/H200)"
    assert item.found == "device 0: NVIDIA A100-SXM4-80GB, compute capability 8.0"
    assert 'add "sm_80" to `archs`' in item.suggestions[0]


@pytest.mark.parametrize(
    ("target", "runs_on", "capability", "fits"),
    [
        ("sm_90a", (9, 0), (9, 0), True),
        ("sm_90a", (9, 0), (10, 0), False),
        ("sm_100a", (10, 0), (10, 3), False),  # 'a' code runs on exactly its own device
        ("sm_80", (8, 0), (8, 6), True),
        ("sm_80", (8, 0), (9, 0), False),  # a cubin never runs on another major version
    ],
)
def test_which_devices_fit(
    tmp_path: Path, target: str, runs_on: tuple[int, int], capability: tuple[int, int], fits: bool
) -> None:
    driver = FakeDriver(capability=capability, parameters=8)
    kernel = load(saved(tmp_path, target=target, runs_on=runs_on), driver=driver)
    if fits:
        kernel(**arguments())
    else:
        with pytest.raises(LaunchError, match="PL1401"):
            kernel(**arguments())


def test_stream(tmp_path: Path) -> None:
    kernel = load(saved(tmp_path), driver=FakeDriver(parameters=8))
    with pytest.raises(LaunchError, match="PL1413"):
        kernel(**arguments(), stream="main")


def test_the_driver_refuses_the_launch(tmp_path: Path) -> None:
    problem = refused(tmp_path, FakeDriver(parameters=8, launch_result=719))
    assert "CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure" in str(problem)
    assert problem.diagnostics[0].code == "PL1414"


def test_the_driver_refuses_the_map(tmp_path: Path) -> None:
    problem = refused(tmp_path, FakeDriver(parameters=8, encode_result=1))
    assert problem.diagnostics[0].code == "PL1415"
    assert "CUresult 1" in str(problem)


def test_rows_that_no_map_can_describe(tmp_path: Path) -> None:
    free = tuple((name, 0, 2**31 - 1, 1) for name in ("K", "M", "N"))
    kernel = load(saved(tmp_path, symbols=free), driver=FakeDriver(parameters=8))
    with pytest.raises(LaunchError, match="a row is 202 bytes") as caught:
        kernel(**arguments(**sizes(300, 512, 101)))
    assert caught.value.diagnostics[0].code == "PL1415"


def test_manifest_and_cubin_must_belong_together(tmp_path: Path) -> None:
    path = saved(tmp_path)
    (tmp_path / GEMM.cubin).write_bytes(CUBIN + b"x")
    with pytest.raises(LaunchError, match="PL1400"):
        load(path)
    (tmp_path / GEMM.cubin).unlink()
    with pytest.raises(LaunchError, match="PL1400"):
        load(path)
    with pytest.raises(PipelinkError, match="PL0010"):
        load(tmp_path / "missing.manifest.json")
    with pytest.raises(LaunchError, match="contains 0 manifests"):
        (tmp_path / "empty").mkdir()
        load(tmp_path / "empty")


def watchdog(tmp_path: Path, **more: Any) -> tuple[Any, FakeDriver]:
    driver = FakeDriver(parameters=8)
    return load(saved(tmp_path, runtime="watchdog", **more), driver=driver), driver


def test_the_watchdog_gets_its_report_address(tmp_path: Path) -> None:
    kernel, driver = watchdog(tmp_path)
    kernel.check()
    kernel(**arguments())
    assert driver.globals == {0x7000: 0xD000}  # the runtime's own limit stays
    kernel.check()
    limited = load(tmp_path, driver=driver, watchdog_cycles=1000)
    limited(**arguments())
    assert driver.globals == {0x7000: 0xD000, 0x7008: 1000}


def test_a_hang_becomes_an_exception(tmp_path: Path) -> None:
    kernel, driver = watchdog(tmp_path)
    kernel(**arguments())
    driver.report(0x504C5744, 2, 1, 3, 1, 17, 128, 0xDEAD, 0xBEEF, 4000)
    driver.launch_result = 719
    for wait in (kernel.check, kernel.synchronize, lambda: kernel.synchronize(5)):
        with pytest.raises(WatchdogError) as caught:
            wait()
    problem = caught.value
    assert problem.site is not None
    assert (problem.site.instance, problem.site.role, problem.site.port) == ("mma", "mma", "ab")
    assert (problem.stage, problem.phase) == (3, 1)
    text = str(problem)
    assert "`gemm_bias` hangs: `mma.mma` never returns from `wait ab` (stage 3, phase 1)" in text
    assert "1 arrival on the full barrier of `load.ab`" in text
    assert "0x0000beef0000dead after 4,000 thousand cycles, in block 17, thread 128" in text
    assert "check that `load.load.ab` commits every item" in text
    with pytest.raises(WatchdogError):
        kernel(**arguments())


@pytest.mark.parametrize(
    ("site", "operation", "said"),
    [
        (1, 0, "8 arrivals on the empty barrier of `load.ab` (4 stages)"),
        (3, 2, "256 threads at the named barrier"),
        (99, 1, "site 99"),
    ],
)
def test_other_hangs(tmp_path: Path, site: int, operation: int, said: str) -> None:
    kernel, driver = watchdog(tmp_path)
    kernel(**arguments())
    driver.report(0x504C5744, site, operation, 0, 0, 0, 0, 0, 0, 1)
    with pytest.raises(WatchdogError, match=r"PL1416") as caught:
        kernel.check()
    assert said in str(caught.value)


def test_a_hang_of_a_forced_kernel_names_what_was_allowed(tmp_path: Path) -> None:
    forced = AllowedDiagnostics("PL0401", "`load` waits for itself", "it has one item only")
    kernel, driver = watchdog(tmp_path, allowed=(forced,))
    kernel(**arguments())
    driver.report(0x504C5744, 1, 0, 0, 0, 0, 0, 0, 0, 1)
    with pytest.raises(WatchdogError) as caught:
        kernel.check()
    first, second = caught.value.diagnostics[0].suggestions
    assert all(part in first for part in (forced.code, forced.message, forced.reason))
    assert second.startswith("check that `mma.mma.ab` releases every item")


def test_expressions_in_shapes(tmp_path: Path) -> None:
    """Extents such as 2 * N give N where nothing else does, and are checked where N is known."""
    tensors = (
        *GEMM.tensors[:1],
        dataclasses.replace(GEMM.tensors[1], shape=("2 * N", "K")),
        dataclasses.replace(GEMM.tensors[2], shape=("2 * N",)),
        dataclasses.replace(GEMM.tensors[3], shape=("M", "2 * N")),
    )
    driver = FakeDriver(parameters=8)
    kernel = load(saved(tmp_path, tensors=tensors), driver=driver)
    kernel(**arguments())
    assert driver.launched[0].words[-1] == 256
    with pytest.raises(LaunchError, match="extent 510 on axis 0, but 512 is required"):
        kernel(**arguments(bias=TorchLike(0x30000, (510,))))
