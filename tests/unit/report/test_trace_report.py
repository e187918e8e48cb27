"""A traced launch: the trace events for Perfetto, who waits for whom, what bounds."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from recorded_gemm import blank, played, row

from pipelink_rules.cli import main
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.model.linked_kernel import RoleScript, Script, ScriptOp, Site
from pipelink_rules.model.recording import Event, Recording
from pipelink_rules.report.chrome_trace import chrome_trace, times_of
from pipelink_rules.report.stalls import bottleneck, role_times, stall_report


def test_a_trace_is_read_back(tmp_path: Path) -> None:
    recording = played(copy=500, work=1000)
    assert read_json(write_json(tmp_path / "x.json", recording), Recording) == recording


def test_times_start_at_the_first_operation_and_survive_a_clock_that_runs_over() -> None:
    recording = played(copy=500, work=1000)  # starts 4096 cycles before the clock does
    for cta in times_of(recording):
        assert min(line[0].begin for _, line in cta.warps) == 0
        assert 16 * 1000 < cta.cycles < 20 * 1000
        for _, line in cta.warps:
            assert all(a.end <= b.begin for a, b in pairwise(line))


def test_trace_events_are_what_perfetto_reads() -> None:
    document = json.loads(json.dumps(chrome_trace(played(copy=500, work=1000))))
    events = document["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    for event in events:
        assert event["pid"] in (0, 1)
        if event["ph"] == "X":
            assert event["ts"] >= 0 and event["dur"] >= 0
    named = {e["args"]["name"] for e in events if e["name"] == "thread_name" and e["pid"] == 0}
    assert {"warp 0 load", "warp 4 mma", "load.ab, stage 0", "load.ab, stage 3"} <= named
    count = Counter(e["name"] for e in events if e["ph"] == "X" and e["pid"] == 0)
    assert count["acquire ab"] == 16 and count["wait ab"] == 8 * 16
    assert count["filling"] == count["in use"] == 16
    sixth = [e for e in events if e["name"] == "filling" and e["args"]["item"] == 5]
    assert [event["tid"] for event in sixth] == [101, 101]  # stage 1 of either CTA


def test_slices_of_a_stage_do_not_overlap() -> None:
    events = chrome_trace(played(copy=900, work=300))["traceEvents"]
    stages: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events:
        if event.get("cat") == "ring":
            place = (event["pid"], event["tid"])
            stages.setdefault(place, []).append((event["ts"], event["ts"] + event["dur"]))
    assert len(stages) == 8
    for spans in stages.values():
        spans.sort()
        assert all(a[1] <= b[0] + 1e-6 for a, b in pairwise(spans))


def test_a_slow_multiplication_bounds() -> None:
    recording = played(copy=500, work=1000)
    roles = role_times(recording)
    assert [role.name for role in roles] == ["mma", "load"]
    assert roles[0].share(roles[0].busy) > 0.9
    text = bottleneck(recording, roles)
    assert text.startswith("mma bounds: it is busy 9") and "load waits for it" in text
    said = stall_report(recording)
    assert "gemm for sm_90a, K = 512, M = 256, N = 512: 2 of 2 CTAs on NVIDIA H200" in said
    (line,) = (line for line in said.splitlines() if line.startswith("load "))
    assert line.split()[3:6] == ["mma", "acquire", "ab"]
    assert "after wait ab: 256 times, 1,000 cycles each" in said


def test_slow_copies_bound() -> None:
    recording = played(copy=4000, work=300)
    text = bottleneck(recording, role_times(recording))
    assert text.startswith("The copies into `load.ab` bound: mma waits for data ")
    assert "all 4 stages are on their way" in text
    assert "A copy into `load.ab` takes 4,0" in stall_report(recording)


def test_a_row_without_room_for_the_end_says_so() -> None:
    events = [Event("wait", 2, 0, 0, 10, 20), Event("release", 2, 0, 0, 30, 40)]
    recording = blank(rows=(row(0, 4, events, operations=9),))
    assert "room for 2 operations of a warp only" in stall_report(recording)
    assert stall_report(blank()) == "gemm: nothing was noted\n"


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_json(tmp_path / "gemm.trace.json", played(copy=500, work=1000))
    out = tmp_path / "gemm.perfetto.json"
    assert main(["trace", str(file), "-o", str(out)]) == 0
    assert "mma bounds" in capsys.readouterr().out
    assert json.loads(out.read_text())["otherData"]["megakernel"] == "gemm"
    assert main(["trace", str(tmp_path / "missing.json")]) != 0
    assert "PL0010" in capsys.readouterr().err


def test_a_wait_for_other_ctas_is_a_wait() -> None:
    sites = (
        Site(1, "store", "store", "done", "store.done"),
        Site(2, "sum", "sum", "ready", "store.done"),
    )
    script = Script(
        "1",
        (),
        (
            RoleScript("store", 0, 1, body=(ScriptOp("signal", 1),)),
            RoleScript("sum", 1, 1, body=(ScriptOp("wait_until", 2),)),
        ),
    )
    signals = [Event("signal", 1, 0, 0, 900, 1000)]
    waits = [Event("wait_until", 2, 0, 8, 0, 1000)]
    recording = blank(sites=sites, script=script, rows=(row(0, 0, signals), row(0, 1, waits)))
    names = {e["name"]: e.get("cat") for e in chrome_trace(recording)["traceEvents"]}
    assert names["wait_until ready"] == "waiting" and names["signal done"] == "working"
    text = stall_report(recording)
    line = next(line for line in text.split("\n") if line.startswith("sum"))
    assert "store" in line and "wait_until ready" in line and "100%" in line
