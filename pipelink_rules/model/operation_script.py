"""What should the warps of a role do?  The contracts' operations as the runtime sees them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScriptOp:
    """One operation of the device runtime that a contract (or a transfer) asks for."""

    verb: (
        str  # "acquire", "wait", "expect", "copy", "commit", "release", "store", "store wait", ...
    )
    site: int = 0  # of the manifest; 0 = an operation without a ring or named barrier
    value: str = ""  # what it is called with, an expression over symbols and fields; "" = anything
    lag: int = 0  # release: items before the current one
    by_item: bool = False  # the cursor moves on with the work item (a hand-over), not with the op
    text: str = ""  # "mma.mma: release ab lag 1 (file:line:column)"


@dataclass(frozen=True)
class ScriptLoop:
    """Operations repeated `count` times, an expression over symbols and fields."""

    count: str
    body: tuple[ScriptOp | ScriptLoop, ...]


@dataclass(frozen=True)
class RoleScript:
    """A set of warps of the megakernel and what every one of them does."""

    name: str
    first_warp: int
    warps: int
    prologue: tuple[ScriptOp | ScriptLoop, ...] = ()
    body: tuple[ScriptOp | ScriptLoop, ...] = ()  # per work item
    epilogue: tuple[ScriptOp | ScriptLoop, ...] = ()
    raw: tuple[str, ...] = ()  # ports whose operations do not pass the runtime: "load.ab"


@dataclass(frozen=True)
class Script:
    """A launch of a megakernel: CTA c takes the work items c, c + grid, c + 2 grid, ...

    In clusters all CTAs of cluster c take them, with the number of clusters for `grid`.
    """

    items: str  # number of work items, an expression over symbols
    fields: tuple[tuple[str, str], ...]  # work fields that are the same for every item -> value
    roles: tuple[RoleScript, ...]
    cluster: int = 1  # CTAs
    varying: tuple[str, ...] = ()  # work fields that differ from item to item
