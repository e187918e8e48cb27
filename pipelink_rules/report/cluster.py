"""What do the CTAs of a cluster load for each other?"""

from __future__ import annotations

import math

from pipelink_rules.model.program import Program
from pipelink_rules.report.map_rows import Rows


def cluster_rows(program: Program) -> Rows:
    """Every member of a ring that a group of CTAs gets alike."""
    rows: list[tuple[object, ...]] = [
        (
            f"{channel.name}.{shared.member}",
            f"{shared.size} CTAs along {' and '.join(shared.axes)}",
            f"{shared.rows} of {shared.rows * shared.size} rows, {shared.bytes:,} bytes",
        )
        for channel in program.channels
        for shared in channel.multicast
    ]
    return ("member", "shared by", "each copies"), rows


def cluster_text(program: Program) -> str:
    """The shape of the cluster, and what a CTA reads per item; "" where a cluster is one CTA."""
    if math.prod(program.cluster) == 1:
        return ""
    shape = " x ".join(map(str, program.cluster))
    said = [f"clusters of {shape} CTAs"]
    for channel in program.channels:
        saved = sum(shared.bytes * (shared.size - 1) for shared in channel.multicast)
        if saved:
            port = program.instance(channel.producer[0]).variant.contract.port(channel.producer[1])
            whole = port.tx_bytes.literal if port.tx_bytes else None
            if whole:
                said.append(f"{channel.name}: each reads {whole - saved:,} of {whole:,} bytes")
            reached = len(channel.reach(0))
            said.append(f"a stage is free when {reached} CTAs have released it")
    return "; ".join(said)
