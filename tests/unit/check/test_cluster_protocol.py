"""The protocol of clusters: every CTA has separate roles, barriers and memories."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from shipped_declarations import contracts, megakernels
from unit.check.interleavings import OK, RACE, explore

from pipelink_rules.check.check import check
from pipelink_rules.check.protocol.analyze import analyze_case
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.model import Action, Composition, Kind, unroll
from pipelink_rules.check.protocol.process_builder import ProcessBuilder
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.check.protocol.protocol_problems import (
    NoOrder,
    PhaseAliasing,
    Problem,
    WrongBytes,
)
from pipelink_rules.model.program import Program
from pipelink_rules.model.source_span import Expr
from pipelink_rules.model.target import TARGETS
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.resolve import resolve
from pipelink_rules.program.spec import parse_declaration


@cache
def program(shape: tuple[int, int, int]) -> Program:
    instances = dict(megakernels()["gemm"]["instances"])
    instances["tiles"] = ("//components/scheduler:cluster_tiles", {})
    spec = parse_declaration(**{**megakernels()["gemm"], "instances": instances, "cluster": shape})
    return resolve(spec, bind_instances(spec, contracts(), {}), "sm_90a")


def composition(shape: tuple[int, int, int], self_last: bool = False) -> Composition:
    protocol = ProtocolIndex(program(shape))
    found, problems = compose(protocol, {"load.ab": 2}, [{"k_blocks": 3}], self_last=self_last)
    assert not problems
    return found


def changed(given: Composition, change: Callable[[str, Action], Action | None]) -> Composition:
    """Every action exchanged for what `change(process, action)` gives; None leaves it out."""
    processes = tuple(
        process._replace(
            period=tuple(
                new for item in process.period if (new := change(process.name, item)) is not None
            )
        )
        for process in given.processes
    )
    return replace(given, processes=processes)


@pytest.mark.parametrize("self_last", [False, True])
@pytest.mark.parametrize("shape", [(2, 1, 1), (1, 2, 1), (2, 2, 1), (4, 2, 1)])
def test_all_ctas_do_the_same(shape: tuple[int, int, int], self_last: bool) -> None:
    """What the first one does, with other names, is what a run of every other one gives."""
    protocol, work = ProtocolIndex(program(shape)), [{"k_blocks": 2}, {"k_blocks": 1}]
    found, _ = compose(protocol, {"load.ab": 3}, work, self_last=self_last)
    run = [
        ProcessBuilder(protocol, warp_set, {"load.ab": 3}, cta, self_last).process(work)
        for cta in range(protocol.ctas)
        for warp_set in protocol.warp_sets
    ]
    assert found.processes == tuple(run)
    used = {action.target for process in run for action in process.period if "." in action.target}
    assert used == {*found.barriers, *found.memories, *found.named}


@pytest.mark.parametrize("shape", [(2, 1, 1), (1, 2, 1), (2, 2, 1)])
def test_a_right_cluster_has_no_finding(shape: tuple[int, int, int]) -> None:
    assert check(program(shape), TARGETS["sm_90a"]) == ()


GEMMS = [
    name
    for name, declaration in megakernels().items()
    if declaration["instances"].get("tiles", ("",))[0].endswith(":persistent_tiles")
    and "sm_90a" in declaration["archs"]
]


@pytest.mark.parametrize("shape", [(2, 1, 1), (2, 2, 1)])
@pytest.mark.parametrize("name", GEMMS)
def test_every_gemm_becomes_one_of_clusters_by_its_declaration(
    name: str, shape: tuple[int, int, int]
) -> None:
    declaration = megakernels()[name]
    tiles = ("//components/scheduler:cluster_tiles", {})
    instances = {**declaration["instances"], "tiles": tiles}
    spec = parse_declaration(**{**declaration, "instances": instances, "cluster": shape})
    made = resolve(spec, bind_instances(spec, contracts(), {}), "sm_90a")
    assert check(made, TARGETS["sm_90a"]) == ()
    assert all(c.multicast for c in made.channels if c.kind == "ring")


def test_roles_barriers_and_memories_are_replicated_per_cta() -> None:
    found = composition((2, 2, 1))
    alone = composition((1, 1, 1))
    assert len(found.processes) == 4 * len(alone.processes)
    assert len(found.barriers) == 4 * len(alone.barriers)
    assert len(found.memories) == 4 * len(alone.memories)
    copies = [a for a in found.processes[0].period if a.kind == Kind.COPY and a.item == 0]
    # A to itself and the CTA above, half of its 128 rows; B to itself and beside, half of 256
    assert [(a.target, a.bytes) for a in copies] == [
        ("load.ab", 8192),
        ("load.ab@2", 8192),
        ("load.ab", 16384),
        ("load.ab@1", 16384),
    ]


def test_cluster_without_multicast_is_analyzed_as_one_cta() -> None:
    whole = program((2, 1, 1))
    channel = replace(whole.channels[0], multicast=(), empty_arrivals=8)
    found, _ = compose(
        ProtocolIndex(replace(whole, channels=(channel,))), {"load.ab": 2}, [{"k_blocks": 1}]
    )
    assert found == compose(ProtocolIndex(program((1, 1, 1))), {"load.ab": 2}, [{"k_blocks": 1}])[0]


def _released_at_home(right: Composition) -> Composition:
    """Every CTA releases only to itself, and the empty barriers expect no more."""

    def local(process: str, action: Action) -> Action | None:
        remote = ("@" in process) != ("@" in action.target)
        empty = action.kind == Kind.ARRIVE and ".empty" in action.target
        return None if empty and remote else action

    wrong = changed(right, local)
    barriers = {
        name: barrier._replace(arrivals=8) if name.endswith("empty") else barrier
        for name, barrier in wrong.barriers.items()
    }
    return replace(wrong, barriers=barriers)


def test_without_remote_arrivals_a_copy_overtakes_the_reader_in_the_other_cta() -> None:
    """Counted as if it were right: the empty barriers then expect only local consumers."""
    found = analyze_case(_released_at_home(composition((2, 1, 1))))
    assert {type(item) for item in found} == {NoOrder}


@pytest.mark.parametrize(
    ("self_last", "kinds"), [(False, {WrongBytes}), (True, {WrongBytes, PhaseAliasing})]
)
def test_copy_to_one_cta_starves_the_other_cta(self_last: bool, kinds: set[type[Problem]]) -> None:
    """And nothing separates the releases of both by a phase, unless the local one is first."""

    def alone(process: str, action: Action) -> Action | None:
        other = action.kind == Kind.COPY and ("@" in action.target) != ("@" in process)
        return None if other else action

    found = analyze_case(changed(composition((2, 1, 1), self_last=self_last), alone))
    assert {type(item) for item in found} == kinds


def test_arrival_error_reports_per_cta_counts() -> None:
    """The component performs 8 arrivals, in a cluster too: the linker adds those of other CTAs."""
    label = "//components/gemm:wgmma_mainloop"
    contract = contracts()[label]
    ports = tuple(
        replace(port, arrivals=Expr("4")) if port.name == "ab" else port for port in contract.ports
    )
    spec = program((2, 1, 1)).spec
    mismatched = {**contracts(), label: replace(contract, ports=ports)}
    found = check(resolve(spec, bind_instances(spec, mismatched, {}), "sm_90a"), TARGETS["sm_90a"])
    assert [(item.code, item.message) for item in found] == [
        (
            "PL0201",
            "`mma.ab` declares 4 arrivals on the empty barrier per item, but its role performs 8",
        )
    ]


@pytest.mark.parametrize(("trips", "periods"), [(1, 2), (3, 1)])
@pytest.mark.parametrize("shape", [(2, 1, 1), (1, 2, 1)])
def test_whole_clusters_run_well_in_every_interleaving(
    shape: tuple[int, int, int], trips: int, periods: int
) -> None:
    """Both CTAs of the shipped kernel with all their roles, by a separate model checker."""
    made, _ = compose(ProtocolIndex(program(shape)), {"load.ab": 2}, [{"k_blocks": trips}])
    assert explore(unroll(made, periods)) == OK


def test_the_executor_sees_a_copy_that_overtakes_the_other_cta() -> None:
    made, _ = compose(ProtocolIndex(program((2, 1, 1))), {"load.ab": 2}, [{"k_blocks": 3}])
    assert explore(unroll(_released_at_home(made), 1)) == RACE
