"""A traced launch as a timeline: Recording -> Chrome trace events, for Perfetto.

A process is a CTA.  Its threads are the warps, by role, and one for every stage of every ring: from
its acquisition to the arrival of its data, and from there to its release.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipelink_rules.model.linked_kernel import Site
from pipelink_rules.model.recording import Event, Recording, WarpRow

WAITS = ("acquire", "wait", "sync", "store wait", "wait_until")
_RINGS = 100  # thread ids of stages start here: after the warps
_WRAP = 1 << 32


@dataclass(frozen=True)
class Timed:
    """An event on the clock of its CTA: cycles since the CTA's first operation."""

    event: Event
    begin: int
    end: int


@dataclass(frozen=True)
class CtaTimes:
    """The warps of one CTA on one clock."""

    cta: int
    sm: int
    start_ns: float  # after the first operation of the recording
    warps: tuple[tuple[int, tuple[Timed, ...]], ...]  # warp -> its events

    @property
    def cycles(self) -> int:
        """From the first operation's start to the last one's end."""
        return max((line[-1].end for _, line in self.warps), default=0)


def times_of(recording: Recording) -> tuple[CtaTimes, ...]:
    """Return every CTA of the recording, its events in cycles since its first operation."""
    rows: dict[int, list[WarpRow]] = defaultdict(list)
    for row in recording.rows:
        rows[row.cta].append(row)
    found = []
    origin = recording.rows[0].start_ns if recording.rows else 0
    for cta, group in rows.items():
        lines = {row.warp: row.decoded() for row in group}
        base = lines[group[0].warp][0].begin
        base += min(_signed(line[0].begin - base) for line in lines.values())
        warps = tuple((warp, tuple(_timed(line, base))) for warp, line in lines.items())
        after = _signed(base - group[0].start_clock) * _nanoseconds(recording)
        start = _signed(group[0].start_ns - origin) + after
        found.append(CtaTimes(cta, group[0].sm, start, warps))
    least = min((item.start_ns for item in found), default=0.0)
    return tuple(replace(item, start_ns=item.start_ns - least) for item in found)


def chrome_trace(recording: Recording) -> dict[str, Any]:
    """Return the JSON document: complete events in microseconds, names of processes and threads."""
    sites = {site.number: site for site in recording.sites}
    events: list[dict[str, Any]] = []
    for cta in times_of(recording):
        events += _names(recording, cta)
        for warp, line in cta.warps:
            events += (_slice(recording, cta, warp, timed, sites) for timed in line)
        events += _stages(recording, cta, sites)
    return {
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "megakernel": recording.megakernel,
            "device": recording.device,
            "clock": f"{recording.clock_khz} kHz" if recording.clock_khz else "1 cycle = 1 ns",
            **{name: str(value) for name, value in recording.symbols},
        },
    }


def name_of(event: Event, sites: Mapping[int, Site]) -> str:
    """Return `wait ab`, as in the contract."""
    site = sites.get(event.site)
    return f"{event.verb} {site.port}" if site else event.verb


def _named(kind: str, cta: CtaTimes, thread: int, **values: Any) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": cta.cta, "tid": thread, "args": values}


def _names(recording: Recording, cta: CtaTimes) -> Iterator[dict[str, Any]]:
    yield _named("process_name", cta, 0, name=f"CTA {cta.cta} (SM {cta.sm})")
    yield _named("process_sort_index", cta, 0, sort_index=cta.cta)
    for warp, _ in cta.warps:
        yield _named("thread_name", cta, warp, name=f"warp {warp} {recording.role_of(warp)}")
        yield _named("thread_sort_index", cta, warp, sort_index=warp)


def _slice(
    recording: Recording, cta: CtaTimes, warp: int, timed: Timed, sites: Mapping[int, Site]
) -> dict[str, Any]:
    event = timed.event
    site = sites.get(event.site)
    details: dict[str, Any] = {"cycles": timed.end - timed.begin, "value": event.value}
    if site and site.channel:
        details |= {"stage": event.stage, "ring": site.channel}
    return {
        "ph": "X",
        "name": name_of(event, sites),
        "cat": "waiting" if event.verb in WAITS else "working",
        "pid": cta.cta,
        "tid": warp,
        **_span(recording, cta, timed.begin, timed.end),
        "args": details,
    }


def _stages(
    recording: Recording, cta: CtaTimes, sites: Mapping[int, Site]
) -> Iterator[dict[str, Any]]:
    """Yield the contents of every stage of every ring, from the operations of both endpoints."""
    moments: dict[tuple[str, str], list[list[int]]] = defaultdict(list)
    for _, line in cta.warps:
        mine: dict[tuple[str, str], list[int]] = defaultdict(list)
        for timed in line:
            site = sites.get(timed.event.site)
            if site and site.channel:
                mine[site.channel, timed.event.verb].append(timed.end)
        for key, found in mine.items():
            moments[key].append(found)
    thread = _RINGS
    for channel in sorted({site.channel for site in sites.values() if site.stages}):
        stages = max(site.stages for site in sites.values() if site.channel == channel)
        for stage in range(stages):
            name = f"{channel}, stage {stage}"
            yield _named("thread_name", cta, thread + stage, name=name)
        # The end of the n-th operation: of the first warp, or of the last one that performs it.
        taken = [min(times) for times in zip(*moments[channel, "acquire"], strict=False)]
        full = [min(times) for times in zip(*moments[channel, "wait"], strict=False)]
        free = [max(times) for times in zip(*moments[channel, "release"], strict=False)]
        for item, (start, filled) in enumerate(zip(taken, full, strict=False)):
            if filled <= start:
                continue
            slot = {"ph": "X", "cat": "ring", "pid": cta.cta, "tid": thread + item % stages}
            args = {"args": {"item": item}}
            yield {**slot, "name": "filling", **_span(recording, cta, start, filled), **args}
            if item < len(free) and free[item] > filled:
                used = _span(recording, cta, filled, free[item])
                yield {**slot, "name": "in use", **used, **args}
        thread += stages


def _timed(events: tuple[Event, ...], base: int) -> Iterator[Timed]:
    for event in events:
        begin = _signed(event.begin - base)
        yield Timed(event, begin, begin + event.cycles)


def _signed(cycles: int) -> int:
    """Return the difference of two 32-bit counters that may have wrapped around."""
    return (cycles + _WRAP // 2) % _WRAP - _WRAP // 2


def _nanoseconds(recording: Recording) -> float:
    """Return the duration of one cycle."""
    return 1e6 / recording.clock_khz if recording.clock_khz else 1.0


def _span(recording: Recording, cta: CtaTimes, begin: int, end: int) -> dict[str, float]:
    unit = _nanoseconds(recording)
    return {
        "ts": round((cta.start_ns + begin * unit) / 1000, 4),
        "dur": round((end - begin) * unit / 1000, 4),
    }
