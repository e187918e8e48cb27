"""How is an operation written in a contract?"""

from __future__ import annotations

from pipelink_rules.model.contract import Operation


def format_operation(op: Operation) -> str:
    """The operation as it is written in a contract."""
    if op.verb == "copy":
        return f"copy {op.source} -> {op.target}.{op.member}"
    if op.verb == "store":
        return f"store {op.target} -> {op.source}"
    if op.verb == "mma" and op.source:
        return f"mma {op.target} -> {op.source}"
    if op.verb == "commit" and op.source:
        return f"commit {op.source} -> {op.target}"
    if op.verb == "await" and op.target.startswith("tensor"):
        return f"await {op.target}"
    if op.verb == "wait_until":
        return f"wait_until {op.target}{op.piece} {op.threshold}"
    if op.verb == "await":
        return f"await {op.target} {op.count}" + (" full" if op.full else "")
    if op.verb == "release":
        return f"release {op.target} lag {op.lag}"
    return f"{op.verb} {op.target}{op.piece}".strip()
