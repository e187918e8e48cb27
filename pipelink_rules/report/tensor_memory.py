"""Who has which columns of tensor memory?"""

from __future__ import annotations

from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.model.target import TARGETS
from pipelink_rules.report.map_rows import Rows


def tensor_rows(program: Program, placement: Placement) -> Rows:
    """Every channel in tensor memory by its columns, and what the allocation leaves free."""
    channels = {channel.name: channel for channel in program.channels}
    rows: list[tuple[object, ...]] = []
    top = 0
    for name, first in sorted(placement.columns, key=lambda item: item[1]):
        columns, stages = channels[name].columns, placement.stage_count(name)
        end = first + stages * columns
        if first > top:
            rows.append((top, first, first - top, "(free)", ""))
        rows.append((first, end, end - first, name, f"{stages} x {columns}"))
        top = max(top, end)
    if top < placement.tensor_columns:
        rows.append((top, placement.tensor_columns, placement.tensor_columns - top, "(free)", ""))
    return ("start", "end", "columns", "channel", "stages"), rows


def tensor_text(program: Program, placement: Placement) -> str:
    """How much is allocated of what there is; "" where nothing is."""
    if not placement.tensor_columns:
        return ""
    there = TARGETS[program.target].tmem_columns
    taken = placement.tensor_columns * placement.occupancy
    ctas = f" for {placement.occupancy} CTAs" if placement.occupancy > 1 else ""
    return (
        f"{placement.tensor_columns} columns of 128 lanes allocated per CTA; "
        f"{taken} of {there} on the SM{ctas}"
    )
