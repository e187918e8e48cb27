"""Measure plain GEMMs from one row up against cuBLAS; needs a GPU.

    scons megakernels ; python -m benchmarks.measure.gemm_rows [--pairs 100]

Every shape is computed by the kernel that `gemm_choice` names, checked in float64 and timed in
pairs with the best of torch's two libraries (cuBLAS and cuBLASLt, both with a workspace).  Writes
benchmarks/results/gemm-rows-<card>.json.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure.benchmark_kernels import subjects
from benchmarks.measure.gemm_choice import choose, tile_of
from benchmarks.measure.harness import machine, note, pairs, sets_for, toolkit_of
from benchmarks.paths import RESULTS
from pipelink_rules.launch import Kernel

ROWS = (1, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 8192)
WEIGHTS = ((4096, 4096), (6144, 4096), (14336, 4096), (4096, 14336))  # N, K of an 8B model
SQUARES = ((4096, 4096, 4096), (8192, 8192, 8192))
SEED = 20261201  # of shapes that were drawn after the rule was fixed
RANDOM_SHAPES = 30
MOST_SETS = 24
TOLERANCE = 4e-3  # relative norm of the error: bf16 rounds the result to 2^-9
LIBRARIES = ("cublas", "cublaslt")


def main() -> int:
    """Measure all shapes; return 1 if a result is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--most-rows", type=int, default=8192, help="leave out larger M")
    parser.add_argument("--out", default="")
    arguments = parser.parse_args()
    import torch

    kernels = _kernels(Path(arguments.build))
    results: dict[str, Any] = {
        "schema": 1,
        **machine(["python", "-m", "benchmarks.measure.gemm_rows", *sys.argv[1:]]),
        "toolkit": toolkit_of(Path(arguments.build)),
        "seed": SEED,
        "kernels": sorted(kernels),
        "ceilings": _ceilings(),
        "parts": {},
    }
    card = torch.cuda.get_device_name(0).lower().replace(" ", "-").removeprefix("nvidia-")
    out = Path(arguments.out or RESULTS / f"gemm-rows-{card}.json")
    for part, shapes in (("gemm_rows", _shapes()), ("gemm_random", random_shapes())):
        chosen = [shape for shape in shapes if shape[0] <= arguments.most_rows]
        rows = [_row(kernels, shape, results["ceilings"], arguments.pairs) for shape in chosen]
        mean = statistics.geometric_mean(row["ratio"] for row in rows)
        worst = max(row["ratio"] for row in rows)
        note(f"{part}: geometric mean of the ratios of times {mean:.4f}, worst {worst:.4f}")
        results["parts"][part] = {"geometric_mean": mean, "worst": worst, "rows": rows}
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 1 if any(not row["right"] for p in results["parts"].values() for row in p["rows"]) else 0


def random_shapes() -> list[tuple[int, int, int]]:
    """Return shapes drawn by the seed: M by its logarithm, N and K in steps of 128."""
    drawn = random.Random(SEED)
    return [
        (
            round(2 ** drawn.uniform(0, 13)),
            128 * drawn.randint(8, 128),
            128 * drawn.randint(8, 128),
        )
        for _ in range(RANDOM_SHAPES)
    ]


def _shapes() -> list[tuple[int, int, int]]:
    return [(m, n, k) for n, k in WEIGHTS for m in ROWS] + list(SQUARES)


def _kernels(build: Path) -> dict[str, Kernel]:
    return {item.name: item.kernel for item in subjects(build, "sm_90a", []) if tile_of(item.name)}


def _ceilings() -> dict[str, float]:
    """Measure the bandwidth of a large copy in TB/s and the rate of a large product in TFLOP/s."""
    import torch

    source = torch.empty(1 << 31, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    found = pairs(lambda _: target.copy_(source), lambda _: torch.matmul(a, b), 1, 20)
    return {
        "copy_tbs": 2 * 2**31 / found.a_us / 1e6,
        "product_tflops": 2 * 8192**3 / found.b_us / 1e6,
    }


def _row(
    kernels: dict[str, Kernel], shape: tuple[int, int, int], ceilings: dict[str, float], count: int
) -> dict[str, Any]:
    import torch

    m, n, k = shape
    name = choose(kernels, m, n, k)
    per_set = 2 * (m * k + n * k + m * n)
    sets = min(MOST_SETS, sets_for(per_set))
    generator = torch.Generator(device="cuda").manual_seed(m + n + k)

    def made(rows: int, scale: float) -> list[Any]:
        shape = (rows, k)
        return [
            torch.randn(shape, generator=generator, device="cuda", dtype=torch.bfloat16) * scale
            for _ in range(sets)
        ]

    a, b = made(m, 1.0), made(n, k**-0.5)
    out = [torch.empty(m, n, device="cuda", dtype=torch.bfloat16) for _ in range(sets)]
    kernel = kernels[name]
    error = _error(kernel, a[0], b[0], out[0])
    best: dict[str, Any] = {}
    for library in LIBRARIES:
        torch.backends.cuda.preferred_blas_library(library)

        def rival(number: int) -> object:
            return torch.matmul(a[number], b[number].T, out=out[number])

        def ours(number: int) -> object:
            return kernel(a=a[number], b=b[number], out=out[number])

        found = pairs(ours, rival, sets, count).as_dict()
        if not best or found["b_us"] < best["b_us"]:
            best = {"rival": library, **found}
    bytes_us = per_set / ceilings["copy_tbs"] / 1e6
    flops_us = 2 * m * n * k / ceilings["product_tflops"] / 1e6
    row = {
        "megakernel": name,
        "sizes": {"M": m, "N": n, "K": k},
        "floor_us": max(bytes_us, flops_us),
        "relative_norm": error,
        "right": error < TOLERANCE,
        **best,
    }
    note(
        f"  {m:5} x {n:5} x {k:5}  {name:28} {row['a_us']:8.1f} us  {row['rival']:9} "
        f"{row['b_us']:8.1f} us  ratio {row['ratio']:.4f}" + ("" if row["right"] else "  WRONG")
    )
    return row


def _error(kernel: Kernel, a: Any, b: Any, out: Any) -> float:
    """Return the norm of the error over that of the result, in float64; NaN if unwritten."""
    out.fill_(float("nan"))
    kernel(a=a, b=b, out=out)
    rows = slice(0, 512)  # float64 products of whole large shapes take seconds
    exact = a[rows].double() @ b.double().T
    return float((out[rows].double() - exact).norm() / exact.norm())


if __name__ == "__main__":
    sys.exit(main())
