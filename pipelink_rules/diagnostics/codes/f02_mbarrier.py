"""PL02xx: the full and empty barriers of rings."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL0201",
        "arrival-count",
        "A barrier that counts other arrivals than its roles make never opens, or opens too early.",
        "PTX ISA, mbarrier: a phase completes when its pending arrivals and its pending bytes are "
        "zero",
        "check",
    ),
    Code(
        "PL0202",
        "transaction-bytes",
        "A barrier that waits for other bytes than its copies bring never opens.",
        "PTX ISA, mbarrier: a phase completes when its pending arrivals and its pending bytes are "
        "zero",
        "check",
    ),
    Code(
        "PL0203",
        "phase-alias",
        "A role that can be two phases away from its barrier takes one phase for another.",
        "PTX ISA, mbarrier.test_wait: a parity names the current phase or the one before it, no "
        "other",
        "check",
    ),
    Code(
        "PL0209",
        "item-not-held",
        "An operation without an item works on a stage that belongs to the other side.",
        "contract language: `acquire` or `wait` makes an item current, within one work item",
        "check",
    ),
)
