"""The twin: every header by path, each variant current for its own sources only."""

from __future__ import annotations

from link_fixtures import bare_variant

from pipelink_rules.link.twin import TwinUnit, twin_source


def unit(component: str, digest: str, **more: tuple[str, ...]) -> TwinUnit:
    variant = bare_variant(component, digest)
    return TwinUnit(variant, f"build/v/{variant.name}", (f"src/{component}.cu",), **more)


def lines_of(units: list[TwinUnit]) -> list[str]:
    text = twin_source(units, ["runtime/release.cu"], "build/k/k.glue.cu", "build/k")
    return [line for line in text.splitlines() if line.startswith("#")]


def test_two_variants_of_one_source_follow_each_other() -> None:
    wide, narrow = unit("tile", "bbbbbbbbbbbb"), unit("tile", "aaaaaaaaaaaa")
    assert lines_of([wide, narrow]) == [
        '#include "../v/tile_aaaaaaaaaaaa/tile.contract.cuh"',
        '#include "../../src/tile.cu"',
        "#undef PL_CONTRACT_CURRENT_tile",
        '#include "../v/tile_bbbbbbbbbbbb/tile.contract.cuh"',
        '#include "../../src/tile.cu"',
        "#undef PL_CONTRACT_CURRENT_tile",
        '#include "../../runtime/release.cu"',
        '#include "k.glue.cu"',
    ]
    assert lines_of([wide, narrow]) == lines_of([narrow, wide])


def test_definitions_hold_for_one_variant() -> None:
    found = lines_of([unit("tile", "aaaaaaaaaaaa", defines=("FAST", "N=3"))])
    assert found[:2] == ["#define FAST 1", "#define N 3"]
    assert found[4:6] == ["#undef FAST", "#undef N"]
