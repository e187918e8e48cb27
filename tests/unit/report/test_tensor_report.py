"""Map, page and manifest row of a megakernel that uses tensor memory."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import AUDIT
from unit.check.programs import program

from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.place.place import place
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.report.diff import Link, diff_links
from pipelink_rules.report.html_map import render_page
from pipelink_rules.report.manifest import summary_of
from pipelink_rules.report.map import render_map
from pipelink_rules.report.map_rows import tensor_rows


@pytest.fixture(scope="module")
def tensor() -> Program:
    return program("tensor")


@pytest.fixture(scope="module")
def placed(tensor: Program) -> Placement:
    return place(placement_problem(tensor))


def test_map_and_page_show_the_columns(tensor: Program, placed: Placement) -> None:
    for text in (render_map(tensor, placed), render_map(tensor, placed, AUDIT)):
        section = text.split("\nTensor memory\n")[1].split("\n\n")[0].splitlines()
        assert section[1].split() == ["0", "256", "256", "mma.acc", "2", "x", "128"]
        assert (
            section[2].strip().startswith("256 columns of 128 lanes allocated per CTA; 256 of 512")
        )
        assert "128 columns" in text.split("Rings and their barriers")[1]
    page = render_page(tensor, placed, AUDIT)
    assert "Tensor memory" in page and "256 columns of 128 lanes" in page


def test_free_columns_are_shown(tensor: Program, placed: Placement) -> None:
    apart = replace(placed, columns=(("mma.acc", 64),), tensor_columns=512)
    _, rows = tensor_rows(tensor, apart)
    assert [row[:3] for row in rows] == [(0, 64, 64), (64, 320, 256), (320, 512, 192)]
    assert [row[3] for row in rows] == ["(free)", "mma.acc", "(free)"]


def test_differences_name_columns(tensor: Program, placed: Placement) -> None:
    moved = replace(placed, columns=(("mma.acc", 64),), tensor_columns=512)
    text = diff_links(Link(tensor, placed, None), Link(tensor, moved, None))
    lines = [line.split() for line in text.split("\nTensor memory\n")[1].splitlines()]
    assert lines[1:] == [
        ["mma.acc,", "first", "column", "0", "64", "+64"],
        ["columns", "allocated", "256", "512", "+256"],
    ]


def test_rows_of_other_kernels_say_nothing_of_it(tensor: Program, placed: Placement) -> None:
    assert summary_of(tensor, placed, AUDIT)["tensor columns"] == "256"
    assert "tensor columns" not in summary_of(tensor, replace(placed, tensor_columns=0), AUDIT)
