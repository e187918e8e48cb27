"""The type of a row of the catalogue: a stable code and what stands behind it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """One kind of finding.  Ids are never reused or renumbered."""

    id: str  # "PL0202"
    slug: str  # "transaction-bytes"
    purpose: str  # one sentence: what goes wrong without this check
    rule: str = ""  # the hardware or tool rule, with its source
    stage: str = "check"  # text, check, place, compile, link, build, launch
