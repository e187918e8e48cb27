"""What ran on a GPU: children that hang or die, verdicts, the tables of docs/validation.md."""

from __future__ import annotations

import os
import sys
import time
import types
from pathlib import Path
from typing import Any

import pytest
import shipped_declarations

from benchmarks.validation import (
    instrumented_launches,
    interval_accuracy,
    page,
    page_gpu,
    refused_cases,
    refused_on_gpu,
    result_files,
    run_suspect,
)
from benchmarks.validation.isolated_process import in_child

ROOT = Path(__file__).parents[3]

RIGHT = {
    "runtime": "jitter",
    "launches": 30,
    "wrong_launches": 0,
    "unequal_launches": 0,
    "most_wrong": 0,
    "elements": 1000,
    "outside": False,
}


def raises() -> dict[str, Any]:
    raise ValueError("no such thing")


def dies() -> dict[str, Any]:
    os._exit(7)


def sleeps() -> dict[str, Any]:
    time.sleep(60)
    return {}


def test_children() -> None:
    assert in_child(dict, [("a", 1)], seconds=20) == {"a": 1}
    assert in_child(raises, seconds=20) == {"problem": "ValueError: no such thing"}
    assert in_child(dies, seconds=20) == {"problem": "the process ended with 7"}
    start = time.monotonic()
    assert in_child(sleeps, seconds=0.2)["late"] and time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({}, "right", "30 launches right and equal (jitter)"),
        ({"hang": "x waits", "launches": 0}, "hang", "x waits in the first launch"),
        ({"hang": "x waits", "launches": 2}, "hang", "x waits after 2 launches"),
        ({"late": True, "problem": "no answer in 5 s"}, "hang", "did not come back"),
        ({"fault": "misaligned address"}, "fault", "misaligned address after 30 launches"),
        ({"problem": "ImportError"}, "not run", "ImportError"),
        ({"wrong_launches": 30, "most_wrong": 10}, "wrong numbers", "10 elements (1.00%)"),
        ({"wrong_launches": 3, "most_wrong": 1}, "race", "3 of 30 launches wrong"),
        ({"unequal_launches": 2}, "race", "2 of 30 differ from the first"),
        ({"racecheck": "2 findings: Potential RAW"}, "race", "equal; racecheck: 2 findings"),
        ({"racecheck": "ok"}, "right", "30 launches right and equal; racecheck: ok"),
        ({"outside": True}, "wrong numbers", "written outside of the result"),
    ],
)
def test_verdicts(changes: dict[str, Any], verdict: str, words: str) -> None:
    seen = {**RIGHT, **changes}
    assert run_suspect.verdict_of(seen) == verdict
    assert words in run_suspect.observation(seen)


def test_sections_are_written_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "h200.json"
    result_files.put(path, "other", {"rows": [1]})
    section = result_files.Section(path, "forced")
    section.head(date="today")
    section.row({"name": "a"})
    assert result_files.read(path) == {
        "other": {"rows": [1]},
        "forced": {"date": "today", "rows": [{"name": "a"}]},
    }


def test_refused_links_run_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`jitter` only where the watchdog saw nothing; what cannot be run is no success."""
    for name in ("torch", "correctness"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    rows = [{"name": n, "megakernel": "gemm", "sizes": {}, "codes": []} for n in ("one", "two")]
    monkeypatch.setattr(refused_on_gpu, "PLAN", tmp_path / "plan.json")
    result_files.put(
        tmp_path / "plan.json", "forced", [*rows, {"name": "three", "problem": "refused"}]
    )
    launched: list[tuple[str, str]] = []

    def child(in_child: Any, path: Path, row: dict[str, Any], launches: int) -> dict[str, Any]:
        launched.append((row["name"], path.parent.name))
        hang = {"hang": "x waits"} if row["name"] == "one" else {}
        return {**RIGHT, "runtime": path.parent.name, "launches": launches, **hang}

    monkeypatch.setattr(refused_on_gpu, "try_child", child)
    monkeypatch.setattr(refused_on_gpu, "open_section", result_files.Section)
    monkeypatch.setattr(refused_on_gpu, "racechecked", lambda folder, name: f"{folder.name} {name}")
    out = tmp_path / "out.json"
    assert refused_on_gpu.run_all([], out, 100) == 0
    assert launched == [("one", "watchdog"), ("two", "watchdog"), ("two", "jitter")]
    assert [r["verdict"] for r in result_files.read(out)["forced"]["rows"]] == ["hang", "right"]
    assert "racecheck: watchdog gemm" in result_files.read(out)["forced"]["rows"][1]["observed"]
    assert refused_on_gpu.run_all(["two"], out, 0) == 1
    assert "left out" in result_files.read(out)["forced"]["rows"][0]["observed"]


def test_a_step_is_what_more_steps_take() -> None:
    """10 us for start and end; 64 steps of 1024 cycles at 2 GHz, and 192."""
    times = [10 + steps * 1024 / 2000 for steps in (64, 192)]
    assert interval_accuracy.step_of(*times, clock_mhz=2000, steps=64) == pytest.approx(1024)


@pytest.mark.parametrize(("name", "arch"), shipped_declarations.pairs())
def test_every_megakernel_has_an_estimate(name: str, arch: str) -> None:
    row = interval_accuracy.estimate(
        shipped_declarations.program_of(name, arch), shipped_declarations.placement_of(name, arch)
    )
    assert row["cycles"] > 0 and row["steps"] >= 16 and row["bound"]
    assert set(row["sizes"]) in ({"M", "N", "K"}, {"R"})


def test_the_launches_of_a_megakernel_in_a_word() -> None:
    good = {"launches": 1000, "differing": 0, "wrong": 0}
    row = {"release": good, "jitter": good, "recorded": "as in the contracts"}
    row["sanitizer"] = {"memcheck": "ok", "racecheck": "exception: known"}
    assert instrumented_launches.verdict_of(row) == "ok"
    assert "1 of 1000" in instrumented_launches.verdict_of(
        {**row, "jitter": {**good, "differing": 1}}
    )
    assert "elements" in instrumented_launches.verdict_of({**row, "release": {**good, "wrong": 4}})
    assert "memcheck" in instrumented_launches.verdict_of(
        {**row, "sanitizer": {"memcheck": "3 findings"}}
    )
    assert instrumented_launches.verdict_of({**row, "recorded": "differs"}) == "differs"
    assert instrumented_launches.verdict_of({"problem": "hangs"}) == "hangs"


HEAD = {"date": "today", "card": "H200", "driver": "1", "toolkit": "13.5", "command": "python x"}


def test_what_did_not_run_is_said() -> None:
    text = "\n".join(page_gpu.gpu_lines({}, {}, []))
    assert text.count("Not run yet: `python -m benchmarks.") == 4
    assert "13.5" not in text


def test_tables() -> None:
    row = {"name": "a", "megakernel": "gemm", "what": "It | hangs.", "codes": ["PL0401", "PL0204"]}
    rows = [
        {**row, "verdict": "hang", "observed": "x waits"},
        {**row, "verdict": "right", "observed": "30 launches right", "name": "b"},
        {**row, "verdict": "right", "observed": "30 launches right"},
    ]
    trial = {"megakernel": "gemm", "text": "gemm: t", "reason": "resources", "observed": "good"}
    results = {
        "forced": {**HEAD, "rows": rows},
        "trials": {
            **HEAD,
            "seed": 3,
            "rows": [
                {**trial, "verdict": "right", "same": True, "seen": {"launches": 3}},
                {**trial, "verdict": "race", "seen": {"launches": 3, "other_bits": 7}},
            ],
        },
        "launches": {
            **HEAD,
            "rows": [{"megakernel": "gemm", "release": {"launches": 1000, "differing": 0}}],
        },
        "steady": {**HEAD, "rows": [{"megakernel": "gemm", "cycles": 1024.0, "measured": 1100.0}]},
    }
    text = "\n".join(
        page_gpu.gpu_lines(results, {"b": {"harmless": "Said the manual."}}, ["gemm", "lost"])
    )
    assert "1 hang; 2 computed correct results" in text and "It \\| hangs." in text
    assert "[PL0401](errors/PL0401.md), PL0204" in text
    assert "Said the manual." in text and text.count("No reason is written down") == 1
    assert "the results of 1 agree with float64 in every launch, those of 1 do not. 1 have" in text
    assert "race: good" in text and "7 elements differ" in text
    assert "| `gemm` | 1,000, none differ | not run | not compared |" in text
    assert "| `lost` | not run | not run |" in text and text.count("| `gemm` | 1,000") == 1
    assert "| 1,024 | 1,100 | 1.07 |" in text
    assert text.count("today, H200, driver 1, toolkit 13.5; `python x`.") == 4


def test_the_page_shows_the_results_there_are() -> None:
    """Every megakernel of the repository, every mistake that ran, and why some go right."""
    results = result_files.read(result_files.RESULTS)
    lines = page.page().splitlines()
    cases = {case.name: vars(case) for case in refused_cases.cases()}
    hopper = sorted(name for name, arch in shipped_declarations.pairs() if arch == "sm_90a")
    assert page.megakernels() == hopper
    for line in page_gpu.gpu_lines(results, cases, hopper):
        assert line in lines
    if "launches" in results:
        table = lines[lines.index("## Repeated launches") :]
        assert all(any(line.startswith(f"| `{name}` |") for line in table) for name in hopper)
    for row in results.get("forced", {}).get("rows", []):
        assert row["verdict"] != "right" or cases[row["name"]]["harmless"], f"{row['name']}: why?"
    for row in results.get("trials", {}).get("rows", []):
        assert page_gpu.verdict_of_trial(row) in ("right", "refused"), row["text"]
