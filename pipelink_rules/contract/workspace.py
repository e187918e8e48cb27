"""Which clauses fit ports through which CTAs reach each other: counters and scratch memory?"""

from __future__ import annotations

from pipelink_rules.contract.block_parser import Block

SCOPES = ("cta", "cluster", "gpu", "sys")  # from narrow to wide
INITS = ("none", "zero")


def check_counter(block: Block, out: bool) -> None:
    """Who signals says how many counters there are and how often a signal counts."""
    if out:
        block.require("count", "it signals, and is the one that knows how many counters there are")
    else:
        for clause in ("count", "arrivals"):
            block.refuse(clause, "it waits; the port that signals says so")


def check_scratch(block: Block, out: bool) -> None:
    """Scratch is reached by plain addresses; who writes it says what is there at first."""
    if not block.flag("scratch", False):
        block.refuse("init", "it is a tensor of the caller", "set `scratch: true`")
        return
    block.refuse("tile", "scratch memory is reached by plain addresses")
    if out:
        block.require("init", "somebody may have to clear it", "`init: none` or `init: zero`")
    else:
        block.refuse("init", "it reads; the port that writes says what is there at first")
