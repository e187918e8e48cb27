"""A recording of a kernel whose work tiles differ: split-K, parts first, then sums."""

from __future__ import annotations

from dataclasses import replace

import pytest
from recorded_gemm import blank, row

from pipelink_rules.launch.compare_recording import agrees, compare
from pipelink_rules.model.linked_kernel import RoleScript, Script, ScriptLoop, ScriptOp, Site
from pipelink_rules.model.recording import Event, Recording

STAGES = 2
SITES = (
    Site(1, "mma", "mma", "ab", "load.ab", STAGES, 1, 8),
    Site(2, "store", "store", "done", "store.done"),
    Site(3, "store", "store", "ready", "store.done"),
)
ROLE = RoleScript(
    "mma+store",
    0,
    1,
    body=(
        ScriptLoop(
            "k_blocks",
            (ScriptOp("wait", 1, text="wait ab"), ScriptOp("release", 1, lag=1, text="lag 1")),
        ),
        ScriptOp("release", 1, text="lag 0"),
        ScriptLoop("1 - part // 2", (ScriptOp("signal", 2, text="signal done[tile]"),)),
        ScriptLoop("part // 2", (ScriptOp("wait_until", 3, text="wait_until ready[tile] 2"),)),
    ),
)
SCRIPT = Script("4", (), (ROLE,), varying=("k_blocks", "part"))


def recorded(events: list[tuple[str, int, int, int]]) -> Recording:
    """One warp that takes all four items."""
    seen = [Event(verb, site, stage, value, 0, 0) for verb, site, stage, value in events]
    return blank(script=SCRIPT, sites=SITES, grid=1, rows=(row(0, 0, seen),))


# Items of 3, 1, 0 and 0 k-blocks: stages and phases run on; two signals, two waits.
RIGHT = [
    ("wait", 1, 0, 0),
    ("wait", 1, 1, 0),
    ("release", 1, 0, 0),
    ("wait", 1, 0, 1),
    ("release", 1, 1, 0),
    ("release", 1, 0, 1),
    ("signal", 2, 5, 5),
    ("wait", 1, 1, 1),
    ("release", 1, 1, 1),
    ("signal", 2, 5, 5),
    ("wait_until", 3, 5, 16),
    ("wait_until", 3, 5, 16),
]


def test_counts_of_the_run_are_taken() -> None:
    assert agrees(compare(recorded(RIGHT)))


@pytest.mark.parametrize(
    "wrong",
    [
        [*RIGHT[:2], *RIGHT[3:]],  # a release is missing
        [*RIGHT[:3], ("wait", 1, 0, 0), *RIGHT[4:]],  # the wrong phase
        [*RIGHT[:5], *RIGHT[6:]],  # the last release of an item
        [*RIGHT[:-1], ("commit", 1, 0, 0)],
        [*RIGHT, ("release", 1, 0, 0)],
    ],
)
def test_all_else_is_compared(wrong: list[tuple[str, int, int, int]]) -> None:
    assert not agrees(compare(recorded(wrong)))


def test_a_size_that_is_missing_is_not_a_field() -> None:
    recording = recorded(RIGHT)
    unknown = replace(SCRIPT, varying=("part",))
    (result,) = compare(replace(recording, script=unknown))
    assert "k_blocks" in result.skipped
