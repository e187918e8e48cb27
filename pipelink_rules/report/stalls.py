"""The stalls of a traced launch: Recording -> waits by role and the bottleneck, as text."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from pipelink_rules.diagnostics.text_table import format_table
from pipelink_rules.model.linked_kernel import ScriptLoop, ScriptOp, Site
from pipelink_rules.model.recording import Recording
from pipelink_rules.report.chrome_trace import WAITS, CtaTimes, Timed, name_of, times_of

BUSY = 0.6  # a role that is busy for this share of the time bounds the rest
_REALLY = 200  # cycles from which on a wait was one, and not the price of looking


@dataclass
class StallTime:
    """Cycles at one place, over all warps and CTAs."""

    cycles: int = 0
    times: int = 0


@dataclass
class RoleTimes:
    """Time of the warps of one role, as part of the time of their CTAs."""

    name: str
    warps: int = 0
    total: int = 0  # cycles of the CTAs, once for every warp
    busy: int = 0
    waits: dict[tuple[str, int], StallTime] = field(default_factory=lambda: defaultdict(StallTime))
    between: dict[str, StallTime] = field(default_factory=lambda: defaultdict(StallTime))

    def share(self, cycles: int) -> float:
        """Of the time of the CTAs."""
        return cycles / self.total if self.total else 0.0


def role_times(recording: Recording) -> tuple[RoleTimes, ...]:
    """Return every role of the recording, the busiest first."""
    sites = {site.number: site for site in recording.sites}
    found: dict[str, RoleTimes] = {}
    for cta in times_of(recording):
        for warp, line in cta.warps:
            name = recording.role_of(warp)
            role = found.setdefault(name, RoleTimes(name))
            role.warps += 1
            role.total += cta.cycles
            waited, last, label = 0, line[0].begin, ""
            for timed in line:
                _add(role.between[label], timed.begin - last)
                if timed.event.verb in WAITS:
                    waited += timed.end - timed.begin
                    place = (timed.event.verb, timed.event.site)
                    _add(role.waits[place], timed.end - timed.begin)
                last, label = timed.end, name_of(timed.event, sites)
            role.busy += line[-1].end - line[0].begin - waited
    return tuple(sorted(found.values(), key=lambda role: -role.share(role.busy)))


def stall_report(recording: Recording) -> str:
    """Return the summary: roles and their waits, the longest stalls, the bottleneck."""
    ctas = times_of(recording)
    if not ctas:
        return f"{recording.megakernel}: nothing was noted\n"
    roles = role_times(recording)
    names = _Names(recording)
    cycles = max(cta.cycles for cta in ctas)
    sizes = ", ".join(f"{name} = {value}" for name, value in recording.symbols)
    time = f" ({cycles / recording.clock_khz * 1000:.1f} us)" if recording.clock_khz else ""
    lines = [
        f"{recording.megakernel} for {recording.target}, {sizes}: {len(ctas)} of {recording.grid} "
        f"CTAs on {recording.device}, {cycles:,} cycles{time}",
        "",
        *_table(roles, names),
        "",
        *_cut(recording),
        *_where(roles[0]),
        *(
            f"A copy into `{channel}` takes {middle:,} cycles (median of {count} waited for)."
            for channel, middle, count in _flights(recording, ctas)
        ),
        bottleneck(recording, roles),
    ]
    return "\n".join(lines) + "\n"


def bottleneck(recording: Recording, roles: tuple[RoleTimes, ...]) -> str:
    """Return one sentence about the role that limits the launch."""
    names = _Names(recording)
    first = roles[0]
    busy = first.share(first.busy)
    if busy >= BUSY:
        waiting = (
            f"{role.name} waits for it {role.share(spent.cycles):.0%} of the time"
            for role in roles[1:]
            for place, spent in _longest(role)
            if first.name in names.others(*place) and role.share(spent.cycles) >= 0.05
        )
        return "; ".join((f"{first.name} bounds: it is busy {busy:.0%} of the time", *waiting))
    for role in roles:
        for (verb, number), spent in _longest(role):
            site = names.sites.get(number)
            if verb != "wait" or site is None or role.share(spent.cycles) < 0.2:
                continue
            for other, back in _acquires(roles, names, site.channel):
                if other.share(back.cycles) >= 0.2:
                    return (
                        f"The copies into `{site.channel}` bound: {role.name} waits for data "
                        f"{role.share(spent.cycles):.0%} of the time while {other.name} waits "
                        f"{other.share(back.cycles):.0%} for a free stage, so all {site.stages} "
                        "stages are on their way; more stages or fewer bytes help"
                    )
    return f"No role is busy most of the time; {first.name} is, with {busy:.0%}, more than others"


def _acquires(
    roles: tuple[RoleTimes, ...], names: _Names, channel: str
) -> Iterator[tuple[RoleTimes, StallTime]]:
    for role in roles:
        for (verb, number), spent in role.waits.items():
            site = names.sites.get(number)
            if verb == "acquire" and site and site.channel == channel:
                yield role, spent


class _Names:
    """Sites by number, and the roles at both endpoints of a ring."""

    def __init__(self, recording: Recording):
        self.sites: dict[int, Site] = {site.number: site for site in recording.sites}
        self.verbs: dict[int, set[str]] = defaultdict(set)
        self.role: dict[int, str] = {}
        for role in recording.script.roles:
            for op in _ops((*role.prologue, *role.body, *role.epilogue)):
                self.verbs[op.site].add(op.verb)
                if op.site:
                    self.role[op.site] = role.name

    def others(self, verb: str, number: int) -> tuple[str, ...]:
        """Return the roles that end a wait."""
        site = self.sites.get(number)
        if site is None:
            return ()
        wanted = {"acquire": "wait", "wait": "acquire", "wait_until": "signal"}.get(verb)
        found = (
            self.role.get(other.number, other.instance)
            for other in self.sites.values()
            if (
                (other.channel == site.channel and wanted in self.verbs[other.number])
                if wanted
                else (other.instance, other.port) == (site.instance, site.port)
            )
        )
        return tuple(dict.fromkeys(found))


def _ops(steps: tuple[ScriptOp | ScriptLoop, ...]) -> Iterator[ScriptOp]:
    for step in steps:
        if isinstance(step, ScriptLoop):
            yield from _ops(step.body)
        else:
            yield step


def _longest(role: RoleTimes) -> list[tuple[tuple[str, int], StallTime]]:
    return sorted(role.waits.items(), key=lambda item: -item[1].cycles)


def _table(roles: tuple[RoleTimes, ...], names: _Names) -> list[str]:
    heading = ("role", "warps", "busy", "waits for", "in", "share", "times", "mean cycles")
    rows = []
    for role in roles:
        head = (role.name, str(role.warps), f"{role.share(role.busy):.0%}")
        for (verb, number), spent in _longest(role) or [(("", 0), StallTime())]:
            site = names.sites.get(number)
            whom = ", ".join(names.others(verb, number)) or ("its own stores" if verb else "nobody")
            where = f"{verb} {site.port}" if site else verb
            share = f"{role.share(spent.cycles):.0%}"
            mean = f"{spent.cycles // spent.times:,}" if spent.times else ""
            rows.append((*head, whom, where, share, f"{spent.times:,}", mean))
            head = ("", "", "")
    return format_table(heading, rows, "", right=(1, 2, 5, 6, 7))


def _where(role: RoleTimes) -> Iterator[str]:
    yield f"Where {role.name} is busy, by the operation before:"
    places = sorted(role.between.items(), key=lambda item: -item[1].cycles)
    for label, spent in places[:4]:
        if label and spent.cycles:
            share, mean = role.share(spent.cycles), spent.cycles // spent.times
            yield f"  {share:4.0%}  after {label}: {spent.times:,} times, {mean:,} cycles each"
    yield ""


def _cut(recording: Recording) -> Iterator[str]:
    held = [len(row.decoded()) for row in recording.rows]
    if any(row.operations > count for row, count in zip(recording.rows, held, strict=True)):
        yield f"There was room for {max(held):,} operations of a warp only; the end is missing."
        yield ""


def _flights(recording: Recording, ctas: tuple[CtaTimes, ...]) -> Iterator[tuple[str, int, int]]:
    """Yield the cycles from `expect` to the end of a `wait` that started before it."""
    channels = sorted({site.channel for site in recording.sites if site.channel})
    for channel in channels:
        found: list[int] = []
        numbers = {site.number for site in recording.sites if site.channel == channel}
        for cta in ctas:
            sent: list[int] = []
            taken: list[Timed] = []
            for _, line in cta.warps:
                mine = [timed for timed in line if timed.event.site in numbers]
                sent = [t.end for t in mine if t.event.verb == "expect"] or sent
                taken = taken or [t for t in mine if t.event.verb == "wait"]
            found += [
                wait.end - start
                for start, wait in zip(sent, taken, strict=False)
                if wait.end - wait.begin >= _REALLY and wait.end > start
            ]
        if found:
            yield channel, int(statistics.median(found)), len(found)


def _add(spent: StallTime, cycles: int) -> None:
    spent.cycles += cycles
    spent.times += 1
