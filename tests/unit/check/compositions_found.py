"""Compositions at which the graph and the executor once disagreed, as short texts.

    wait e-2       arrive f0 x2 +64     copy R0 +64 f      await store 0      signal b0 x32

The number after a name is the item; `x` the amount, `+` the bytes; a copy ends with its barrier.
"""

from __future__ import annotations

import re

from unit.check.compositions import act

from pipelink_rules.check.protocol.model import (
    Action,
    Barrier,
    Composition,
    Kind,
    Memory,
    Named,
    Process,
)
from pipelink_rules.check.protocol.protocol_problems import (
    NoOrder,
    PhaseAliasing,
    Problem,
    StoreStillReads,
)

_ACTION = re.compile(r"(\w+) ([A-Za-z]+)(-?\d+)(?: x(\d+))?(?: \+(\d+))?(?: (\w+))?")


def _action(text: str) -> Action:
    if text == Kind.FENCE:
        return act(Kind.FENCE)
    if text.startswith(Kind.AWAIT):
        _, group, count = text.split()
        return act(Kind.AWAIT, group, 0, int(count))
    match = _ACTION.fullmatch(text)
    assert match, text
    kind, target, item, amount, size, barrier = match.groups()
    return act(kind, target, int(item), int(amount or 1), int(size or 0), barrier or "")


def _process(number: int, text: str) -> Process:
    parts = [
        tuple(_action(word.strip()) for word in part.split(";") if word.strip())
        for part in text.split("|")
    ]
    if len(parts) == 1:
        return Process(f"p{number}", parts[0])
    return Process(f"p{number}", parts[1], parts[0], parts[2])  # prologue | period | epilogue


def _composed(
    processes: tuple[str, ...],
    barriers: dict[str, tuple[int, int, int]] | None = None,
    memories: dict[str, tuple[int, int]] | None = None,
    named: dict[str, tuple[int, int]] | None = None,
) -> Composition:
    """Numbers as in the model: stages, arrivals, items; stages, items; threads, generations."""
    return Composition(
        {name: Barrier(*numbers) for name, numbers in (barriers or {}).items()},
        {name: Memory(*numbers) for name, numbers in (memories or {}).items()},
        {name: Named(*numbers) for name, numbers in (named or {}).items()},
        tuple(_process(number, text) for number, text in enumerate(processes)),
    )


_CROWD = {"f": (2, 1, 2), "e": (2, 2, 2)}
_PIPE = {"f": (1, 1, 1), "e": (1, 1, 1)}

# name -> composition, what the graph must find ("" = nothing), the verdict of the executor
FOUND: dict[str, tuple[Composition, type[Problem] | None, str]] = {
    # One reader releases stages in the other order.  The phase of stage 1 then takes two arrivals
    # of the fast reader, none of the slow one.  The graph took every arrival for its own phase.
    "two arrivals of a fast reader": (
        _composed(
            (
                "wait e-2; write R0; arrive f0; wait e-1; write R1; arrive f1",
                "wait f0; read R0; arrive e1; wait f1; read R1; arrive e0",
                "wait f0; read R0; arrive e0; wait f1; read R1; arrive e1",
            ),
            _CROWD,
            {"R": (2, 2)},
        ),
        PhaseAliasing,
        "alias",
    ),
    # The arrival comes before the stage is acquired, its bytes after: the phase cannot complete
    # before them.  The graph saw arrivals only, and found that a wait could be lapped.
    "announced before acquired": (
        _composed(
            (
                "arrive f0 +64; wait e-1; copy R0 +64 f; signal b0 x32; meet b0",
                "wait f0; signal b0 x32; meet b0; read R0; fence; arrive e0",
            ),
            _PIPE,
            {"R": (1, 1)},
            {"b": (64, 1)},
        ),
        None,
        "ok",
    ),
    # Only the end of the kernel comes after the store.  The executor let it end.
    "a store at the very end": (
        _composed(
            (
                "wait e-2; write R0; fence; arrive f0",
                "wait f0; store R0; await store 1; arrive e0",
            ),
            {"f": (2, 1, 1), "e": (2, 1, 1)},
            {"R": (2, 1)},
        ),
        StoreStillReads,
        "race",
    ),
    # No action reads what the two write: the last item must stay nevertheless.
    "two writers in no order": (
        _composed(
            ("write M0", "write M1"),
            None,
            {"M": (1, 2)},
        ),
        NoOrder,
        "race",
    ),
}
