"""What a call does: parameters in order, cached packing, outputs, streams, contexts."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from fake_arrays import Capsule, Interface, TorchLike
from fake_driver import FakeDriver
from manifests import GEMM, saved

from pipelink_rules.launch import Kernel, load
from pipelink_rules.launch.errors import LaunchError


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver(parameters=len(GEMM.parameters))


@pytest.fixture
def kernel(tmp_path: Path, driver: FakeDriver) -> Kernel:
    return load(saved(tmp_path), driver=driver)


def arguments(**changes: Any) -> dict[str, Any]:
    found = {
        "a": TorchLike(0x10000, (300, 128)),
        "b": TorchLike(0x20000, (512, 128)),
        "bias": TorchLike(0x30000, (512,)),
        "scale": 0.5,
        "out": TorchLike(0x40000, (300, 512)),
    }
    return {**found, **changes}


def test_parameters_in_order(kernel: Kernel, driver: FakeDriver) -> None:
    given = arguments()
    assert kernel(**given, stream=7) is given["out"]
    (launched,) = driver.launched
    half = struct.unpack("<I", struct.pack("<f", 0.5))[0]
    assert launched.words == (0xAA01, 0xAA02, 0x30000, 0xAA03, half, 128, 300, 512)
    assert (launched.grid, launched.threads, launched.shared, launched.stream) == (
        6,
        384,
        214016,
        7,
    )
    a, b, out = driver.encoded
    assert (a.address, a.extents, a.strides, a.box) == (0x10000, (128, 300), (256,), (64, 128))
    assert (b.extents, b.box, b.swizzle, b.dtype) == ((128, 512), (64, 256), 3, 9)
    assert (out.extents, out.box) == ((512, 300), (64, 16))


def test_grid_is_limited_by_the_device(kernel: Kernel, driver: FakeDriver) -> None:
    big = arguments(
        a=TorchLike(0x10000, (8192, 128)),
        b=TorchLike(0x20000, (8192, 128)),
        bias=TorchLike(0x30000, (8192,)),
        out=TorchLike(0x40000, (8192, 8192)),
    )
    kernel(**big)
    assert driver.launched[0].grid == 132


def test_equal_arguments_are_packed_once(kernel: Kernel, driver: FakeDriver) -> None:
    for _ in range(3):
        kernel(**arguments())
    assert len(driver.encoded) == 3 and driver.calls.count("load") == 1
    assert len(driver.launched) == 3 and len(set(driver.launched)) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": 0.25},
        {"bias": TorchLike(0x50000, (512,))},
        {"a": TorchLike(0x10000, (299, 128)), "out": TorchLike(0x40000, (299, 512))},
    ],
)
def test_other_arguments_are_packed_anew(
    kernel: Kernel, driver: FakeDriver, changes: dict[str, Any]
) -> None:
    kernel(**arguments())
    kernel(**arguments(**changes))
    kernel(**arguments())
    first, other, again = driver.launched
    assert first == again and first != other


def test_the_oldest_call_is_forgotten(
    kernel: Kernel, driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelink_rules.launch.kernel.CACHED_CALLS", 2)
    first, second, third = (arguments(scale=scale) for scale in (1.0, 2.0, 3.0))
    for given in (first, second, first, third):  # `first` was used after `second`
        kernel(**given)
    packed = len(driver.encoded)
    kernel(**first)
    assert len(driver.encoded) == packed
    kernel(**second)
    assert len(driver.encoded) == packed + 3


def test_positional_arguments(kernel: Kernel, driver: FakeDriver) -> None:
    given = arguments()
    kernel(given["a"], given["b"], given["bias"], 0.5, out=given["out"])
    kernel(**given)
    assert driver.launched[0] == driver.launched[1]


def test_the_cubin_is_loaded_once_per_context(kernel: Kernel, driver: FakeDriver) -> None:
    kernel(**arguments())
    driver.context = 0x101
    other = {
        name: TorchLike(value.pointer, value.shape, device=1) if name != "scale" else value
        for name, value in arguments().items()
    }
    kernel(**other)
    kernel(**other)
    assert driver.calls.count("load") == 1  # one library for all contexts
    assert driver.calls.count("attribute 8 = 214016") == 2
    assert driver.calls[0] == "capture mode 2" and driver.calls[-1] == "capture mode 0"


def test_a_thread_without_context_gets_the_primary_one(tmp_path: Path) -> None:
    driver = FakeDriver(context=0, parameters=8)
    load(saved(tmp_path), driver=driver)(**arguments())
    assert driver.context == 0x100 and len(driver.launched) == 1


def test_prepare_does_not_launch(kernel: Kernel, driver: FakeDriver) -> None:
    kernel.prepare(**arguments())
    assert not driver.launched and driver.calls.count("load") == 1
    before = list(driver.calls)
    kernel(**arguments())
    assert driver.calls == before and len(driver.launched) == 1


def test_outputs_left_out_are_made(tmp_path: Path, driver: FakeDriver) -> None:
    made = []

    def allocate(shape: tuple[int, ...], dtype: str, like: Any) -> TorchLike:
        made.append((shape, dtype, like.pointer))
        return TorchLike(0x90000 + 0x1000 * len(made), shape)

    kernel = load(saved(tmp_path), allocator=allocate, driver=driver)
    given = arguments()
    del given["out"]
    first, second = kernel(**given), kernel(**given)
    assert made == [((300, 512), "bf16", 0x10000)] * 2
    assert (first.pointer, second.pointer) == (0x91000, 0x92000)
    assert len(driver.launched) == 2


def test_mixed_kinds_of_arrays(kernel: Kernel, driver: FakeDriver) -> None:
    driver.owners[0x30000] = 0
    capsule = Capsule(0x20000, (512, 128))
    given = arguments(b=capsule, out=Capsule(0x40000, (300, 512), strides=(512, 1), versioned=True))
    kernel(**given)
    kernel(**given)
    assert len(driver.encoded) == 3 and len(set(driver.launched)) == 1
    assert set(capsule.streams) == {1}  # the producer gets the legacy default stream


def test_arrays_with_the_cuda_array_interface(tmp_path: Path) -> None:
    import dataclasses

    driver = FakeDriver(parameters=8, owners={0x30000: 0})
    tensors = tuple(
        dataclasses.replace(item, dtype="f32") if item.name == "bias" else item
        for item in GEMM.tensors
    )
    kernel = load(saved(tmp_path, tensors=tensors), driver=driver)
    kernel(**arguments(bias=Interface(0x30000, (512,))))
    kernel(**arguments(bias=Interface(0x30000, (512,), strides=(4,))))
    assert {item.words[2] for item in driver.launched} == {0x30000}


class _TorchStream:
    cuda_stream = 11


class _Protocol:
    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 12


class _CupyStream:
    ptr = 13


@pytest.mark.parametrize(
    ("stream", "handle"), [(5, 5), (_TorchStream(), 11), (_Protocol(), 12), (_CupyStream(), 13)]
)
def test_streams(kernel: Kernel, driver: FakeDriver, stream: Any, handle: int) -> None:
    kernel(**arguments(), stream=stream)
    assert driver.launched[0].stream == handle


def test_a_cluster_is_launched_with_its_size(tmp_path: Path, driver: FakeDriver) -> None:
    kernel = load(saved(tmp_path, cluster=(2, 1, 1)), driver=driver)
    kernel(**arguments(), stream=3)
    kernel(**arguments(), stream=4)
    assert [item.cluster for item in driver.launched] == [(2, 1, 1)] * 2
    assert [item.stream for item in driver.launched] == [3, 4]


def test_a_cluster_is_a_line_of_ctas(tmp_path: Path, driver: FakeDriver) -> None:
    """Whatever its axes mean to the schedule: blockIdx.x numbers the CTAs of the grid."""
    load(saved(tmp_path, cluster=(2, 2, 1)), driver=driver)(**arguments())
    assert driver.launched[0].cluster == (4, 1, 1)


GRID = "2 * max(1, min(clusters, ceildiv(M, 128)))"


@pytest.mark.parametrize(("clusters", "grid"), [(64, 6), (2, 4)])
def test_the_grid_is_as_many_clusters_as_run_at_a_time(
    tmp_path: Path, driver: FakeDriver, clusters: int, grid: int
) -> None:
    """Not as many as the SMs would make: parts of a GPU with odd numbers of SMs leave one over."""
    driver.clusters = clusters
    load(saved(tmp_path, cluster=(2, 1, 1), grid=GRID), driver=driver)(**arguments())
    assert driver.launched[0].grid == grid  # M = 300


def test_a_gpu_without_room_for_a_cluster_is_refused(tmp_path: Path, driver: FakeDriver) -> None:
    driver.clusters = 0
    with pytest.raises(LaunchError) as caught:
        load(saved(tmp_path, cluster=(2, 1, 1), grid=GRID), driver=driver)(**arguments())
    (found,) = caught.value.diagnostics
    assert (found.code, found.expected) == ("PL1401", "room for a cluster of 2x1x1 CTAs")


def test_signature_and_docstring(kernel: Kernel) -> None:
    import inspect

    assert str(inspect.signature(kernel)) == "(a, b, bias, scale, out=None, *, stream=None)"
    text = kernel.__doc__ or ""
    assert text.startswith("gemm_bias(a, b, bias, scale, out=None, *, stream=None)\n")
    for line in (
        "    a     bf16 [M, K], read",
        "    out   bf16 [M, N], written; allocated if omitted",
        "    1 <= N, a multiple of 8",
        "    K <= 65536  (required by load (components/gemm/tma_load_ab.contract.yaml:9:5))",
    ):
        assert line in text.splitlines()


def test_a_folder_with_one_manifest(tmp_path: Path) -> None:
    saved(tmp_path)
    assert load(tmp_path).manifest == GEMM


def test_a_twin_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "twin.cubin").write_bytes(b"another")
    assert load(saved(tmp_path), cubin=tmp_path / "twin.cubin").manifest == GEMM


def test_a_bound_call_launches_without_looking_again(kernel: Kernel, driver: FakeDriver) -> None:
    given = arguments()
    bound = kernel.bind(**given, stream=7)
    assert not driver.launched
    bound()
    bound()
    first, second = driver.launched
    assert (first.words, first.grid, first.stream) == (second.words, second.grid, 7)


def test_the_same_call_again_and_another_in_between(kernel: Kernel, driver: FakeDriver) -> None:
    one, other = arguments(), arguments(a=TorchLike(0x50000, (300, 128)))
    for given in (one, one, other, one):
        kernel(**given)
    words = [launched.words for launched in driver.launched]
    assert words[0] == words[1] == words[3] != words[2]
    assert len(driver.encoded) == 6  # three maps for each of the two argument sets, once


def test_an_array_that_changed_in_place_is_packed_anew(kernel: Kernel, driver: FakeDriver) -> None:
    given = arguments(a=TorchLike(0x10000, (300, 128)), out=TorchLike(0x40000, (300, 512)))
    kernel(**given)
    given["a"].shape = (200, 128)
    given["out"].shape = (200, 512)
    kernel(**given)
    assert driver.launched[0].words != driver.launched[1].words
