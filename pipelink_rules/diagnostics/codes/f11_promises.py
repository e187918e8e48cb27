"""PL1102: what both ends of a connection promise of a number."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL1102",
        "numeric-promises-differ",
        "A result that passes through components of different promises keeps the weaker one.",
        "",
        "check",
    ),
)
