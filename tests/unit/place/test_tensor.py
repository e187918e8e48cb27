"""Tensor memory: columns in range, apart, allocated as the hardware can; refused iff none fit."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.placement import PlacementProblem
from pipelink_rules.place.place import place
from pipelink_rules.place.rectangles import allocation, column_limit
from pipelink_rules.place.verify import verify
from tests.unit.place.facts import problem_from

Need = tuple[int, int]  # columns, phase mask


def problem_of(needs: list[Need], occupancy: int = 1) -> PlacementProblem:
    """Needs without channels in up to two phases."""
    both = ["first", "second"]
    return problem_from(
        {
            "target": "sm_100a",
            "occupancy": occupancy,
            "phases": both,
            "roles": {"mma": {"warps": 1}},
            "tensor": {
                f"n{place}": {
                    "columns": columns,
                    "phases": [name for bit, name in enumerate(both) if mask >> bit & 1],
                }
                for place, (columns, mask) in enumerate(needs)
            },
        }
    )


def lowest_height(needs: list[Need]) -> int:
    """Some order of putting each need at its lowest free column is best; tries all of them."""
    best = 10**9
    for order in permutations(needs):
        put: list[tuple[int, int, int]] = []
        for columns, mask in order:
            start = 0
            while hit := [e for s, e, m in put if m & mask and s < start + columns and start < e]:
                start = max(hit)
            put.append((start, start + columns, mask))
        best = min(best, max(end for _, end, _ in put))
    return best


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 20).map(lambda n: 16 * n), st.integers(1, 3)),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 3),
)
def test_placed_iff_some_layout_fits(needs: list[Need], occupancy: int) -> None:
    problem = problem_of(needs, occupancy)
    fits = lowest_height(needs) <= column_limit(problem)
    try:
        placement = place(problem)
    except PipelinkError as refused:
        assert not fits
        assert [item.code for item in refused.diagnostics] == ["PL0801"]
        return
    assert fits and verify(problem, placement) == []
    assert placement.tensor_columns in (32, 64, 128, 256, 512)
    assert placement.tensor_columns * occupancy <= 512


@pytest.mark.parametrize(
    ("height", "columns"), [(0, 0), (1, 32), (32, 32), (33, 64), (256, 256), (257, 512)]
)
def test_allocations_are_powers_of_two(height: int, columns: int) -> None:
    assert allocation(height) == columns


@pytest.mark.parametrize(
    ("occupancy", "columns"), [(1, 512), (2, 256), (3, 128), (4, 128), (16, 32), (17, 0)]
)
def test_ctas_share_the_columns(occupancy: int, columns: int) -> None:
    assert column_limit(problem_of([(32, 1)], occupancy)) == columns


WRONG = {
    "overlap": ({"columns": (("n0", 0), ("n1", 64))}, "n1 overlaps n0"),
    "outside": ({"columns": (("n0", 0), ("n1", 192))}, "tensor memory of n1: columns 192..319"),
    "negative": ({"columns": (("n0", -128), ("n1", 128))}, "columns -128..-1"),
    "missing": ({"columns": (("n0", 0),)}, "tensor memory of n1: not placed"),
    "no power of two": ({"tensor_columns": 384}, "384 columns cannot be allocated"),
    "none": ({"tensor_columns": 0}, "0 columns cannot be allocated"),
    "more than there are": ({"tensor_columns": 1024}, "exceed the SM"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_checker_sees(name: str) -> None:
    problem = problem_of([(128, 1), (128, 1)])
    placement = place(problem)
    assert placement.columns == (("n0", 0), ("n1", 128)) and placement.tensor_columns == 256
    changes, said = WRONG[name]
    assert any(said in fault for fault in verify(problem, replace(placement, **changes)))


def test_no_columns_on_a_target_without_tensor_memory() -> None:
    problem = replace(problem_of([(32, 1)]), target="sm_90a")
    with pytest.raises(PipelinkError) as refused:
        place(problem)
    assert refused.value.diagnostics[0].code == "PL0801"


def test_a_stage_more_where_columns_suffice() -> None:
    facts = {
        "target": "sm_100a",
        "stages": {"acc": [1, 4]},
        "roles": {"mma": {"warps": 1}},
        "tensor": {"acc": {"columns": 160, "channel": "acc"}},
    }
    placement = place(problem_from(facts))
    assert placement.stage_count("acc") == 3 and placement.tensor_columns == 512
    assert placement.first_column("acc") == 0
