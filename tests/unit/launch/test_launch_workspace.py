"""Kernels whose CTAs wait for each other: memory of the launcher, cleared, and a resident grid."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from fake_arrays import TorchLike
from fake_driver import FakeDriver
from manifests import GEMM, saved
from test_launch_call import arguments

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.launch import Kernel, LaunchError, load
from pipelink_rules.launch.watchdog import explain
from pipelink_rules.model.linked_kernel import KernelParameter, Manifest, Site, Workspace

WORK = (
    Workspace("sum.parts", "scratch", "f32", "ceildiv(M, 128) * 16384", False),
    Workspace("sum.done", "counters", "u32", "ceildiv(M, 128)", True),
)
PARAMETERS = (
    KernelParameter("scratch", "sum.parts", "f32", port="sum.parts", ports=("sum.parts",)),
    KernelParameter("counters", "sum.done", "u32", port="sum.done", ports=("sum.done",)),
)
SPLIT = dataclasses.replace(
    GEMM, parameters=(*GEMM.parameters, *PARAMETERS), workspace=WORK, coresident=True
)


def rows(count: int) -> dict[str, Any]:
    """Arguments with so many rows of the result."""
    a, out = TorchLike(0x10000, (count, 128)), TorchLike(0x40000, (count, 512))
    return arguments(a=a, out=out)


def loaded(folder: Path, driver: FakeDriver, manifest: Manifest = SPLIT) -> Kernel:
    driver.parameters = len(manifest.parameters)
    return load(saved(folder, manifest), driver=driver)


def test_the_launch_is_cooperative_and_its_counters_are_cleared_before_it(tmp_path: Path) -> None:
    driver = FakeDriver()
    kernel = loaded(tmp_path, driver)
    kernel(**arguments(), stream=7)  # M = 300: three rows of tiles
    (launch,) = driver.launched
    assert launch.cooperative and launch.cluster == (1, 1, 1) and launch.stream == 7
    ((address, size),) = driver.allocated
    # Cleared pieces lie in front, so one memset does for all; every piece at 256 bytes.
    assert driver.cleared == [(address, 64, 7)]
    assert launch.words[-2:] == (address + 256, address)
    assert size == 256 + 3 * 16384 * 4
    assert driver.calls.index("clear") > driver.calls.index("allocate")


def test_every_launch_clears_and_none_allocates_again(tmp_path: Path) -> None:
    driver = FakeDriver()
    kernel = loaded(tmp_path, driver)
    for _ in range(3):
        kernel(**arguments(), stream=7)
    kernel.bind(**arguments(), stream=7)()
    assert len(driver.launched) == len(driver.cleared) == 4
    assert len(driver.allocated) == 1


def test_streams_and_captures_have_separate_memory(tmp_path: Path) -> None:
    driver = FakeDriver()
    kernel = loaded(tmp_path, driver)
    kernel(**arguments(), stream=7)
    kernel(**arguments(), stream=8)
    driver.capture = 1
    kernel(**arguments(), stream=7)
    driver.capture = 2
    kernel(**arguments(), stream=7)
    driver.capture = 0
    kernel(**arguments(), stream=7)
    addresses = [launch.words[-1] for launch in driver.launched]
    assert len(set(addresses)) == 4 and addresses[4] == addresses[0]
    assert driver.calls.count("capture mode 2") == 5  # for loading the cubin, too


def test_a_larger_call_gets_more_and_leaves_what_graphs_may_use(tmp_path: Path) -> None:
    driver = FakeDriver()
    kernel = loaded(tmp_path, driver)
    kernel(**arguments(), stream=7)
    kernel(**rows(4096), stream=7)
    kernel(**arguments(), stream=7)
    first, second, third = (launch.words[-1] for launch in driver.launched)
    assert first != second and third == first
    assert [size for _, size in driver.allocated] == [256 + n * 16384 * 4 for n in (3, 32)]


@pytest.mark.parametrize(("resident", "grid"), [(1, 132), (2, 264), (3, 264)])
def test_the_grid_is_no_larger_than_what_is_resident(
    tmp_path: Path, resident: int, grid: int
) -> None:
    driver = FakeDriver(resident=resident)
    kernel = loaded(tmp_path, driver, dataclasses.replace(SPLIT, occupancy=2))
    kernel(**rows(128 * 512))
    assert driver.launched[0].grid == grid


def test_no_room_at_all_is_refused(tmp_path: Path) -> None:
    kernel = loaded(tmp_path, FakeDriver(resident=0))
    with pytest.raises(LaunchError, match="PL1420"):
        kernel(**arguments())


def test_scratch_alone_needs_no_cooperative_launch(tmp_path: Path) -> None:
    driver = FakeDriver()
    only = dataclasses.replace(
        SPLIT,
        coresident=False,
        workspace=WORK[:1],
        parameters=(*GEMM.parameters, PARAMETERS[0]),
    )
    loaded(tmp_path, driver, only)(**arguments())
    assert not driver.launched[0].cooperative and not driver.cleared


def test_unreached_counter_is_named() -> None:
    sites = (
        Site(1, "sum", "add", "done", "sum.done"),
        Site(2, "sum", "add", "ready", "sum.done"),
    )
    manifest = dataclasses.replace(SPLIT, sites=sites)
    error = explain(manifest, (0x504C5744, 2, 4, 70000, 32, 5, 128, 24, 0, 9))
    text = str(error)
    assert "`sum.add` never returns from `wait_until ready` (counter 70000)" in text
    assert "expected: 32 signals" in text
    assert "24 signals after 9 thousand cycles, in block 5, thread 128" in text
    assert "check that `sum.add.done` signals for every work tile" in text


@pytest.mark.parametrize(
    "piece",
    [
        Workspace("sum.done", "counter", "u32", "M", True),
        Workspace("sum.done", "counters", "u64", "M", True),
        Workspace("sum.done", "counters", "u32", "M +", True),
        Workspace("sum.other", "counters", "u32", "M", True),
    ],
)
def test_a_damaged_workspace_is_reported(tmp_path: Path, piece: Workspace) -> None:
    with pytest.raises(PipelinkError) as failed:
        loaded(tmp_path, FakeDriver(), dataclasses.replace(SPLIT, workspace=(WORK[0], piece)))
    assert failed.value.diagnostics[0].code == "PL0011"
