"""Linked megakernels on a GPU, without any framework: results, graphs, watchdog, twins."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from built import MEGAKERNELS, ROOT, built
from numbers_bf16 import download, upload

from pipelink_rules.launch import load
from pipelink_rules.launch.device_array import DeviceArray
from pipelink_rules.launch.driver import Device, Driver

pytestmark = pytest.mark.gpu

_erf = np.vectorize(math.erf)
Numbers = dict[str, Any]


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def _silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))


GEMMS: dict[str, Callable[[Numbers], Any]] = {
    "gemm": lambda x: x["a"] @ x["b"].T,
    "gemm_multicast": lambda x: x["a"] @ x["b"].T,
    "gemm_split_k": lambda x: x["a"] @ x["b"].T,
    "gemm_bias_gelu": lambda x: _gelu(x["a"] @ x["b"].T + x["bias"]),
    "gemm_bias_gelu_128": lambda x: _gelu(x["a"] @ x["b"].T + x["bias"]),
    "gemm_bias_gelu_epilogue_warps": lambda x: _gelu(x["a"] @ x["b"].T + x["bias"]),
    "gemm_bias_residual": lambda x: x["a"] @ x["b"].T + x["bias"] + x["residual"],
    "gemm_relu_one_warpgroup": lambda x: np.maximum(x["a"] @ x["b"].T, 0),
    "gated_gemm": lambda x: _silu(x["a"] @ x["gate"].T) * (x["a"] @ x["up"].T),
}
SHAPES = ((128, 256, 64), (1, 8, 8), (129, 264, 200), (300, 520, 136), (515, 1032, 1000))


def gemm_arrays(name: str, m: int, n: int, k: int) -> dict[str, Any]:
    random = np.random.default_rng(m * 31 + n * 7 + k)
    inner = {"gated_gemm": ("gate", "up")}.get(name, ("b",))
    arrays = {"a": random.standard_normal((m, k))}
    arrays |= {key: random.standard_normal((n, k)) / math.sqrt(k) for key in inner}
    if "bias" in name:
        arrays["bias"] = random.standard_normal(n)
    if "residual" in name:
        arrays["residual"] = random.standard_normal((m, n))
    return arrays


def run(
    driver: Driver, kernel: Any, arrays: dict[str, Any], out: DeviceArray, **scalars: float
) -> Numbers:
    held, exact = {}, {}
    for name, values in arrays.items():
        dtype = {item.name: item.dtype for item in kernel.manifest.tensors}[name]
        held[name], exact[name] = upload(driver, values, dtype)
    out.poison()
    (name,) = (item.name for item in kernel.manifest.tensors if item.direction == "out")
    kernel(**held, **scalars, **{name: out})
    kernel.synchronize()
    assert out.left_poisoned() == 0
    for array in held.values():
        array.free()
    return {**exact, **scalars}


def assert_close(found: Any, exact: Any, absolute: float = 2e-3) -> None:
    error = np.abs(found - exact) / (2.0**-8 * np.abs(exact) + absolute)
    assert error.max() < 1, f"error {error.max():.2f} of what is allowed, at {error.argmax()}"


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("name", GEMMS)
def test_gemm_family(
    driver: Driver, hopper: Device, name: str, shape: tuple[int, int, int]
) -> None:
    m, n, k = shape
    out = DeviceArray(driver, (m, n), "bf16")
    exact = run(driver, load(built(name)), gemm_arrays(name, m, n, k), out)
    assert_close(download(out), GEMMS[name](exact), 8e-3 if name == "gated_gemm" else 2e-3)
    out.free()


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 530])
@pytest.mark.parametrize("name", ["rms_norm", "rms_norm_wide"])
def test_rms_norm(driver: Driver, hopper: Device, name: str, rows: int) -> None:
    kernel = load(built(name))
    width = int(kernel.manifest.tensors[0].shape[1])
    random = np.random.default_rng(rows)
    arrays = {"x": random.standard_normal((rows, width)), "weight": random.standard_normal(width)}
    out = DeviceArray(driver, (rows, width), "bf16")
    x = run(driver, kernel, arrays, out, eps=1e-5)
    scale = 1 / np.sqrt((x["x"] ** 2).mean(1, keepdims=True) + 1e-5)
    assert_close(download(out), x["x"] * scale * x["weight"])
    out.free()


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 530])
def test_scaled_add(driver: Driver, hopper: Device, rows: int) -> None:
    kernel = load(built("scaled_add"))
    width = int(kernel.manifest.tensors[0].shape[1])
    random = np.random.default_rng(rows)
    arrays = {key: random.standard_normal((rows, width)) for key in "xz"}
    out = DeviceArray(driver, (rows, width), "bf16")
    x = run(driver, kernel, arrays, out, alpha=-0.75)
    assert_close(download(out), x["x"] - 0.75 * x["z"])
    out.free()


def test_repeated_launches_are_equal(driver: Driver, hopper: Device) -> None:
    kernel = load(built("gemm"))
    a, _ = upload(driver, np.random.default_rng(1).standard_normal((300, 520)))
    b, _ = upload(driver, np.random.default_rng(2).standard_normal((264, 520)))
    out = DeviceArray(driver, (300, 264), "bf16")
    kernel(a, b, out)
    kernel.synchronize()
    first = out.read()
    for _ in range(50):
        out.poison()
        kernel(a, b, out)
        kernel.synchronize()
        assert out.read() == first
    for array in (a, b, out):
        array.free()


def test_a_call_can_be_captured(driver: Driver, hopper: Device) -> None:
    """This includes the first call, which loads the kernel during the capture."""
    kernel = load(built("scaled_add"))
    width = int(kernel.manifest.tensors[0].shape[1])
    x, exact_x = upload(driver, np.ones((9, width)))
    z, exact_z = upload(driver, np.full((9, width), 2.0), "f32")
    out = DeviceArray(driver, (9, width), "bf16")
    stream = driver.call("cuStreamCreate", 1)
    mode = driver.api.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
    driver.call("cuStreamBeginCapture", stream, mode)
    kernel(x=x, z=z, y=out, alpha=3.0, stream=int(stream))
    graph = driver.call("cuStreamEndCapture", stream)
    ready = driver.call("cuGraphInstantiate", graph, 0)
    out.poison()
    driver.call("cuGraphLaunch", ready, stream)
    kernel.synchronize(int(stream))
    assert_close(download(out), exact_x + 3 * exact_z)
    for array in (x, z, out):
        array.free()


def test_twins_give_the_same_bits(driver: Driver, hopper: Device) -> None:
    manifest = built("gemm")
    twins = [manifest.with_name(f"gemm.{kind}_twin.cubin") for kind in ("lto", "native")]
    if not all(path.is_file() for path in twins):
        pytest.skip("the twins are not built: run scons twins=1")
    a, _ = upload(driver, np.random.default_rng(1).standard_normal((256, 256)))
    b, _ = upload(driver, np.random.default_rng(2).standard_normal((512, 256)))
    out = DeviceArray(driver, (256, 512), "bf16")
    found = []
    for cubin in (None, *twins):
        kernel = load(manifest, cubin=cubin)
        out.poison()
        kernel(a, b, out)
        kernel.synchronize()
        found.append(out.read())
    assert found[0] == found[1] == found[2]
    for array in (a, b, out):
        array.free()


WATCHDOG = """
import sys
sys.path[:0] = {path!r}
import numpy as np
from numbers_bf16 import upload
from pipelink_rules.launch import WatchdogError, load
from pipelink_rules.launch.driver import Driver
from pipelink_rules.launch.device_array import DeviceArray
driver = Driver()
driver.make_current(0)
kernel = load({manifest!r}, watchdog_cycles=int(sys.argv[1]))
a, _ = upload(driver, np.ones((512, 4096)))
b, _ = upload(driver, np.ones((512, 4096)))
out = DeviceArray(driver, (512, 512), "bf16")
try:
    kernel(a, b, out)
    kernel.synchronize()
    print("finished")
except WatchdogError as problem:
    print(problem.site.instance, problem.site.port)
    print(problem)
"""


def test_a_watchdog_reports_the_wait(driver: Driver, hopper: Device, tmp_path: Path) -> None:
    """Runs in a separate process, since the trap loses the context.  A limit of one cycle traps."""
    built("gemm")
    from pipelink_rules.cli import main

    # Without a toolkit: `pipelink link <folder> -o build/watchdog/gemm` on another machine.
    linked = MEGAKERNELS.parent.parent / "watchdog" / "gemm"
    if not (linked / "gemm.manifest.json").is_file():
        linked = tmp_path
        folder = MEGAKERNELS / "gemm"
        if main(["link", str(folder), "-o", str(linked), "--runtime", "watchdog"]):
            pytest.skip("no toolkit here to link the watchdog runtime with")
    path = [str(Path(__file__).parent), str(ROOT), *sys.path]
    text = WATCHDOG.format(path=path, manifest=str(linked / "gemm.manifest.json"))

    def outcome(cycles: int) -> str:
        command = [sys.executable, "-c", text, str(cycles)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return done.stdout + done.stderr

    assert outcome(10**10).startswith("finished")
    said = outcome(1)
    assert "PL1416: gemm hangs" in said and "ab" in said.splitlines()[0]
