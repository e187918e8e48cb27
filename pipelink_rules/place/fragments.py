"""Which items cannot lie together although their bytes fit?  A small core, found by the solver."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from pipelink_rules.place.allocation_sizes import Rectangle
from pipelink_rules.place.solver import UNSAT, Session

MINIMISE = 12  # questions spent on making the core smaller


def conflict_core(items: Sequence[Rectangle], limit: int, rlimit: int) -> tuple[str, ...]:
    """Names of items that no layout holds together, the biggest first; empty where not shown.

    One literal per item stands for "inside the limit"; that the others do not overlap is given.
    The smallest items are dropped first, so that the message names the big ones.
    """
    ordered = sorted(items, key=lambda item: (-item.bytes, item.name))
    session = Session(_text(ordered, limit), rlimit)
    verdict, found = session.core([f"b{index}" for index in range(len(ordered))])
    if verdict != UNSAT:
        return ()
    kept = sorted(int(literal[1:]) for literal in found)
    for index in sorted(kept, reverse=True)[:MINIMISE]:
        rest = [f"b{other}" for other in kept if other != index]
        verdict, smaller = session.core(rest)
        if verdict == UNSAT:
            kept = sorted(int(literal[1:]) for literal in smaller)
    return tuple(ordered[index].name for index in kept)


def _text(items: Sequence[Rectangle], limit: int) -> str:
    lines = []
    for index, item in enumerate(items):
        lines.append(
            f"(declare-const k{index} Int)(declare-const b{index} Bool)"
            f"(assert (=> b{index} (<= 0 k{index} {(limit - item.bytes) // item.align})))\n"
        )
    for (i, one), (j, other) in itertools.combinations(enumerate(items), 2):
        if one.phases & other.phases:
            low, high = f"(* {one.align} k{i})", f"(* {other.align} k{j})"
            lines.append(
                f"(assert (or (<= (+ {low} {one.bytes}) {high})"
                f" (<= (+ {high} {other.bytes}) {low})))\n"
            )
    return "".join(lines)
