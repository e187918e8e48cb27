"""trace, record and jitter: buffers, recordings, the comparison with the contracts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from manifests import saved
from noting_driver import NotingDriver
from recorded_gemm import SCRIPT, SITES, blank, played, row
from test_launch_call import arguments

from pipelink_rules.cli import main
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.launch import LaunchError, WatchdogError, load
from pipelink_rules.launch.compare_recording import (
    agrees,
    compare,
    expected_of,
    items_of,
    known_values,
    report,
)
from pipelink_rules.model.recording import OPERATIONS, Event, Recording

K, M, N = 128, 300, 512  # of arguments(): six tiles, two k-blocks


def events_of(role: int, items: int, **symbols: int) -> list[Event]:
    """What the script says, as the runtime would note it."""
    sites = {site.number: site for site in SITES}
    wanted = expected_of(SCRIPT.roles[role], items, known_values(SCRIPT, symbols), sites)
    return [Event(w.verb, w.site, w.stage or 0, w.value or 0, 0, 0) for w in wanted]


def expected_events(ctas: int = 6) -> dict[tuple[int, int], list[Event]]:
    """Every warp of a launch of `arguments()` doing what its contract says."""
    load_events, mma = (events_of(role, 1, K=K, M=M, N=N) for role in (0, 1))
    return {
        (cta, warp): load_events if warp == 0 else mma
        for cta in range(ctas)
        for warp in (0, *range(4, 12))
    }


def kernel_of(
    folder: Path, runtime: str, does: dict[tuple[int, int], list[Event]] | None = None
) -> tuple[Any, NotingDriver]:
    driver = NotingDriver(parameters=8, does=does or {})
    path = saved(folder, runtime=runtime, sites=SITES, script=SCRIPT)
    return load(path, driver=driver), driver


def test_the_numbers_of_operations_are_those_of_the_runtime() -> None:
    source = Path(__file__).parents[3] / "components/runtime/operation.cuh"
    for number, verb in enumerate(OPERATIONS):
        name = "".join(word.capitalize() for word in re.split("[ _]", verb))
        assert f"  k{name}" in source.read_text() and f" = {number}," in source.read_text()


def test_the_script_counts_stages_and_phases() -> None:
    events = events_of(0, 3, K=K)
    assert [(e.verb, e.stage, e.value) for e in events if e.verb == "acquire"] == [
        ("acquire", 0, 0),
        ("acquire", 1, 0),
        ("acquire", 2, 0),
        ("acquire", 3, 0),
        ("acquire", 0, 1),
        ("acquire", 1, 1),
    ]
    reads = [(e.verb, e.stage) for e in events_of(1, 1, K=192)]
    assert reads == [
        ("wait", 0),
        ("wait", 1),
        ("release", 0),
        ("wait", 2),
        ("release", 1),
        ("release", 2),
    ]
    assert events_of(1, 1, K=0) == []  # nothing waited for: nothing to release
    assert [items_of(SCRIPT, {"M": 300, "N": 512}, cta, 4) for cta in range(4)] == [2, 2, 1, 1]


def test_a_launch_as_the_contracts_say(tmp_path: Path) -> None:
    kernel, driver = kernel_of(tmp_path, "record", expected_events())
    file = tmp_path / "gemm.record.json"
    recording = kernel.record(**arguments(), file=file)
    assert (recording.grid, recording.problem, len(recording.rows)) == (6, "", 54)
    assert dict(recording.symbols) == {"K": K, "M": M, "N": N}
    results = compare(recording)
    assert agrees(results)
    assert "as in the contract" in report(recording, results)
    assert read_json(file, Recording) == recording
    assert main(["record", str(file)]) == 0
    assert not driver.allocated  # buffers belong to one launch
    kernel(**arguments())
    assert driver.received[b"pl_record_events"].raw == bytes(32)


def test_a_warp_that_leaves_its_contract(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    does = expected_events()
    for cta in range(6):
        does[cta, 5] = [e for e in does[cta, 5] if e.verb != "release" or e.stage != 0]
    kernel, _ = kernel_of(tmp_path, "record", does)
    file = tmp_path / "gemm.record.json"
    results = compare(kernel.record(**arguments(), file=file))
    assert not agrees(results)
    assert main(["record", str(file)]) == 1
    text = capsys.readouterr().out
    assert "6 warps differ from the contract" in text
    assert "mma, warp 5 of CTA 0 and 5 others: operation 2, work tile 0" in text
    assert "expected  `release ab`, stage 0, phase 0 [mma.mma: release ab lag 1]" in text
    assert "found     `release ab`, stage 1, phase 0" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: line[:-1], "found     nothing"),
        (lambda line: [*line, line[-1]], "expected  its end"),
        (lambda line: [line[0], line[1]._replace(value=4096), *line[2:]], ", 4096 bytes"),
        (lambda line: [line[0]._replace(stage=3), *line[1:]], "after     its start"),
        (lambda line: [line[0]._replace(verb="wait"), *line[1:]], "found     `wait ab`"),
    ],
)
def test_other_differences(tmp_path: Path, change: Any, said: str) -> None:
    does = expected_events()
    does[0, 0] = change(does[0, 0])
    kernel, _ = kernel_of(tmp_path, "record", does)
    recording = kernel.record(**arguments())
    assert said in report(recording, compare(recording))


def test_a_hang_gives_a_recording(tmp_path: Path) -> None:
    does = expected_events()
    for cta in range(6):
        does[cta, 0] = does[cta, 0][:5]
    kernel, driver = kernel_of(tmp_path, "record", does)
    driver.report_words = (0x504C5744, 1, 0, 1, 0, 0, 0, 0, 0, 9)
    recording = kernel.record(**arguments())
    assert "`gemm_bias` hangs: `load.load` never returns from `acquire ab`" in recording.problem
    results = compare(recording)
    text = report(recording, results)
    assert "The launch failed:" in text
    assert "and 5 others: stands in `acquire ab`, stage 1, phase 0, after 5 operations" in text
    assert "as in the contract until 6 warps stand still" in text
    assert [result.role for result in results if result.differences] == ["load"]


def test_unknown_counts_are_not_compared() -> None:
    symbols = (("M", 256), ("N", 512))  # no K: the k-blocks are not known
    recording = blank(symbols=symbols, rows=(row(0, 0, events_of(0, 1, K=128)),))
    results = compare(recording)
    assert results[0].skipped and not agrees(results)
    assert "not compared" in report(recording, results)


def test_no_room_is_no_difference(tmp_path: Path) -> None:
    kernel, _ = kernel_of(tmp_path, "record", expected_events())
    recording = kernel.record(**arguments(), capacity=3)
    assert recording.rows[0].operations == 8 and len(recording.rows[0].decoded()) == 3
    assert agrees(compare(recording))


def test_a_traced_launch(tmp_path: Path) -> None:
    does = {(r.cta, r.warp): list(r.decoded()) for r in played(copy=500, work=900).rows}
    kernel, driver = kernel_of(tmp_path, "trace", does)
    recording = kernel.trace(**arguments(), ctas=1, file=tmp_path / "t.json")
    assert len(driver.launched) == 2  # one to warm up
    assert {found.cta for found in recording.rows} == {0}
    assert recording.clock_khz == 1_980_000 and recording.rows[0].sm == 7
    assert main(["trace", str(tmp_path / "t.json")]) == 0
    assert not driver.allocated


def test_a_failing_traced_launch_raises(tmp_path: Path) -> None:
    kernel, driver = kernel_of(tmp_path, "trace", expected_events())
    driver.launch_result = 719
    with pytest.raises(LaunchError, match="PL1414"):
        kernel.trace(**arguments())


def test_jitter_is_seeded(tmp_path: Path) -> None:
    kernel, driver = kernel_of(tmp_path, "jitter")
    kernel(**arguments())
    first, ctas, cycles = driver.jitter()
    assert (len(first), ctas, cycles) == (132 * 12, 132, 2048)
    assert all(first) and len(set(first)) > 1500
    kernel.seed(1, cycles=256)
    second, _, cycles = driver.jitter()
    assert second != first and cycles == 256
    kernel.seed(0)
    assert driver.jitter()[0] == first
    with pytest.raises(LaunchError, match="PL1411"):
        kernel.seed(0, cycles=1000)


def test_seed_may_come_before_the_first_call(tmp_path: Path) -> None:
    kernel, driver = kernel_of(tmp_path, "jitter")
    kernel.seed(5)
    before = driver.jitter()
    kernel(**arguments())
    assert driver.jitter() == before


@pytest.mark.parametrize("runtime", ["watchdog", "record", "jitter"])
def test_a_hang_is_a_message(tmp_path: Path, runtime: str) -> None:
    """Whatever else the runtime does; the words of the driver would say nothing."""
    kernel, driver = kernel_of(tmp_path, runtime)
    driver.report_words = (0x504C5744, 1, 0, 1, 0, 0, 0, 0, 0, 9)
    kernel(**arguments())
    with pytest.raises(WatchdogError, match=r"load\.load` never returns from `acquire ab`"):
        kernel.synchronize()


@pytest.mark.parametrize("method", ["trace", "record", "seed"])
def test_the_runtime_has_to_be_the_right_one(tmp_path: Path, method: str) -> None:
    kernel, _ = kernel_of(tmp_path, "release")
    with pytest.raises(LaunchError, match="PL1419"):
        getattr(kernel, method)(1)


def test_write_and_read_keep_a_recording(tmp_path: Path) -> None:
    recording = played(copy=100, work=100)
    assert read_json(write_json(tmp_path / "r.json", recording), Recording) == recording
