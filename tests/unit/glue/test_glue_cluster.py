"""The glue of clusters: shape, barriers at both ends, places, rings that reach other CTAs."""

from __future__ import annotations

import re
from functools import cache

import pytest
from shipped_declarations import contracts, megakernels, placement_of, program_of

from pipelink_rules.glue.cluster import groups
from pipelink_rules.glue.emit import emit_glue
from pipelink_rules.glue.operation_script import script_of
from pipelink_rules.glue.parameters import kernel_parameters
from pipelink_rules.launch.compare_recording import items_of
from pipelink_rules.model.program import Program
from pipelink_rules.place.place import place
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.resolve import resolve
from pipelink_rules.program.spec import parse_declaration

NAME = "gemm_multicast"


@cache
def program(shape: tuple[int, int, int], transfer: str = "") -> Program:
    transfers = {"mma.ab": transfer} if transfer else {}
    spec = parse_declaration(**{**megakernels()[NAME], "cluster": shape, "transfers": transfers})
    return resolve(spec, bind_instances(spec, contracts(), {}), "sm_90a")


def glue(shape: tuple[int, int, int], transfer: str = "") -> str:
    made = program(shape, transfer)
    return emit_glue(made, place(placement_problem(made)))


def test_no_cta_starts_or_exits_while_others_access_its_shared_memory() -> None:
    """PL0805: the last thing that every warp of every CTA does is to wait for all the others."""
    text = emit_glue(program_of(NAME), placement_of(NAME))
    assert text.count("pipelink::cluster_sync();") == 2
    assert text.rstrip().endswith("  pipelink::cluster_sync();\n}")
    begin = text.index("pipelink::cluster_sync();")
    assert text.index("fence_barrier_init") < begin < text.index("const uint32_t items")
    assert "return;" not in text


def test_a_kernel_without_clusters_has_nothing_of_it() -> None:
    text = emit_glue(program_of("gemm"), placement_of("gemm"))
    assert "cluster" not in text


def test_a_cluster_that_shares_nothing_needs_no_barrier_of_it() -> None:
    text = glue((2, 1, 1), "ring")
    assert "__cluster_dims__(2, 1, 1)" in text and "blockIdx.x / 2" in text
    assert "cluster_sync" not in text and "cluster_ring" not in text


@pytest.mark.parametrize(
    ("shape", "size", "reach", "members", "empty"),
    [
        ((2, 1, 1), 2, "2, 1, 1, 1", ["16384, 128, 128, 2, 1"], 16),
        ((1, 2, 1), 2, "2, 1, 1, 1", ["0, 64, 128, 2, 1"], 16),
        (
            (2, 2, 1),
            4,
            "2, 1, 2, 2",
            ["0, 64, 128, 2, 2", "16384, 128, 128, 2, 1"],
            24,
        ),
    ],
)
def test_what_reaches_other_ctas(
    shape: tuple[int, int, int], size: int, reach: str, members: list[str], empty: int
) -> None:
    text = glue(shape)
    assert f"__cluster_dims__({size}, 1, 1)" in text
    assert f"kLoadAbBarriers, 1, {empty});" in text
    listed = ", ".join(f"{{{member}}}" for member in members)
    for end in ("load_ab", "mma_ab"):
        assert f"{end}_shared[] = {{{listed}}};" in text
        assert re.search(rf"{end}_ring = [^;]*Reach\{{{reach}, false\}}", text)
    loops = re.findall(r"for \(uint32_t item = (.*?); item < items; item \+= (.*?)\)", text)
    assert set(loops) == {(f"blockIdx.x / {size}", f"gridDim.x / {size}")}
    assert f".pl_cluster = {{pipelink::cluster_rank() % {shape[0]}" in text


@pytest.mark.parametrize("shape", [(2, 1, 1), (2, 2, 1), (4, 2, 1)])
def test_groups_make_up_the_reach(shape: tuple[int, int, int]) -> None:
    """What the runtime computes of one or two groups is what the check assumes."""
    (channel,) = program(shape).channels
    found = groups(channel)
    assert 1 <= len(found) <= 2
    for rank in range(shape[0] * shape[1]):
        reached = {rank}
        for size, stride in found:
            first = rank - rank // stride % size * stride
            reached |= {first + number * stride for number in range(size)}
        assert tuple(sorted(reached)) == channel.reach(rank)


def test_tensor_maps_are_of_slices() -> None:
    boxes = {p.name: p.box for p in kernel_parameters(program((2, 2, 1))) if p.box}
    assert boxes == {"a": (64, 64), "b": (128, 64), "out": (16, 64)}
    alone = {p.name: p.box for p in kernel_parameters(program((2, 2, 1), "ring")) if p.box}
    assert alone == {"a": (128, 64), "b": (256, 64), "out": (16, 64)}


def test_the_script_deals_items_to_clusters() -> None:
    made = program((2, 1, 1))
    script = script_of(made, dict(place(placement_problem(made)).warps))
    sizes = {"M": 1000, "N": 512, "K": 64}  # 4 x 2 blocks of two tiles
    taken = [items_of(script, sizes, cta, 6) for cta in range(6)]
    assert taken == [3, 3, 3, 3, 2, 2]


def test_objects_are_those_of_the_kernel_without_clusters() -> None:
    plain, clustered = program_of("gemm"), program_of(NAME)
    for name in ("load", "mma", "store"):
        assert plain.instance(name).variant.digest == clustered.instance(name).variant.digest
