"""A GEMM of one loader and eight multiplying warps, simulated with given times."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable
from dataclasses import replace

from pipelink_rules.model.linked_kernel import RoleScript, Script, ScriptLoop, ScriptOp, Site
from pipelink_rules.model.recording import OPERATIONS, Event, Recording, WarpRow

STAGES = 4
SITES = (
    Site(1, "load", "load", "ab", "load.ab", STAGES, 1, 8),
    Site(2, "mma", "mma", "ab", "load.ab", STAGES, 1, 8),
)
SCRIPT = Script(
    "ceildiv(M, 128) * ceildiv(N, 256)",
    (("k_blocks", "ceildiv(K, 64)"),),
    (
        RoleScript(
            "load",
            0,
            1,
            body=(
                ScriptLoop(
                    "k_blocks",
                    (
                        ScriptOp("acquire", 1, text="load.load: acquire ab"),
                        ScriptOp("expect", 1, "49152", text="load.load: expect ab"),
                        ScriptOp("copy", 1, "0", text="load.load: copy A -> ab.A"),
                        ScriptOp("copy", 1, "16384", text="load.load: copy B -> ab.B"),
                    ),
                ),
            ),
        ),
        RoleScript(
            "mma",
            4,
            8,
            body=(
                ScriptLoop(
                    "k_blocks",
                    (
                        ScriptOp("wait", 2, text="mma.mma: wait ab"),
                        ScriptOp("release", 2, lag=1, text="mma.mma: release ab lag 1"),
                    ),
                ),
                ScriptOp("release", 2, text="mma.mma: release ab lag 0"),
            ),
        ),
    ),
)


def blank(**changes: object) -> Recording:
    """Return a launch of four work tiles of eight k-blocks on two CTAs, without events."""
    base = Recording(
        megakernel="gemm",
        target="sm_90a",
        runtime="trace",
        device="NVIDIA H200",
        grid=2,
        threads=384,
        clock_khz=1_000_000,
        symbols=(("K", 512), ("M", 256), ("N", 512)),
        sites=SITES,
        script=SCRIPT,
        rows=(),
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def encode_events(events: Iterable[Event]) -> bytes:
    """The bytes of a row: what the runtime writes for these events."""
    return b"".join(
        struct.pack(
            "<4I",
            OPERATIONS.index(event.verb) + 1 | event.stage << 8 | event.site << 16,
            event.value,
            event.begin,
            event.end,
        )
        for event in events
    )


def row(cta: int, warp: int, events: list[Event], operations: int = 0) -> WarpRow:
    """Return the events of one warp; the clock of every SM has another start."""
    text = base64.b64encode(encode_events(events)).decode()
    start = events[0].begin if events else 0
    return WarpRow(cta, warp, 10 + cta, start, 500 * cta, operations or len(events), text)


def played(*, copy: int, work: int, items: int = 16, start: int = 0xFFFFF000) -> Recording:
    """Simulate: every copy takes `copy` cycles, every multiplication of a block `work`."""
    rows = []
    for cta in range(2):
        loads, waits, releases = _play(copy, work, items)
        at = start + 1000 * cta

        def moved(events: list[Event], at: int = at) -> list[Event]:
            return [
                e._replace(begin=(e.begin + at) % 2**32, end=(e.end + at) % 2**32) for e in events
            ]

        rows.append(row(cta, 0, moved(loads)))
        mine = sorted([*waits, *releases], key=lambda event: event.end)
        rows += [row(cta, warp, moved(mine)) for warp in range(4, 12)]
    return blank(rows=tuple(rows))


def _play(copy: int, work: int, items: int) -> tuple[list[Event], list[Event], list[Event]]:
    loads: list[Event] = []
    waits: list[Event] = []
    releases: list[Event] = []
    loader = reader = 0
    for item in range(items):
        stage, phase = item % STAGES, item // STAGES & 1
        free = releases[item - STAGES].end if item >= STAGES else 0
        taken = max(loader + 20, free)
        loads.append(Event("acquire", 1, stage, phase, loader, taken))
        loads.append(Event("expect", 1, stage, 49152, taken + 10, taken + 20))
        loads.append(Event("copy", 1, stage, 0, taken + 30, taken + 40))
        loads.append(Event("copy", 1, stage, 16384, taken + 50, taken + 60))
        loader = taken + 70
        full = max(reader + 20, taken + 60 + copy)
        waits.append(Event("wait", 2, stage, phase, reader, full))
        reader = full + work
        releases.append(Event("release", 2, stage, phase, reader, reader + 10))
        reader += 20
    return loads, waits, releases


def example_trace() -> Recording:
    """Return docs/examples/gemm.trace.json: fast copies, slow multiplication."""
    return replace(played(copy=500, work=1000, start=1000), device="a pipeline played in tests")
