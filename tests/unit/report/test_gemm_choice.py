"""The rule that chooses the tile of a plain GEMM, on what was measured and on all shapes."""

from __future__ import annotations

import json
from statistics import geometric_mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.measure.gemm_choice import Tile, choose, estimate_us, tile_of
from benchmarks.measure.gemm_rows import WEIGHTS, random_shapes
from benchmarks.paths import RESULTS
from tests import shipped_declarations

FAMILY = sorted(shipped_declarations.built_by_name())
SHAPES = st.tuples(*(st.integers(1, 20000) for _ in "mnk"))


def test_the_tile_of_a_kernel_is_in_its_name() -> None:
    assert tile_of("gemm") == Tile(128, 256)
    assert tile_of("gemm_64x112") == Tile(64, 112)
    assert tile_of("gemm_transposed_16x64") == Tile(16, 64)
    assert tile_of("gemm_multicast") is None and tile_of("gated_gemm") is None


@pytest.mark.parametrize("name", FAMILY)
def test_the_name_states_the_tile_of_the_components(name: str) -> None:
    tile = tile_of(name)
    assert tile is not None
    arguments = shipped_declarations.built_by_name()[name]["instances"]["mma"][1]
    rows, columns = (arguments[key] for key in ("TM", "TN"))
    assert tile == (Tile(columns, rows) if "transposed" in name else Tile(rows, columns))


@given(SHAPES)
def test_a_kernel_is_chosen_for_every_shape(shape: tuple[int, int, int]) -> None:
    name = choose([*FAMILY, "gemm", "rms_norm"], *shape)
    tile = tile_of(name)
    assert tile is not None
    assert all(estimate_us(tile, *shape) <= estimate_us(tile_of(n) or tile, *shape) for n in FAMILY)


def test_few_rows_take_the_transposed_form() -> None:
    assert all(choose(FAMILY, 1, n, k).startswith("gemm_transposed_16") for n, k in WEIGHTS)


def test_the_committed_rows_are_those_of_the_rule() -> None:
    (file,) = RESULTS.glob("gemm-rows-*.json")
    results = json.loads(file.read_text())
    parts = {name: part["rows"] for name, part in results["parts"].items()}
    assert [tuple(row["sizes"].values()) for row in parts["gemm_random"]] == random_shapes()
    for row in (row for rows in parts.values() for row in rows):
        assert row["megakernel"] == choose(results["kernels"], *row["sizes"].values())
        assert row["right"]
    few = [row["ratio"] for row in parts["gemm_rows"] if row["sizes"]["M"] <= 512]
    assert len(few) == 36 and geometric_mean(few) <= 1.0
