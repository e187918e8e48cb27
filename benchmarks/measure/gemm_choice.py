"""Choose the tile of a plain GEMM by its estimated time on an H200.

The constants were fitted to measured times of the eleven kernels of megakernels/gemm_tiles on 36
shapes (M up to 512, the four weights of an 8B model) and have not been changed since; all other
shapes, the random ones among them, are unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

SMS = 132
LAUNCH_US = 5.0  # a launch, first loads and the last store: K = 64 takes as long
DRAM = 4.0  # TB/s
MMA = 5.5  # TFLOP/s of one SM
INTAKE = 95.0  # GB/s from L2 into one SM
INTAKE_ALONE = 1.6  # times as much, if every second SM is idle: two SMs share a port
WASTE = 0.1  # of the time per fraction of rows that are outside of C
OVERLAP = 0.15  # of the shorter of memory and tensor core time that is not hidden


@dataclass(frozen=True)
class Tile:
    """Rows and columns of C in one work tile."""

    rows: int
    columns: int


def tile_of(megakernel: str) -> Tile | None:
    """Return the tile of a kernel of the family, by its name."""
    if megakernel == "gemm":
        return Tile(128, 256)
    found = re.fullmatch(r"gemm_(?:transposed_)?(\d+)x(\d+)", megakernel)
    return Tile(int(found[1]), int(found[2])) if found else None


def estimate_us(tile: Tile, m: int, n: int, k: int) -> float:
    """Return the estimated time of C [m, n] = A [m, k] B [n, k]^T."""
    down, across = -(-m // tile.rows), -(-n // tile.columns)
    rounds = -(-down * across // SMS)
    used = -(-down * across // rounds)
    multiply = tile.rows * tile.columns * 64 * 2 / MMA / 1e6
    intake = INTAKE * (INTAKE_ALONE if used <= SMS // 2 else 1)
    load = (tile.rows + tile.columns) * 64 * 2 / intake / 1e3
    outside = down * tile.rows / m - 1 if m > tile.rows else (tile.rows - m) / tile.rows
    busy = rounds * -(-k // 64) * max(multiply, load) * (1 + WASTE * outside)
    memory = 2 * (n * k + m * k + m * n) / DRAM / 1e6
    return LAUNCH_US + max(busy, memory) + OVERLAP * min(busy, memory)


def choose(megakernels: Iterable[str], m: int, n: int, k: int) -> str:
    """Return the name of the kernel with the least estimated time, the first of equals."""
    tiles = {name: tile for name in sorted(megakernels) if (tile := tile_of(name)) is not None}
    return min(tiles, key=lambda name: estimate_us(tiles[name], m, n, k))
