"""Layout of a ring item: Port -> byte offsets of its tiles, bytes and alignment of a stage.

Members follow each other in contract order, each at its own alignment; the stage is rounded up to
the largest one, so that every stage starts as well aligned as the first.
"""

import math
from dataclasses import dataclass

from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import DTYPES, Member, Port

# The swizzle is a function of address bits: a tile must start at a multiple of its pattern
# (PTX ISA, "Tensor swizzling modes": 1024, 512 and 256 bytes; 128 for a tensor copy without one).
SWIZZLE_ALIGN = {0: 128, 32: 256, 64: 512, 128: 1024}


@dataclass(frozen=True)
class ItemLayout:
    """One stage of a ring."""

    offsets: tuple[tuple[str, int], ...]  # member -> byte offset
    data_bytes: int  # of the members, without gaps
    stage_bytes: int
    align: int


def member_bytes(member: Member) -> int:
    """Return the bytes of the elements of one tile without padding; its extents are bound."""
    return math.prod(evaluate(extent, {}) for extent in member.shape) * DTYPES[member.dtype][0]


def box_bytes(port: Port) -> int:
    """Return the bytes of one box of a global port with a `tile`."""
    assert port.tile is not None
    extents = [evaluate(extent, {}) for extent in port.tile.box]
    return math.prod(extents) * DTYPES[port.members[0].dtype][0]


def member_span(member: Member) -> int:
    """Return the bytes from the first to the last element of one tile, with gaps of its strides."""
    if not member.layout.strides:
        return member_bytes(member)
    last = 0
    for extent, stride in zip(member.shape, member.layout.strides, strict=True):
        if isinstance(stride, tuple):
            last += sum((evaluate(n, {}) - 1) * evaluate(step, {}) for n, step in stride)
        else:
            last += (evaluate(extent, {}) - 1) * evaluate(stride, {})
    return (last + 1) * DTYPES[member.dtype][0]


def item_layout(port: Port) -> ItemLayout:
    """Return the layout of one item of a ring port of a bound contract."""
    offsets, end, align, data = [], 0, 128, 0
    for member in port.members:
        step = SWIZZLE_ALIGN.get(member.layout.swizzle, 1024)
        end = -(-end // step) * step
        offsets.append((member.name, end))
        end, align = end + member_span(member), max(align, step)
        data += member_bytes(member)
    return ItemLayout(tuple(offsets), data, -(-end // align) * align, align)


def tensor_columns(port: Port) -> int:
    """Return the columns of one item of a tensor-memory port, 32 bits of every lane each."""
    member = port.members[0]
    return evaluate(member.shape[1], {}) * DTYPES[member.dtype][0] // 4
