"""Manifests as the linker writes them, small enough to read."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from pipelink_rules.files.codec import write_json
from pipelink_rules.model.linked_kernel import KernelParameter, Manifest, Site, TensorArgument

CUBIN = b"\x7fELF a cubin"

GEMM = Manifest(
    name="gemm_bias",
    target="sm_90a",
    entry="pl_gemm_bias",
    cubin="gemm_bias.cubin",
    cubin_sha256=hashlib.sha256(CUBIN).hexdigest(),
    threads=384,
    shared_bytes=214016,
    occupancy=1,
    cluster=(1, 1, 1),
    grid="max(1, min(sms * occupancy, ceildiv(M, 128) * ceildiv(N, 256)))",
    parameters=(
        KernelParameter("tensor_map", "a", "bf16", (128, 64), 128, "load.A", ("load.A",)),
        KernelParameter("tensor_map", "b", "bf16", (256, 64), 128, "load.B", ("load.B",)),
        KernelParameter("pointer", "bias", "bf16", port="bias.vector", ports=("bias.vector",)),
        KernelParameter("tensor_map", "out", "bf16", (16, 64), 128, "store.C", ("store.C",)),
        KernelParameter("f32", "scale", "f32", port="bias.scale", ports=("bias.scale",)),
        KernelParameter("i32", "K", "i32"),
        KernelParameter("i32", "M", "i32"),
        KernelParameter("i32", "N", "i32"),
    ),
    tensors=(
        TensorArgument("a", "bf16", ("M", "K"), "in", 16),
        TensorArgument("b", "bf16", ("N", "K"), "in", 16),
        TensorArgument("bias", "bf16", ("N",), "in", 16),
        TensorArgument("out", "bf16", ("M", "N"), "out", 16),
    ),
    scalars=(("scale", "f32"),),
    symbols=(("K", 1, 2**31 - 1, 8), ("M", 1, 2**31 - 1, 1), ("N", 1, 2**31 - 1, 8)),
    requires=(("K <= 65536", "load (components/gemm/tma_load_ab.contract.yaml:9:5)"),),
    runs_on=(9, 0),
    runtime="release",
    deterministic=True,
    sites=(
        Site(1, "load", "load", "ab", "load.ab", 4, 1, 8),
        Site(2, "mma", "mma", "ab", "load.ab", 4, 1, 8),
        Site(3, "store", "store", "turn", empty_arrivals=256),
    ),
    summary="C = A x B^T + bias.",
)


def saved(folder: Path, manifest: Manifest = GEMM, **changes: Any) -> Path:
    """Writes manifest and cubin; the manifest's path."""
    manifest = dataclasses.replace(manifest, **changes)
    (folder / manifest.cubin).write_bytes(CUBIN)
    return write_json(folder / f"{manifest.name}.manifest.json", manifest)
