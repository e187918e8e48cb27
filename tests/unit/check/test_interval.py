"""The steady state: the largest ratio of a graph, and what it says of the shipped megakernels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import program
from shipped_declarations import placement_of, program_of

from pipelink_rules.check.protocol.initiation_interval import (
    LATENCIES,
    Edge,
    Interval,
    interval,
    largest_ratio,
)
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex

NODES = 4
edges = st.tuples(
    st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(0, 2), st.integers(0, 9)
)


def simple_cycles(graph: list[Edge]) -> Iterator[tuple[int, int]]:
    """(cycles, distance) of every way around through different nodes, tried one by one."""
    for length in range(1, NODES + 1):
        for nodes in itertools.permutations(range(NODES), length):
            if nodes[0] != min(nodes):
                continue
            pairs = list(zip(nodes, (*nodes[1:], nodes[0]), strict=True))
            options = [[e for e in graph if e[:2] == pair] for pair in pairs]
            for way in itertools.product(*options):
                yield sum(edge[3] for edge in way), sum(edge[2] for edge in way)


@given(st.lists(edges, max_size=8))
def test_the_largest_ratio_is_that_of_all_cycles(graph: list[Edge]) -> None:
    cycles = [pair for pair in simple_cycles(graph) if pair[0]]
    found = largest_ratio(NODES, graph)
    if not cycles or any(distance == 0 for _, distance in cycles):
        assert found is None
        return
    assert found is not None
    ratio, critical = found
    assert ratio == pytest.approx(max(time / distance for time, distance in cycles))
    assert sum(e[3] for e in critical) == pytest.approx(ratio * sum(e[2] for e in critical))
    assert all(
        e[1] == after[0] for e, after in zip(critical, [*critical[1:], critical[0]], strict=True)
    )


def found_with(name: str, **stages: int) -> Interval:
    chosen = dict(placement_of(name).stages)
    found = interval(ProtocolIndex(program_of(name)), {**chosen, **{"load.ab": stages["ab"]}})
    assert found is not None
    return found


def test_two_stages_are_loader_bound_and_four_are_not() -> None:
    two, four = found_with("gemm", ab=2), found_with("gemm", ab=4)
    assert two.bottleneck == "the latency of copies into load.ab" and two.rings == ("load.ab",)
    assert four.bottleneck == "the tensor cores (mma.mma)" and four.rings == ()
    assert four.cycles == 128 * 256 * 64 / 2048 < two.cycles
    assert four.period == "loop trip"


@pytest.mark.parametrize("name", ["gemm_bias_gelu_128", "gemm_relu_one_warpgroup"])
def test_more_stages_never_take_longer(name: str) -> None:
    found = [found_with(name, ab=stages).cycles for stages in range(2, 8)]
    assert found == sorted(found, reverse=True) and found[0] > found[-1]


def test_a_small_tile_is_bound_by_its_copies() -> None:
    found = found_with("gemm_relu_one_warpgroup", ab=8)
    assert found.bottleneck == "the bandwidth of copies (load.load)"


def test_without_a_loop_it_is_per_work_tile() -> None:
    found = interval(ProtocolIndex(program_of("rms_norm")), dict(placement_of("rms_norm").stages))
    assert found is not None and found.period == "work tile"


def tensor_with(ab: int, accumulators: int) -> Interval:
    found = interval(ProtocolIndex(program("tensor")), {"load.ab": ab, "mma.acc": accumulators})
    assert found is not None
    return found


def test_a_tensor_memory_pipeline_is_bound_by_its_copies_and_then_by_their_bandwidth() -> None:
    two, six = tensor_with(2, 2), tensor_with(6, 2)
    assert two.bottleneck == "the latency of copies into load.ab" and two.rings == ("load.ab",)
    assert six.bottleneck == "the bandwidth of copies (load.load)"
    assert six.cycles == 2 * 128 * 64 * 2 / 64 < two.cycles


@pytest.mark.parametrize("accumulators", [1, 2])
def test_more_stages_never_take_longer_in_tensor_memory(accumulators: int) -> None:
    found = [tensor_with(ab, accumulators).cycles for ab in range(2, 7)]
    assert found == sorted(found, reverse=True)
    assert tensor_with(3, 2).cycles <= tensor_with(3, accumulators).cycles


def test_tcgen05_mma_keeps_the_tensor_cores_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = replace(LATENCIES["sm_100a"], bytes=4096)
    monkeypatch.setitem(LATENCIES, "sm_100a", fast)
    found = tensor_with(6, 2)
    assert found.bottleneck == "the tensor cores (mma.mma)"
    assert found.cycles == 128 * 128 * 64 / fast.products
