"""`pipelink run MANIFEST M=4096 ...`: a linked megakernel on random inputs; shapes and times."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pipelink_rules.cli.command_io import megakernel_in
from pipelink_rules.diagnostics.diagnostic import error
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.report.allowed import allowed_lines

if TYPE_CHECKING:
    from pipelink_rules.model.linked_kernel import Manifest

DEFAULT_SIZE = 4096


def run_run(arguments: argparse.Namespace) -> int:
    """Load, launch and time; report elements of outputs that were not written."""
    from pipelink_rules.expression.evaluate import value_of
    from pipelink_rules.launch import load
    from pipelink_rules.launch.device_array import DeviceArray, Timer
    from pipelink_rules.launch.driver import Driver

    kernel = load(megakernel_in(arguments.manifest, ".manifest.json"), cubin=arguments.cubin)
    manifest = kernel.manifest
    sizes, scalars = values_of(manifest, arguments.values)
    driver = Driver()
    if not driver.current_context():
        driver.make_current(0)
    given: dict[str, object] = dict(scalars)
    arrays = {}
    for tensor in manifest.tensors:
        shape = tuple(value_of(text, sizes) for text in tensor.shape)
        made = arrays[tensor.name] = given[tensor.name] = DeviceArray(driver, shape, tensor.dtype)
        if tensor.direction == "out":
            made.poison()
        else:
            made.fill_random()
    kernel(**given)
    kernel.synchronize()
    device = driver.device(int(driver.call("cuCtxGetDevice")))
    print(f"{manifest.name} ({manifest.target}) on {device.name}")
    for line in allowed_lines(manifest.allowed, "  "):
        print(line)
    print(f"  grid {kernel.grid_of(sizes, device.sms)} of {manifest.threads} threads")
    for tensor in manifest.tensors:
        array, note = arrays[tensor.name], ""
        if tensor.direction == "out":
            left = array.left_poisoned()
            note = f"; {left} elements not written" if left else "; written"
        print(f"  {tensor.name}: {tensor.dtype} {list(array.shape)}, {tensor.direction}{note}")
    for name, value in scalars.items():
        print(f"  {name} = {value}")
    times = []
    for _ in range(arguments.times):
        with Timer(driver) as timer:
            kernel(**given)
        times.append(timer.microseconds())
    kernel.synchronize()
    if times:
        median, best = statistics.median(times), min(times)
        print(f"  {len(times)} launches: median {median:.1f} us, best {best:.1f} us")
    for array in arrays.values():
        array.free()
    return 0


def values_of(
    manifest: Manifest, words: list[str]
) -> tuple[dict[str, int], Mapping[str, float | int]]:
    """Return sizes and scalars from NAME=VALUE; default sizes are near 4096, scalars 1."""
    given: dict[str, str] = {}
    known = [*(name for name, *_ in manifest.symbols), *(name for name, _ in manifest.scalars)]
    for word in words:
        name, found, value = word.partition("=")
        if not found or name not in known:
            raise error(
                "PL1402",
                f"`{word}` does not set a size or scalar of `{manifest.name}`",
                expected=f"one of {', '.join(f'{item}=...' for item in known)}",
                found=word,
                suggestions=similar_name_help(name, known, "names"),
                subject=word,
            )
        given[name] = value
        kind = float if dict(manifest.scalars).get(name) == "f32" else int
        try:
            kind(value)
        except ValueError:
            raise error(
                "PL1411",
                f"invalid value for `{name}` of `{manifest.name}`",
                expected="a number" if kind is float else "an integer",
                found=value[:80],
                subject=name,
            ) from None
    sizes = {
        name: int(given[name]) if name in given else _default(low, high, multiple)
        for name, low, high, multiple in manifest.symbols
    }
    scalars: dict[str, float | int] = {
        name: float(given.get(name, 1)) if dtype == "f32" else int(given.get(name, 1))
        for name, dtype in manifest.scalars
    }
    return sizes, scalars


def _default(low: int, high: int, multiple: int) -> int:
    size = max(low, min(high, DEFAULT_SIZE))
    rounded = size // multiple * multiple
    return rounded if rounded >= max(low, 1) else -(-max(low, 1) // multiple) * multiple
