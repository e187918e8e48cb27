"""Members of rings that CTAs of a cluster need alike become multicasts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from pipelink_rules.check.check import check
from pipelink_rules.contract.bind import bind
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.contract import Contract, Operation, Repeat
from pipelink_rules.model.program import Multicast, Program
from pipelink_rules.model.target import TARGETS
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.multicast import MulticastAnalysis
from pipelink_rules.program.resolve import resolve
from pipelink_rules.program.spec import parse_declaration

Build = Callable[..., Program]
LOAD = "//components/gemm:tma_load_ab"


def declaration(cluster: tuple[int, int, int], **clauses: Any) -> dict[str, Any]:
    tile = {"TM": 128, "TN": 256, "TK": 64}
    return {
        "name": "gemm",
        "instances": {
            "tiles": ("//components/scheduler:cluster_tiles", {}),
            "load": (LOAD, tile),
            "mma": ("//components/gemm:wgmma_mainloop", {**tile, "WG": 2}),
            "store": ("//components/epilogue:tma_store", {}),
        },
        "connect": {"mma.ab": "load.ab", "store.acc": "mma.acc"},
        "tensors": {"a": "load.A", "b": "load.B", "out": "store.C"},
        "cluster": cluster,
        **clauses,
    }


@pytest.fixture
def build(components: dict[str, Contract]) -> Build:
    def built(
        cluster: tuple[int, int, int], changed: dict[str, Contract] | None = None, **clauses: Any
    ) -> Program:
        spec = parse_declaration(**declaration(cluster, **clauses))
        return resolve(spec, bind_instances(spec, {**components, **(changed or {})}), "sm_90a")

    return built


def refused(build: Build, *arguments: Any, **clauses: Any) -> list[Any]:
    with pytest.raises(PipelinkError) as caught:
        build(*arguments, **clauses)
    return list(caught.value.diagnostics)


def groups(program: Program) -> dict[str, tuple[int, int, int]]:
    (channel,) = program.channels
    return {item.member: (item.size, item.stride, item.rows) for item in channel.multicast}


@pytest.mark.parametrize(
    ("cluster", "members", "arrivals"),
    [
        ((1, 1, 1), {}, 8),
        ((2, 1, 1), {"B": (2, 1, 128)}, 16),
        ((1, 2, 1), {"A": (2, 1, 64)}, 16),
        ((2, 2, 1), {"A": (2, 2, 64), "B": (2, 1, 128)}, 24),
        ((4, 2, 1), {"A": (2, 4, 64), "B": (4, 1, 64)}, 40),
    ],
)
def test_what_ctas_need_alike_is_shared(
    build: Build, cluster: tuple[int, int, int], members: dict[str, Any], arrivals: int
) -> None:
    program = build(cluster)
    assert groups(program) == members
    (channel,) = program.channels
    assert (channel.full_arrivals, channel.empty_arrivals) == (1, arrivals)
    assert program.connections[0].transfer == ("multicast" if members else "ring")


def test_reach_is_the_row_and_the_column(build: Build) -> None:
    (channel,) = build((2, 2, 1)).channels
    assert [channel.reach(rank) for rank in range(4)] == [
        (0, 1, 2),
        (0, 1, 3),
        (0, 2, 3),
        (1, 2, 3),
    ]


@pytest.mark.parametrize(("size", "stride"), [(2, 1), (2, 4), (4, 2), (3, 2), (8, 1)])
def test_groups_part_the_cluster(size: int, stride: int) -> None:
    shared = Multicast("t", "T", ("x",), size, stride, 8, 1024)
    for rank in range(24):
        group = shared.group(rank)
        assert rank in group and len(set(group)) == size
        assert {shared.group(other) for other in group} == {group}
        assert {b - a for a, b in pairwise(group)} == {stride}


def test_parameters_of_the_schedule_follow_from_the_cluster(build: Build) -> None:
    arguments = dict(build((4, 1, 1)).instance("tiles").variant.arguments)
    assert (arguments["CM"], arguments["CN"]) == (4, 1)


def test_it_can_be_turned_off(build: Build) -> None:
    program = build((2, 1, 1), transfers={"mma.ab": "ring"})
    (channel,) = program.channels
    assert program.connections[0].transfer == "ring"
    assert (channel.multicast, channel.empty_arrivals) == ((), 8)


def without_along(contract: Contract, *names: str) -> Contract:
    ports = tuple(
        replace(port, tile=replace(port.tile, along=None))
        if port.name in names and port.tile
        else port
        for port in contract.ports
    )
    return replace(contract, ports=ports)


def test_tile_without_along_is_copied_by_every_cta(
    build: Build, components: dict[str, Contract]
) -> None:
    silent = {LOAD: without_along(components[LOAD], "B")}
    assert groups(build((2, 1, 1), silent)) == {}
    assert groups(build((2, 2, 1), silent)) == {"A": (2, 2, 64)}


def test_a_tensor_that_is_copied_to_two_places_is_copied_whole(
    components: dict[str, Contract],
) -> None:
    """Both copies use one tensor map, whose box would be a slice for one of them."""
    load = bind(components[LOAD], {"TM": 128, "TN": 128, "TK": 64}).contract
    (role,) = load.roles
    (loop,) = role.body
    assert isinstance(loop, Repeat)
    body = tuple(
        replace(op, source="A") if isinstance(op, Operation) and op.source == "B" else op
        for op in loop.body
    )
    twice = replace(load, roles=(replace(role, body=(replace(loop, body=body),)),))
    tiles = components["//components/scheduler:cluster_tiles"]
    shared = MulticastAnalysis((1, 2, 1), {"load": twice, "tiles": tiles}, "tiles").of(
        ("load", "ab"), []
    )
    assert shared.members == ()
    assert "`A` is used by 2 operations" in shared.reasons[0]


def test_unavailable_multicast_request_reports_the_reasons(
    build: Build, components: dict[str, Contract]
) -> None:
    silent = {LOAD: without_along(components[LOAD], "B")}
    (finding,) = refused(build, (2, 1, 1), silent, transfers={"mma.ab": "multicast"})
    assert finding.code == "PL0071"
    assert "`A`: the CTAs need different boxes of `A`: `m` along x" in finding.found
    assert "`B`: `tile` of `B` has no `along` clause" in finding.found
    (finding,) = refused(build, (1, 1, 1), transfers={"mma.ab": "multicast"})
    assert finding.found == "the cluster has one CTA"


def shared_of(components: dict[str, Contract], cluster: tuple[int, int, int], rows: int) -> Any:
    """What `load.ab` shares in a cluster where a tile of B has so many rows."""
    load = bind(components[LOAD], {"TM": 64, "TN": rows, "TK": 64}).contract
    tiles = components["//components/scheduler:cluster_tiles"]
    return MulticastAnalysis(cluster, {"load": load, "tiles": tiles}, "tiles").of(
        ("load", "ab"), []
    )


@pytest.mark.parametrize(("rows", "fits"), [(8, False), (16, True), (24, False), (48, True)])
def test_slices_are_whole_groups_of_eight_rows(
    components: dict[str, Contract], rows: int, fits: bool
) -> None:
    shared = shared_of(components, (2, 1, 1), rows)
    assert [item.rows for item in shared.members] == ([rows // 2] if fits else [])
    assert fits or "cannot be divided into 2 slices" in shared.reasons[1]


@pytest.mark.parametrize(
    ("cluster", "scheduler", "served"),
    [
        ((2, 1, 1), "persistent_tiles", "1 x 1 x 1"),
        ((2, 1, 2), "cluster_tiles", "2 x 1 x 1"),
    ],
)
def test_tile_scheduler_supports_only_its_declared_clusters(
    build: Build, cluster: tuple[int, int, int], scheduler: str, served: str
) -> None:
    instances = declaration(cluster)["instances"]
    instances["tiles"] = (f"//components/scheduler:{scheduler}", {})
    (finding,) = check(build(cluster, instances=instances), TARGETS["sm_90a"])
    assert (finding.code, finding.found) == ("PL0806", f"clusters of {served}")


def test_tile_scheduler_for_clusters_does_not_support_single_ctas(build: Build) -> None:
    instances = declaration((1, 1, 1))["instances"]
    instances["tiles"] = ("//components/scheduler:cluster_tiles", {"CM": 2, "CN": 1})
    (finding,) = check(build((1, 1, 1), instances=instances), TARGETS["sm_90a"])
    assert finding.code == "PL0806"
