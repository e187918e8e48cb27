"""Properties of all diagnostics of `check` together, and of valid programs."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from programs import findings, found, program
from shipped_declarations import pairs, placement_of, program_of

from pipelink_rules.check.check import check, check_stages
from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.protocol.analyze import Found
from pipelink_rules.check.protocol.cases import Range, ranges, sequences, stage_choices
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.model import Action, Origin
from pipelink_rules.check.protocol.protocol_checks import to_diagnostics
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex, warp_sets
from pipelink_rules.check.protocol.protocol_problems import PhaseAliasing
from pipelink_rules.model.target import TARGETS

TARGET = TARGETS["sm_90a"]


@pytest.mark.parametrize(("name", "arch"), pairs())
def test_megakernels_of_the_repository_have_no_findings(name: str, arch: str) -> None:
    assert check(program_of(name, arch), TARGETS[arch]) == ()


@pytest.mark.parametrize(("name", "arch"), pairs())
def test_placements_of_the_repository_pass(name: str, arch: str) -> None:
    stages = dict(placement_of(name, arch).stages)
    assert check_stages(program_of(name, arch), TARGETS[arch], stages) == ()


def test_check_is_quick() -> None:
    made = program_of("gemm_bias_gelu")
    times = []
    for _ in range(5):
        start = time.process_time()
        check(made, TARGET)
        times.append(time.process_time() - start)
    assert min(times) < 0.15  # 0.03 on an idle machine


def test_one_finding_per_code_and_connection() -> None:
    made = findings("stream", norm=[["      - fence async\n", ""]])
    assert [item.code for item in made] == ["PL0502", "PL0502"]
    assert [item.subject for item in made] == ["fetch.block -> norm.x", "norm.y -> put.block"]


def test_all_diagnostics_are_reported_together() -> None:
    made = found(
        "gemm",
        load=[["K: {min: 1, multiple_of: 8}", "K: {min: 1}"]],
        mma=[["arrivals: TM // 16", "arrivals: 2"], ["converged: warpgroup", "converged: warp"]],
        store=[["align: 1024", "align: 16"]],
    )
    assert {code for code, _ in made} == {"PL0201", "PL0604", "PL0606", "PL0707"}
    assert made == sorted(made)


def test_findings_quote_both_components() -> None:
    for item in findings("gemm", mma=[["release ab lag 1", "release ab lag 0"]]):
        files = {label.span.file for label in item.labels}
        assert item.expected and item.found and item.suggestions and item.at_run_time
        assert len(files) >= 2 or item.subject.count(".") == 1


@pytest.mark.parametrize(
    ("clauses", "help_"),
    [
        # One release by 8 warps is 8 arrivals: the declared number is wrong, not the operation.
        ([["arrivals: TM // 16", "arrivals: 2"]], "set `arrivals: 8` on port `ab`"),
        (
            [["- release ab lag 1", "- release ab lag 1\n          - release ab lag 1"]],
            "`release` every item once, not 2 times",
        ),
    ],
)
def test_arrival_error_suggests_the_count_or_one_release(
    clauses: list[list[str]], help_: str
) -> None:
    made = findings("gemm", mma=clauses)
    assert {(item.code, item.suggestions) for item in made} == {("PL0201", (help_,))}


def test_unequal_rates_name_the_role_that_hangs() -> None:
    once = "      - wait x\n      - read x\n"
    twice = "      - repeat: 2\n        body:\n          - wait x\n          - read x\n"
    (item,) = findings("stream", norm=[[once, twice]])
    assert item.code == "PL1002" and "produces 1 item per work tile" in item.message
    assert item.at_run_time.startswith("`norm` hangs") and "wait for `x`" in item.suggestions[0]


def test_deadlock_names_the_smallest_stage_count() -> None:
    (item,) = findings("gemm", load=[["stages: {min: 2, max: 8}", "stages: {min: 1, max: 8}"]])
    assert item.code == "PL0401" and "{min: 2}" in item.suggestions[0]
    assert "32,768 more bytes" in item.suggestions[0] and len(item.chain) == 4


def test_stages_of_a_placement_are_analyzed_alone() -> None:
    made = program("gemm", load=[["stages: {min: 2, max: 8}", "stages: {min: 1, max: 8}"]])
    assert [item.code for item in check_stages(made, TARGET, {"load.ab": 1})] == ["PL0401"]
    assert not check_stages(made, TARGET, {"load.ab": 2})


@pytest.mark.parametrize("columns", [64, 128, 192, 256])
def test_staging_halves_are_used_in_turn_only_if_their_number_is_even(columns: int) -> None:
    made = found("gemm", SConscript=[['"TN": 128', f'"TN": {columns}']])
    assert made == ([] if columns % 128 == 0 else [("PL0505", "store.staging")])


def test_handover_makes_a_process_of_every_warpgroup() -> None:
    transfer = [
        '"store.acc": "mma.acc"},',
        '"store.acc": "mma.acc"},\n    transfers={"store.acc": "handover"},',
    ]
    made = program("gemm", SConscript=[transfer])
    assert check(made, TARGET) == ()
    assert [part.name for part in warp_sets(made)] == [
        "load",
        "mma warpgroup 0",
        "mma warpgroup 1",
        "store",
    ]
    composition, problems = compose(
        ProtocolIndex(made), {c.name: 1 for c in made.channels}, [{"k_blocks": 2}]
    )
    assert not problems and sum(name.endswith(".full") for name in composition.barriers) == 3


def test_two_processes_stand_for_warps_that_share_a_buffer() -> None:
    assert [part.warps for part in warp_sets(program("join")) if part.name == "join.add"] == [2, 2]


def test_stage_choices_begin_with_the_smallest_and_reach_all_ends() -> None:
    choices = stage_choices(program("stream"))
    assert choices == [
        {"fetch.block": 2, "norm.y": 2},
        {"fetch.block": 4, "norm.y": 4},
        {"fetch.block": 2, "norm.y": 4},
        {"fetch.block": 4, "norm.y": 2},
    ]


def test_trip_counts_stay_within_what_roles_take() -> None:
    assert ranges(program("gemm")) == {"k_blocks": Range(0, None)}
    trips = [work[0]["n"] for work in sequences({"n": Range(1, 3)}, {2, 8}) if len(work) == 1]
    assert trips == [1, 2, 3]
    assert [{"n": 1}, {"n": 0}, {"n": 3}] in list(sequences({"n": Range(0, None)}, {2}))
    assert list(sequences({}, {4})) == [[{}]]
    # Items of the last kind of a numbered field may do something else: alone, and after others.
    parts = {"k": Range(0, None), "part": Range(0, 31)}
    for short in (False, True):
        periods = list(sequences(parts, {2}, short))
        assert [{"k": 0, "part": 31}] in periods
        assert [{"k": 2, "part": 0}, {"k": 0, "part": 31}] in periods


def test_phase_aliasing_message() -> None:
    """No contract makes a role skip a phase; a transfer that did would be reported."""
    made = program("gemm")
    index = ProgramIndex(made, TARGET)
    composition, _ = compose(index.protocol, {"load.ab": 2}, [{"k_blocks": 1}])
    origin = Origin("mma", "mma", "wait ab", None, "ab")
    problem = PhaseAliasing("load.ab.full", Action("wait", "load.ab.full", origin=origin))
    (item,) = to_diagnostics(
        index, [Found(problem, composition, {"load.ab": 2}, [{"k_blocks": 1}])]
    )
    assert item.code == "PL0203" and item.subject == "load.ab -> mma.ab"
    assert item.message == (
        "phase aliasing: `wait ab` of `mma.mma` can be two phases away from its barrier"
    )


def test_cluster_of_consumers_is_counted_together() -> None:
    """Two consumers of one ring: each arrives for itself, the barrier counts both."""
    made = program(
        "stream",
        SConscript=[
            [
                '"put": ("//parts:put", ROWS),',
                '"put": ("//parts:put", ROWS),\n        "copy": ("//parts:put", ROWS),',
            ],
            [
                '"put.block": "norm.y"}',
                '"put.block": "norm.y", "copy.block": "norm.y"}',
            ],
            ['"y": "put.Y"}', '"y": "put.Y", "z": "copy.Y"}'],
        ],
    )
    assert check(made, TARGET) == ()
    channel = next(item for item in made.channels if item.name == "norm.y")
    wrong = replace(channel, empty_arrivals=1)
    channels = tuple(wrong if item is channel else item for item in made.channels)
    assert [item.code for item in check(replace(made, channels=channels), TARGET)] == ["PL0201"]
