"""Layouts are maps: compared with the map written out."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelink_rules.check.tile_layouts import describe, difference, swizzled, terms
from pipelink_rules.model.contract import DTYPES, Layout, Member
from pipelink_rules.model.source_span import Expr


def tile(shape: tuple[int, ...], strides: tuple[object, ...] = (), swizzle: int = 0) -> Member:
    """A tile of bf16; a nested stride is a tuple of (extent, stride)."""

    def mode(stride: object) -> object:
        if isinstance(stride, tuple):
            return tuple((Expr(str(extent)), Expr(str(step))) for extent, step in stride)
        return Expr(str(stride))

    extents = tuple(Expr(str(extent)) for extent in shape)
    return Member("t", "bf16", extents, Layout(tuple(map(mode, strides)), swizzle))  # type: ignore[arg-type]


def written_out(member: Member) -> dict[tuple[int, ...], int]:
    """Coordinate -> byte, by the definition."""
    modes = terms(member)
    return {
        at: swizzled(sum(mode[x] for mode, x in zip(modes, at, strict=True)), member.layout.swizzle)
        for at in product(*(range(len(mode)) for mode in modes))
    }


@pytest.mark.parametrize(("span", "moved"), [(0, 0), (32, 16), (64, 48), (128, 112)])
def test_swizzle_moves_chunks_of_sixteen_bytes(span: int, moved: int) -> None:
    assert swizzled(7 * 128, span) == 7 * 128 ^ moved
    assert swizzled(15, span) == 15 and swizzled(1024, span) == 1024


@pytest.mark.parametrize("span", [32, 64, 128])
def test_swizzle_is_a_permutation(span: int) -> None:
    assert sorted(swizzled(byte, span) for byte in range(2048)) == list(range(2048))


def test_row_major_is_the_default() -> None:
    assert difference(tile((4, 8)), tile((4, 8), (8, 1))) is None
    assert difference(tile((4, 8)), tile((4, 8), (1, 4))) == ((0, 1), 2, 8)


def test_nested_mode() -> None:
    columns = ((4, 1), (2, 64))  # two groups of four columns, 64 elements apart
    found = difference(tile((2, 8)), tile((2, 8), (8, columns)))
    assert found == ((0, 4), 8, 128)
    assert "[[4, 1], [2, 64]]" in describe(tile((2, 8), (8, columns)))


def test_swizzle_that_a_small_tile_does_not_reach_is_none() -> None:
    assert difference(tile((1, 64)), tile((1, 64), swizzle=128)) is None
    assert difference(tile((2, 64)), tile((2, 64), swizzle=128)) == ((1, 0), 128, 144)


def test_large_tiles_are_compared_by_mode() -> None:
    assert difference(tile((4096, 4096)), tile((4096, 4096), (4096, 1))) is None
    assert difference(tile((4096, 4096)), tile((4096, 4096), (4097, 1))) == ((1, 0), 8192, 8194)


shapes = st.tuples(st.integers(1, 6), st.integers(1, 6))
strides = st.tuples(st.integers(0, 9), st.integers(0, 70))
spans = st.sampled_from((0, 32, 64, 128))


@given(shapes, strides, strides, spans, spans)
def test_difference_is_that_of_the_maps(
    shape: tuple[int, int],
    one: tuple[int, int],
    two: tuple[int, int],
    span: int,
    other: int,
) -> None:
    a, b = tile(shape, one, span), tile(shape, two, other)
    left, right = written_out(a), written_out(b)
    found = difference(a, b)
    assert (found is None) is (left == right)
    if found:
        at, x, y = found
        assert left[at] == x != y == right[at]
        assert min(key for key in left if left[key] != right[key]) == at or span == other


def test_terms_are_bytes() -> None:
    assert terms(tile((2, 2))) == [[0, 4], [0, 2]]
    assert DTYPES["bf16"][0] == 2
