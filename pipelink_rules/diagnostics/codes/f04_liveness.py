"""PL04xx: roles that wait for each other."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL0401",
        "deadlock",
        "Roles that wait for each other in a circle hang the kernel.",
        "a marked graph is live iff every cycle carries a token (Commoner, Holt, Even and Pnueli, "
        "1971)",
        "check",
    ),
    Code(
        "PL0402",
        "too-long-to-judge",
        "A role with too many operations per work item is not judged, and what is not judged is "
        "not linked.",
        "",
        "check",
    ),
    Code(
        "PL0403",
        "signals-never-made",
        "A wait for more signals than are ever made never ends.",
        "a counter only grows: it stands at most at the number of signals",
        "check",
    ),
)
