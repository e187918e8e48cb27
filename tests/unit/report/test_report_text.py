"""Map, comparison and table: the facts are there, and only differences differ."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import AUDIT, PLACEMENT, PROGRAM, other_placement

from pipelink_rules.actions.link_actions import read_link
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.text_table import format_table
from pipelink_rules.files.codec import write_json
from pipelink_rules.model.linked_kernel import TwinBuild, TwinReport
from pipelink_rules.place.place import place
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.report.diff import Link, diff_links
from pipelink_rules.report.manifest import manifest_of
from pipelink_rules.report.map import render_map
from pipelink_rules.report.memory_map import MemoryRange, memory_rows, overlays, phase_rows
from pipelink_rules.report.summary_table import render_table, table_of_folders, twin_of

EXPECTED_MAP = Path(__file__).with_name("sample.map.txt")


def test_the_whole_map() -> None:
    assert render_map(PROGRAM, PLACEMENT, AUDIT) == EXPECTED_MAP.read_text()


def test_bytes_of_the_map_tile_the_shared_memory() -> None:
    _, rows = memory_rows(PROGRAM, PLACEMENT)
    assert rows[0][0] == 0 and rows[-1][1] == PLACEMENT.shared_bytes
    assert all(row[1] == after[0] for row, after in itertools.pairwise(rows))
    assert [row[2] for row in rows if row[5] == "(free)"] == [1024]


def test_bound_and_slack_of_a_phase() -> None:
    heading, (row,) = phase_rows(PROGRAM, PLACEMENT)
    name, live, top, slack, limit = row
    assert heading == ("phase", "bound", "taken", "slack", "limit")
    assert (name, live, top, limit) == ("work", PLACEMENT.bound_bytes, 115792, 232448)
    assert slack == 232448 - 115792


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=6).map(
        lambda found: [MemoryRange(str(i), s, s + n, 1, 1, "") for i, (s, n) in enumerate(found)]
    )
)
def test_overlays_are_shared_bytes(pieces: list[MemoryRange]) -> None:
    found = overlays(pieces)
    for one in pieces:
        meets = [
            other.name
            for other in pieces
            if other is not one
            and set(range(one.start, one.end)) & set(range(other.start, other.end))
        ]
        assert found.get(one.name, []) == meets


def test_no_difference() -> None:
    link = Link(PROGRAM, PLACEMENT, AUDIT)
    assert "no difference: the same placement and the same machine code" in diff_links(link, link)
    placed = Link(PROGRAM, PLACEMENT, None)
    assert diff_links(placed, placed).endswith("no difference: the same placement\n")


def test_what_differs_and_nothing_else() -> None:
    audit = dataclasses.replace(AUDIT, instructions=1200, text_sha256="cd" * 32)
    text = diff_links(Link(PROGRAM, PLACEMENT, AUDIT), Link(PROGRAM, other_placement(), audit))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "load.ab 3 2 -1" in lines
    assert "load warp 0, 40 registers warp 0, 24 registers" in lines
    assert "instructions 1,234 1,200 -34" in lines
    assert "load.ab 0..73,728 0..49,152" in lines
    assert not any(
        line.startswith(("mma ", "Parameters", "Connections", "registers ")) for line in lines
    )


def test_folders(tmp_path: Path) -> None:
    problem = placement_problem(PROGRAM)
    stages = tuple(dataclasses.replace(item, maximum=item.minimum) for item in problem.stages)
    fewer = place(dataclasses.replace(problem, stages=stages))
    for name, placement in (("a", PLACEMENT), ("b", fewer)):
        folder = tmp_path / name
        write_json(folder / "sample.program.json", PROGRAM)
        write_json(folder / "sample.placement.json", placement)
    before, after = read_link(tmp_path / "a"), read_link(tmp_path / "b")
    assert "no difference" in diff_links(before, before)
    assert "Stages" in diff_links(before, after)
    with pytest.raises(PipelinkError, match="PL0010"):
        read_link(tmp_path)
    write_json(tmp_path / "b" / "sample.placement.json", other_placement())
    with pytest.raises(PipelinkError, match="PL0107"):  # registers that no launch has
        read_link(tmp_path / "b")


def test_table(tmp_path: Path) -> None:
    folder = tmp_path / "sample"
    folder.mkdir()
    (folder / "sample.cubin").write_bytes(b"code")
    manifest = manifest_of(PROGRAM, PLACEMENT, AUDIT, folder / "sample.cubin")
    write_json(folder / "sample.manifest.json", manifest)
    places = [(str(folder), "sm_90a", "sample", 0.423), (str(folder), "sm_90a", "sample", None)]
    heading, _, first, second = table_of_folders(places, 160).strip("\n").splitlines()
    assert heading.split("  ")[0].strip() == "megakernel"
    cells = [cell.strip() for cell in first.split("  ") if cell.strip()]
    assert cells == [
        "sample", "sm_90a", "115,792", "load.ab 3, mma.acc>store.acc 2", "168 -> 40/232", "11",
        "1,234", "not built", "0.42",
    ]  # fmt: skip
    assert second.split()[-1] == "cached"


@pytest.mark.parametrize(("identical", "word"), [(True, "identical"), (False, "differs")])
def test_twin(tmp_path: Path, identical: bool, word: str) -> None:
    assert twin_of(tmp_path, "x") == "not built"
    built = TwinBuild(640, 168, 0, 0, 0, AUDIT.text_sha256)
    write_json(tmp_path / "x.twin.json", TwinReport("x", built, built, built, identical, False))
    write_json(tmp_path / "x.audit.json", AUDIT)
    assert twin_of(tmp_path, "x") == word
    write_json(tmp_path / "x.audit.json", dataclasses.replace(AUDIT, text_sha256="of a later link"))
    assert twin_of(tmp_path, "x") == "not built"


def test_a_row_without_a_link() -> None:
    assert render_table([{"megakernel": "x"}]).count("-") >= 7


@given(st.lists(st.tuples(st.text("abc-1", min_size=1), st.integers(0, 10**6)), min_size=1))
def test_columns_align(rows: list[tuple[str, int]]) -> None:
    heading, *lines = format_table(("name", "number"), rows)
    assert len({len(line) for line in lines}) == 1 and len(lines) == len(rows)
    assert [int(line.split()[-1]) for line in lines] == [number for _, number in rows]
    assert heading.split() == ["name", "number"]
