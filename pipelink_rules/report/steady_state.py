"""What bounds a pipeline, and would more stages help?  Program, Placement -> rows and a line."""

from __future__ import annotations

from functools import cache

from pipelink_rules.check.protocol.initiation_interval import interval
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import RING, Program
from pipelink_rules.report.map_rows import Rows

BEYOND = 2  # stage counts above the chosen one that are looked at


@cache
def steady_text(program: Program, placement: Placement) -> str:
    """`1,024 cycles per loop trip, bound by the tensor cores (mma.mma)`; "" where nothing waits."""
    found = interval(ProtocolIndex(program), dict(placement.stages))
    if found is None:
        return ""
    return f"{found.cycles:,.0f} cycles per {found.period}, bound by {found.bottleneck}"


@cache
def steady_rows(program: Program, placement: Placement) -> Rows:
    """For each ring that copies fill: stage counts with their interval, equal ones together."""
    blueprint, chosen = ProtocolIndex(program), dict(placement.stages)
    rows: list[tuple[object, ...]] = []
    for channel in program.channels:
        if channel.kind != RING:
            continue
        given = chosen[channel.name]
        last = min(channel.maximum, given + BEYOND)
        groups: list[tuple[list[int], str, str]] = []
        for stages in range(channel.minimum, last + 1):
            found = interval(blueprint, {**chosen, channel.name: stages})
            cycles, bound = (f"{found.cycles:,.0f}", found.bottleneck) if found else ("-", "-")
            if groups and groups[-1][1:] == (cycles, bound):
                groups[-1][0].append(stages)
            else:
                groups.append(([stages], cycles, bound))
        for counts, cycles, bound in groups:
            shown = f"{counts[0]}..{counts[-1]}" if len(counts) > 1 else str(counts[0])
            rows.append((channel.name, shown, cycles, bound, "chosen" if given in counts else ""))
    if all(row[2] == "-" for row in rows):
        rows = []
    return ("ring", "stages", "cycles", "bound by", ""), rows
