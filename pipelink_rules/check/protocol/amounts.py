"""How many bytes does an item of a ring announce, and how many does a copy bring?"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pipelink_rules.check.protocol.blueprint import Blueprint
from pipelink_rules.check.protocol.model import UNKNOWN
from pipelink_rules.check.protocol.parts import Part
from pipelink_rules.contract.expression import evaluate
from pipelink_rules.model.contract import DTYPES, Op


def announced(
    blueprint: Blueprint, part: Part, instance: str, name: str, work: Mapping[str, int]
) -> int:
    """Bytes that the warps of a part announce per item of a ring port."""
    port = blueprint.contracts[instance].port(name)
    if port.tx_bytes is None:
        return 0
    literal = port.tx_bytes.literal
    size = literal if literal is not None else evaluate(port.tx_bytes, work)
    return size * part.warps


def copied(blueprint: Blueprint, part: Part, instance: str, op: Op) -> int:
    """Bytes of one tensor copy; a bulk copy brings what was announced."""
    contract = blueprint.contracts[instance]
    source, ring = contract.port(op.source), contract.port(op.target)
    if ring.tx_bytes is None:
        return 0
    if source.tile is None:
        return UNKNOWN
    box = math.prod(evaluate(extent, {}) for extent in source.tile.box)
    return box * DTYPES[source.members[0].dtype][0] * part.warps
