"""The hand-written GEMM beside this file as a callable, compiled when its source changed."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

from pipelink_rules.launch.kernel import Kernel
from pipelink_rules.model.linked_kernel import KernelParameter, Manifest, TensorArgument

SOURCE = Path(__file__).with_name("gemm.cu")
SHARED_BYTES = 4 * 48 * 1024 + 8 * 4096 + 64  # stages, staging, mbarriers: as in gemm.cu


def baseline(cluster: int, build: Path, driver: Any = None) -> Kernel:
    """Return `kernel(a, b, out)` with clusters of 1 or 2 CTAs."""
    return Kernel(manifest(cluster), cubin(cluster, build).read_bytes(), driver=driver)


def cubin(cluster: int, build: Path) -> Path:
    """Return the machine code; its name has the digest of the source, so it is never stale."""
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    path = build / "benchmarks" / f"monolith_{cluster}_{digest}.cubin"
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [_compiler(build), "-O3", "-std=c++17", "-cubin", f"-DCLUSTER={cluster}"]
    command += ["-gencode", "arch=compute_90a,code=sm_90a", str(SOURCE), "-o", str(path)]
    subprocess.run(command, check=True)
    return path


def manifest(cluster: int) -> Manifest:
    """Return the manifest that the linker would write."""
    rows = 128 * cluster
    items = f"ceildiv(M, {rows}) * ceildiv(N, 256)"
    return Manifest(
        name=f"monolith_{cluster}",
        target="sm_90a",
        entry="monolith_gemm",
        cubin="",
        cubin_sha256="",
        threads=384,
        shared_bytes=SHARED_BYTES,
        occupancy=1,
        cluster=(cluster, 1, 1),
        grid=f"{cluster} * max(1, min(sms // {cluster}, {items}))",
        parameters=(
            KernelParameter("tensor_map", "a", "bf16", (128, 64), 128),
            KernelParameter("tensor_map", "b", "bf16", (256 // cluster, 64), 128),
            KernelParameter("tensor_map", "out", "bf16", (16, 64), 128),
            *(KernelParameter("i32", name, "i32") for name in ("K", "M", "N")),
        ),
        tensors=(
            TensorArgument("a", "bf16", ("M", "K"), "in", 16),
            TensorArgument("b", "bf16", ("N", "K"), "in", 16),
            TensorArgument("out", "bf16", ("M", "N"), "out", 16),
        ),
        scalars=(),
        symbols=(("K", 1, 2**31 - 1, 8), ("M", 1, 2**31 - 1, 1), ("N", 1, 2**31 - 1, 8)),
        requires=(),
        runs_on=(9, 0),
        runtime="none",
        deterministic=True,
    )


def _compiler(build: Path) -> str:
    """Return nvcc of the toolkit of the build, or any on PATH (sm_90a needs no linker)."""
    from pipelink_rules.diagnostics.diagnostic import PipelinkError
    from pipelink_rules.toolkit.find import find_toolkit

    try:
        return find_toolkit(build).nvcc
    except PipelinkError:
        found = shutil.which("nvcc")
        if found is None:
            raise
        return found
