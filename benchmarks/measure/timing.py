"""Compare times with twins, a hand-written kernel, cuBLAS and the copy bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.measure.benchmark_kernels import (
    Subject,
    bytes_of,
    make_inputs,
    make_outputs,
    sizes_of,
)
from benchmarks.measure.harness import Launch, call_overhead, deadline, note, pairs, sets_for
from benchmarks.measure.references import TIMED_GEMMS, TIMED_SKINNY
from benchmarks.monolith.baseline import baseline
from pipelink_rules.launch import Kernel


def gemm_rows(
    subject: Subject, plain: list[Subject], build: Path, count: int
) -> list[dict[str, Any]]:
    """Time a plain GEMM on every shape against twin, other kernels, monoliths and cuBLAS."""
    rows = []
    for m, n, k in TIMED_GEMMS:
        sizes = {"M": m, "N": n, "K": k}
        sets = _sets(subject, sizes)
        ours = _launch(subject.kernel, sets)
        rivals: dict[str, Launch] = {}
        twin = subject.twin("native")
        if twin is not None:
            rivals["native twin"] = _launch(twin, sets)
        for other in plain:
            if other.name != subject.name:
                rivals[other.name] = _launch(other.kernel, sets)
        for cluster in (1, 2):
            rivals[f"monolith, cluster {cluster}"] = _launch(baseline(cluster, build), sets)
        rivals["cuBLAS"] = _cublas(sets)
        _warm(ours)
        for name, rival in rivals.items():
            rows.append(_row(subject, sizes, name, ours, rival, len(sets), count))
    return rows


def skinny_rows(subject: Subject, plain: list[Subject], count: int) -> list[dict[str, Any]]:
    """Time a split-K GEMM on shapes with few tiles against twin, plain GEMMs and cuBLAS."""
    rows = []
    for m, n, k in TIMED_SKINNY:
        sizes = {"M": m, "N": n, "K": k}
        sets = _sets(subject, sizes)
        ours = _launch(subject.kernel, sets)
        rivals = {other.name: _launch(other.kernel, sets) for other in plain}
        twin = subject.twin("native")
        if twin is not None:
            rivals["native twin"] = _launch(twin, sets)
        rivals["cuBLAS"] = _cublas(sets)
        _warm(ours)
        for name, rival in rivals.items():
            rows.append(_row(subject, sizes, name, ours, rival, len(sets), count))
    return rows


def twin_row(subject: Subject, count: int) -> list[dict[str, Any]]:
    """Time a megakernel on its shape against its native twin."""
    assert subject.reference is not None
    twin = subject.twin("native")
    if twin is None:
        return []
    sizes = sizes_of(subject.kernel.manifest, subject.reference.timed)
    sets = _sets(subject, sizes)
    ours = _launch(subject.kernel, sets)
    _warm(ours)
    return [_row(subject, sizes, "native twin", ours, _launch(twin, sets), len(sets), count)]


def rows_against(subject: Subject, other: Subject, rival: str, count: int) -> list[dict[str, Any]]:
    """Time a megakernel against another link of it, on its timed shape and on its smallest."""
    assert subject.reference is not None
    rows = []
    for shape in (subject.reference.timed, subject.reference.shapes[0]):
        sizes = sizes_of(subject.kernel.manifest, shape)
        sets = _sets(subject, sizes)
        ours, theirs = _launch(subject.kernel, sets), _launch(other.kernel, sets)
        _warm(ours)
        rows.append(_row(subject, sizes, rival, ours, theirs, len(sets), count))
    return rows


def stream_row(subject: Subject, count: int) -> list[dict[str, Any]]:
    """Time a streaming megakernel against a copy of as many bytes."""
    import torch

    assert subject.reference is not None
    sizes = sizes_of(subject.kernel.manifest, subject.reference.timed)
    sets = _sets(subject, sizes, minimum=2)
    moved = int(subject.reference.work(sizes))
    source = torch.empty(moved // 2, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    ours = _launch(subject.kernel, sets)
    _warm(ours)
    return [_row(subject, sizes, "copy", ours, lambda _: target.copy_(source), len(sets), count)]


def overhead_row(subject: Subject) -> dict[str, Any]:
    """Time the host part of a call with cached arguments, and the launch of the driver alone."""
    assert subject.reference is not None
    sizes = sizes_of(subject.kernel.manifest, subject.reference.shapes[0])
    (arguments,) = _sets(subject, sizes, only=1)
    kernel = subject.kernel
    whole, driver = (
        call_overhead(lambda: kernel(**arguments)),
        call_overhead(kernel.bind(**arguments)),
    )
    return {
        "megakernel": subject.name,
        "arguments": len(arguments),
        "microseconds": round(whole, 2),
        "driver_microseconds": round(driver, 2),
        "overhead_microseconds": round(whole - driver, 2),
    }


def _row(
    subject: Subject,
    sizes: Mapping[str, int],
    rival: str,
    ours: Launch,
    theirs: Launch,
    sets: int,
    count: int,
) -> dict[str, Any]:
    with deadline(f"{subject.name} {dict(sizes)} against {rival}", 120):
        found = pairs(ours, theirs, sets, count)
    reference = subject.reference
    assert reference is not None
    rate = reference.work(sizes) / found.a_us / 1e6
    theirs_rate = reference.work(sizes) / found.b_us / 1e6
    note(
        f"  {subject.name} {dict(sizes)} / {rival}: "
        f"{found.a_us:.1f} us, {rate:.1f} {reference.unit}; "
        f"{found.b_us:.1f} us, {theirs_rate:.1f}; ratio of times {found.ratio:.4f}"
    )
    return {
        "megakernel": subject.name,
        "sizes": dict(sizes),
        "rival": rival,
        "unit": reference.unit,
        "rate": rate,
        "rival_rate": theirs_rate,
        **found.as_dict(),
    }


def _sets(
    subject: Subject, sizes: Mapping[str, int], minimum: int = 2, only: int = 0
) -> list[dict[str, Any]]:
    manifest, reference = subject.kernel.manifest, subject.reference
    assert reference is not None
    count = only or sets_for(bytes_of(manifest, sizes), minimum)
    made = []
    for seed in range(count):
        arguments = make_inputs(manifest, sizes, reference.scalars, seed)
        arguments |= {k: v.array for k, v in make_outputs(manifest, sizes).items()}
        made.append(arguments)
    return made


def _launch(kernel: Kernel, sets: list[dict[str, Any]]) -> Launch:
    names = [tensor.name for tensor in kernel.manifest.tensors]
    names += [name for name, _ in kernel.manifest.scalars]
    chosen = [{name: arguments[name] for name in names} for arguments in sets]
    return lambda number: kernel(**chosen[number])


def _cublas(sets: list[dict[str, Any]]) -> Launch:
    import torch

    def launch(number: int) -> object:
        arguments = sets[number]
        return torch.matmul(arguments["a"], arguments["b"].T, out=arguments["out"])

    return launch


def _warm(launch: Launch, seconds: float = 0.5) -> None:
    """Warm up until the clock is that of a loaded GPU."""
    import time

    import torch

    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(10):
            launch(0)
        torch.cuda.synchronize()
