"""Maps, pages and differences say what the CTAs of a cluster load for each other."""

from __future__ import annotations

from dataclasses import replace

from shipped_declarations import placement_of, program_of

from pipelink_rules.report.diff import Link, diff_links
from pipelink_rules.report.map import render_map
from pipelink_rules.report.map_rows import cluster_rows, cluster_text

NAME = "gemm_multicast"


def test_every_shared_member_is_listed() -> None:
    _, rows = cluster_rows(program_of(NAME))
    assert rows == [("load.ab.B", "2 CTAs along x", "128 of 256 rows, 16,384 bytes")]
    assert cluster_text(program_of(NAME)) == (
        "clusters of 2 x 1 x 1 CTAs; load.ab: each reads 32,768 of 49,152 bytes; "
        "a stage is free when 2 CTAs have released it"
    )


def test_a_cluster_that_shares_nothing_says_its_shape() -> None:
    program = program_of(NAME)
    channels = tuple(replace(channel, multicast=()) for channel in program.channels)
    alone = replace(program, channels=channels)
    assert cluster_text(alone) == "clusters of 2 x 1 x 1 CTAs"
    assert cluster_rows(alone)[1] == []


def test_single_ctas_have_no_section() -> None:
    assert cluster_text(program_of("gemm")) == ""
    assert "\nCluster\n" not in render_map(program_of("gemm"), placement_of("gemm"))


def test_the_map_has_a_section() -> None:
    text = render_map(program_of(NAME), placement_of(NAME))
    assert "\nCluster\n  member     shared by       each copies\n" in text


def test_the_difference_to_the_kernel_without_a_cluster() -> None:
    before, after = (Link(program_of(n), placement_of(n), None) for n in ("gemm", NAME))
    text = diff_links(before, after)
    assert "\nCluster\n" in text
    assert any(
        line.split() == ["CTAs", "1", "x", "1", "x", "1", "2", "x", "1", "x", "1"]
        for line in text.splitlines()
    )
    assert "load.ab.B" in text and "multicast" in text
