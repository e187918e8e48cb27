"""Reference results in float64 with torch, keyed by the name of the megakernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

Arrays = Mapping[str, Any]  # keyword -> float64 tensor, or a number for scalars
Sizes = Mapping[str, int]

# Ragged in every extent: below, at and just above the tile; K shorter than a tile; one row.
GEMM_SHAPES = (
    (128, 256, 64),
    (1, 8, 8),
    (7, 264, 72),
    (129, 264, 40),
    (127, 248, 1000),
    (300, 520, 136),
    (64, 8192, 128),
    (17, 8, 4104),
    (1000, 1000, 1000),
    (513, 1032, 2056),
    (2047, 4088, 520),
    (8191, 264, 64),
    (4096, 4096, 512),
    (2048, 2560, 4096),
)
ROW_COUNTS = (1, 2, 3, 4, 5, 7, 8, 127, 131, 528, 529, 1000, 4096, 10007)
TIMED_GEMMS = (
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (8192, 8192, 2048),
    (16384, 4096, 14336),
    (16384, 14336, 4096),
)


# Few tiles, long K: the projections of a small batch.
TIMED_SKINNY = (
    (128, 1024, 16384),
    (64, 1024, 16384),
    (16, 2048, 8192),
    (128, 4096, 16384),
)


@dataclass(frozen=True)
class Reference:
    """What a megakernel computes, and the shapes to run it on."""

    compute: Callable[[Arrays], Any]  # -> the output, float64
    shapes: tuple[dict[str, int], ...]  # for correctness: at least 12, ragged ones among them
    repeated: dict[str, int]  # for the thousand launches
    timed: dict[str, int]  # for one time
    work: Callable[[Sizes], float]  # floating-point operations of a multiplication, or bytes
    unit: str  # "TFLOP/s" or "TB/s"
    scalars: Mapping[str, float]
    absolute: float = 1e-3  # error allowed besides the rounding of the output


def _gemm(compute: Callable[[Arrays], Any], multiplications: int = 1) -> Reference:
    def sizes(shape: tuple[int, int, int]) -> dict[str, int]:
        return dict(zip("MNK", shape, strict=True))

    return Reference(
        compute,
        tuple(sizes(shape) for shape in GEMM_SHAPES),
        sizes((1000, 1032, 520)),
        sizes((8192, 8192, 4096)),
        lambda s: 2.0 * multiplications * s["M"] * s["N"] * s["K"],
        "TFLOP/s",
        {},
        4e-3 if multiplications > 1 else 1e-3,
    )


def _skinny(compute: Callable[[Arrays], Any]) -> Reference:
    """Return a GEMM with few tiles and a long K, the case for split-K."""
    return replace(
        _gemm(compute),
        repeated={"M": 128, "N": 1024, "K": 4104},
        timed=dict(zip("MNK", TIMED_SKINNY[0], strict=True)),
    )


def _rows(
    compute: Callable[[Arrays], Any], row_bytes: int, scalars: Mapping[str, float]
) -> Reference:
    return Reference(
        compute,
        tuple({"R": rows} for rows in ROW_COUNTS),
        {"R": 1003},
        {"R": (3 << 30) // row_bytes},
        lambda s: float(s["R"] * row_bytes),
        "TB/s",
        scalars,
    )


def _product(x: Arrays, b: str = "b") -> Any:
    return x["a"] @ x[b].T


def _gelu(x: Any) -> Any:
    import torch

    return torch.nn.functional.gelu(x)  # exact, by erf


def _gelu_tanh(x: Any) -> Any:
    import torch

    return torch.nn.functional.gelu(x, approximate="tanh")


def _silu(x: Any) -> Any:
    import torch

    return torch.nn.functional.silu(x)


def _rms_norm(x: Arrays) -> Any:
    import torch

    rows = x["x"]
    return rows * torch.rsqrt(rows.square().mean(1, keepdim=True) + x["eps"]) * x["weight"]


def _rms_reference(width: int) -> Reference:
    return _rows(_rms_norm, 2 * 2 * width, {"eps": 1e-5})


_PATTERNS: tuple[tuple[str, Callable[[], Reference]], ...] = (
    (r"gemm_bias_gelu_tanh.*", lambda: _gemm(lambda x: _gelu_tanh(_product(x) + x["bias"]))),
    (r"gemm_bias_gelu.*", lambda: _gemm(lambda x: _gelu(_product(x) + x["bias"]))),
    (r"gemm_gelu_tanh.*", lambda: _gemm(lambda x: _gelu_tanh(_product(x)))),
    (r"gemm_gelu.*", lambda: _gemm(lambda x: _gelu(_product(x)))),
    (r"gemm_bias_residual.*", lambda: _gemm(lambda x: _product(x) + x["bias"] + x["residual"])),
    (r"gemm_residual.*", lambda: _gemm(lambda x: _product(x) + x["residual"])),
    (r"gemm_bias.*", lambda: _gemm(lambda x: _product(x) + x["bias"])),
    (r"gemm_relu.*", lambda: _gemm(lambda x: _product(x).clamp(min=0))),
    (r"gemm_split_k.*", lambda: _skinny(_product)),
    (r"gemm(_multicast|_tensor_memory|(_transposed)?_\d+x\d+)?", lambda: _gemm(_product)),
    (
        r"gated_gemm.*",
        lambda: _gemm(lambda x: _silu(_product(x, "gate")) * _product(x, "up"), 2),
    ),
    (r"rms_norm", lambda: _rms_reference(4096)),
    (
        r"scaled_add",
        lambda: _rows(lambda x: x["x"] + x["alpha"] * x["z"], (2 + 4 + 2) * 2048, {"alpha": 0.75}),
    ),
)


def reference_of(name: str, widths: Sizes | None = None) -> Reference | None:
    """Return the reference of a megakernel; None if this file has none.

    widths: literal extents of its arrays, for families whose row width is part of the name.
    """
    for pattern, make in _PATTERNS:
        if re.fullmatch(pattern, name):
            return make()
    if name.startswith("rms_norm") and widths:
        return _rms_reference(max(widths.values()))
    return None
