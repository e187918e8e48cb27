"""PL03xx: hardware named barriers."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL0302",
        "barrier-participants",
        "A named barrier that counts other threads than come to it never opens, or opens too "
        "early.",
        "PTX ISA, barrier: the thread count, a multiple of 32, is that of all participating warps",
        "check",
    ),
    Code(
        "PL0303",
        "barrier-rounds-mix",
        "An arrival that comes a round too early is counted for the round before.",
        "PTX ISA, barrier: an arrive may not be followed by another use of the barrier before it "
        "reset",
        "check",
    ),
)
