"""The page: well formed, alone, complete, the same every time, and nothing in it is markup."""

from __future__ import annotations

import dataclasses
import re
import xml.etree.ElementTree as tree
from collections.abc import Iterator

import pytest
from samples import AUDIT, PLACEMENT, PROGRAM

from pipelink_rules.model.linked_kernel import AllowedDiagnostics
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import FUSED, Connection, MegakernelSpec, Program
from pipelink_rules.report.html_map import render_page

VOID = {"meta"}  # elements of HTML that are never closed


def parsed(page: str) -> tree.Element:
    first, rest = page.split("\n", 1)
    assert first == "<!DOCTYPE html>"
    return tree.fromstring(rest)


def words(root: tree.Element) -> str:
    return "\n".join(root.itertext())


def rectangles(root: tree.Element, title: str) -> Iterator[tuple[float, float, str]]:
    """x, width and what is shown when one points at it, of one picture."""
    for svg in root.iter("svg"):
        if (svg.findtext("title") or "").startswith(title):
            for found in svg.iter("rect"):
                x, width = float(found.get("x", "")), float(found.get("width", ""))
                yield x, width, found.findtext("title") or ""


@pytest.fixture(scope="module")
def page() -> str:
    return render_page(PROGRAM, PLACEMENT, AUDIT)


def test_it_is_one_file_and_loads_nothing(page: str) -> None:
    assert not re.search(r"https?:|[\"(]//|url\(|@import|<script|<link|<img|src=|href=", page)
    (policy,) = (m for m in parsed(page).iter("meta") if m.get("http-equiv"))
    assert policy.get("content", "").startswith("default-src 'none'")


def test_it_is_well_formed_for_both_readers(page: str) -> None:
    """XML reads it, and HTML reads the same: only pictures and void elements close themselves."""
    root = parsed(page)
    drawn = {child for svg in root.iter("svg") for child in svg.iter()}
    closed = set(re.findall(r"<([a-z0-9]+)[^<>]*/>", page))
    assert closed <= VOID | {element.tag for element in drawn}
    assert not {element.tag for element in drawn} - {
        "svg", "title", "rect", "line", "text", "circle", "path"
    }  # fmt: skip


def test_everything_has_its_name(page: str) -> None:
    said = words(parsed(page))
    for instance in PROGRAM.instances:
        assert instance.name in said and instance.variant.digest in said
        for port in instance.variant.contract.ports:
            assert re.search(rf"\b{port.name}\b", said)
    for name in (*dict(PLACEMENT.offsets), *dict(PLACEMENT.named), *dict(PLACEMENT.warps)):
        assert name in said
    for connection in PROGRAM.connections:
        assert connection.name in said
    assert "1,234" in said and AUDIT.text_sha256 in said and "a warning" in said


def test_memory_is_drawn_to_scale(page: str) -> None:
    free, *items = rectangles(parsed(page), "shared memory")
    ends = {tip.split(":")[0]: (x, x + width) for x, width, tip in items}
    scale = free[1] / 232448
    start, end = ends["store.staging"]
    assert start == pytest.approx(free[0] + 73728 * scale, abs=0.1)
    assert end - start == pytest.approx(8192 * scale, abs=0.2)
    assert set(ends) == set(dict(PLACEMENT.offsets))
    assert all(free[0] <= x and x + width <= free[0] + free[1] + 2 for x, width, _ in items)


def test_boxes_of_instances_do_not_meet() -> None:
    fused = dataclasses.replace(
        PROGRAM,
        connections=tuple(
            Connection(item.producer, item.consumer, FUSED) for item in PROGRAM.connections
        ),
    )
    for program in (PROGRAM, fused):
        root = parsed(render_page(program, PLACEMENT, AUDIT))
        svg = next(s for s in root.iter("svg") if "instances" in (s.findtext("title") or ""))
        boxes = [
            tuple(float(r.get(side, "")) for side in ("x", "y", "width", "height"))
            for r in svg.iter("rect")
            if r.get("class") == "card"
        ]
        assert len(boxes) == len(PROGRAM.instances)
        for number, (x, y, width, height) in enumerate(boxes):
            assert x + width <= float(svg.get("width", "")) and y + height <= float(
                svg.get("height", "")
            )
            for u, v, other, tall in boxes[:number]:
                assert x >= u + other or u >= x + width or y >= v + tall or v >= y + height


def test_every_warp_is_drawn(page: str) -> None:
    tips = [tip for *_, tip in rectangles(parsed(page), "warps")]
    assert len(tips) == PLACEMENT.threads // 32
    assert "warp 0: load, 40 registers per thread" in tips
    assert "warp 1: idle, 40 registers per thread" in tips
    assert "warp 11: store, 232 registers per thread" in tips


def test_a_warpgroup_may_be_incomplete() -> None:
    placed = dataclasses.replace(PLACEMENT, threads=320)
    root = parsed(render_page(PROGRAM, placed, AUDIT))
    svg = next(s for s in root.iter("svg") if (s.findtext("title") or "").startswith("warps"))
    said = [found.text for found in svg.iter("text")]
    assert "store" in said and len(list(svg.iter("rect"))) == 10


def test_equal_inputs_give_equal_pages(page: str) -> None:
    assert render_page(PROGRAM, PLACEMENT, AUDIT) == page


def test_text_is_no_markup() -> None:
    spec = MegakernelSpec("sample", (), summary='<b onload="x"> & "q" </style>')
    note = dataclasses.replace(PLACEMENT, notes=("<script>alert(1)</script>",))
    page = render_page(dataclasses.replace(PROGRAM, spec=spec), note, AUDIT)
    root = parsed(page)
    assert not list(root.iter("script")) and "<b onload" not in page
    assert spec.summary in words(root) and note.notes[0] in words(root)


def test_a_forced_link_says_so() -> None:
    audit = dataclasses.replace(
        AUDIT, allowed=(AllowedDiagnostics("PL0921", "spills", "known and small"),)
    )
    (section,) = (
        s
        for s in parsed(render_page(PROGRAM, PLACEMENT, audit)).iter("section")
        if s.get("class") == "allowed"
    )
    assert "PL0921" in words(section) and "known and small" in words(section)


def test_a_forced_link_shows_the_run_into_its_fault() -> None:
    lines = ("1 load.load: acquire ab: item 0, stage 0", "2 mma.mma: wait ab waits for ever")
    audit = dataclasses.replace(
        AUDIT, allowed=(AllowedDiagnostics("PL0401", "m", "because", lines),)
    )
    root = parsed(render_page(PROGRAM, PLACEMENT, audit))
    assert "\n".join(lines) in [found.text for found in root.iter("pre")]


def test_other_targets_and_sizes() -> None:
    small = dataclasses.replace(PROGRAM, target="sm_120a", occupancy=2)
    placed: Placement = dataclasses.replace(PLACEMENT, setmaxnreg=False, occupancy=2)
    parsed(render_page(small, placed, AUDIT))
    alone: Program = dataclasses.replace(PROGRAM, connections=(), tensors=(), scalars=())
    parsed(render_page(alone, PLACEMENT, AUDIT))
