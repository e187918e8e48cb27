"""How often does an operation of a part arrive, and how many bytes does it announce or bring?

The runtime elects one lane of every warp.  Behind a raw port one lane may act for all: what the
contract says of an item is what all threads of the role do together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pipelink_rules.check.protocol.model import UNKNOWN
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.check.protocol.warp_sets import WarpSet
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import DTYPES, Operation, Port


def arrivals(blueprint: ProtocolIndex, part: WarpSet, instance: str, name: str) -> int:
    """Arrivals of a part by one operation on a ring; the first part's where they cannot be shared.

    What the other parts did before is ordered then by what they have in common, or it is a race.
    """
    port = blueprint.contracts[instance].port(name)
    if not port.raw:
        return part.warps
    total = evaluate(port.arrivals, {})
    mine, rest = divmod(total * part.warps, part.role.warps)
    if rest == 0:
        return mine
    return total if _is_first(part) else 0


def announced(
    blueprint: ProtocolIndex, part: WarpSet, instance: str, name: str, work: Mapping[str, int]
) -> int:
    """Bytes that the warps of a part announce per item of a ring port."""
    port = blueprint.contracts[instance].port(name)
    if port.tx_bytes is None:
        return 0
    literal = port.tx_bytes.literal
    size = literal if literal is not None else evaluate(port.tx_bytes, work)
    return size * _times(part, port)


def copied(blueprint: ProtocolIndex, part: WarpSet, instance: str, op: Operation) -> int:
    """Bytes of one tensor copy; a bulk copy brings what was announced."""
    contract = blueprint.contracts[instance]
    source, ring = contract.port(op.source), contract.port(op.target)
    if ring.tx_bytes is None:
        return 0
    if source.tile is None:
        return UNKNOWN
    box = math.prod(evaluate(extent, {}) for extent in source.tile.box)
    return box * DTYPES[source.members[0].dtype][0] * _times(part, ring)


def _times(part: WarpSet, port: Port) -> int:
    """How often a part announces or copies an item."""
    return int(_is_first(part)) if port.raw else part.warps


def acts(blueprint: ProtocolIndex, part: WarpSet, instance: str, name: str) -> bool:
    """Whether a part copies: behind a raw port one of several acts for all."""
    return not blueprint.contracts[instance].port(name).raw or _is_first(part)


def _is_first(part: WarpSet) -> bool:
    return (part.group, part.twin) == (0, 0)
