"""PL10xx: work items and rates."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL1001",
        "work-field-range",
        "A role that gets a work item it cannot do leaves out operations that others wait for.",
        "contract language: `min` and `max` of a work field",
        "check",
    ),
    Code(
        "PL1002",
        "rates-differ",
        "Two ends that move unequally many items per work item stop each other.",
        "synchronous data flow: a graph runs for ever in bounded memory only if its rates balance "
        "(Lee and Messerschmitt, 1987)",
        "check",
    ),
    Code(
        "PL1003",
        "grid-not-resident",
        "A grid that waits for its own CTAs has to be on the device as a whole.",
        "CUDA programming guide, cooperative launch: CTAs beyond those resident start when others "
        "end",
        "check",
    ),
    Code(
        "PL1005",
        "counter-index",
        "How many items use a counter, and which counters there are, is for the schedule to say.",
        "contract language: `ordinal_of`, `times` and `max` of a work field",
        "check",
    ),
)
