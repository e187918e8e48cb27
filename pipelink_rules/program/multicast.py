"""Multicast analysis: the members of a ring that CTAs of a cluster share, or why they do not.

The contract of a loader declares on which work fields the coordinates of a copy depend (`along`);
that of the tile scheduler declares along which axes of a cluster a field varies.  Along the other
axes all CTAs need the same bytes: each copies a slice, and the hardware writes it to all of them.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

from pipelink_rules.contract.item_layout import item_layout, member_bytes
from pipelink_rules.contract.parse_params import AXES
from pipelink_rules.model.contract import DTYPES, Contract, Member, Port
from pipelink_rules.model.operation import operations
from pipelink_rules.model.program import Multicast
from pipelink_rules.program.link_constants import constant_or_none

SLICE_ROWS = 8  # a swizzle repeats after eight rows: slices are whole repetitions
MOST_MEMBERS = 4  # of one ring that the runtime supports (pipelink::Ring)
OFFSET = 128  # bytes: alignment of the tensor copies of slices


class SharedMember(NamedTuple):
    """The members that are multicast, and for the others the reason why not."""

    members: tuple[Multicast, ...]
    reasons: tuple[str, ...]


class MulticastAnalysis:
    """Determines what the CTAs of a cluster can load for each other."""

    def __init__(
        self, cluster: tuple[int, int, int], contracts: Mapping[str, Contract], scheduler: str
    ):
        self.extents = dict(zip(AXES, cluster, strict=False))
        self.contracts = contracts
        work = contracts[scheduler].work
        self.varies = {field.name: field.along for field in (work.fields if work else ())}

    def of(self, producer: tuple[str, str], consumers: list[tuple[str, str]]) -> SharedMember:
        """Return the members of a producer's ring that multicast groups load."""
        contract, name = self.contracts[producer[0]], producer[1]
        port = contract.port(name)
        if math.prod(self.extents.values()) == 1:
            return SharedMember((), ("the cluster has one CTA",))
        raw = [
            ".".join(end)
            for end in (producer, *consumers)
            if self.contracts[end[0]].port(end[1]).raw
        ]
        if raw:
            return SharedMember((), (f"`{raw[0]}` is a raw port",))
        found: list[Multicast] = []
        reasons: list[str] = []
        for member in port.members:
            shared = self._member(contract, port, member)
            if isinstance(shared, str):
                reasons.append(f"`{member.name}`: {shared}")
            elif len(found) == MOST_MEMBERS:
                reasons.append(
                    f"`{member.name}`: a ring can multicast at most {MOST_MEMBERS} members"
                )
            else:
                found.append(shared)
        return SharedMember(tuple(found), tuple(reasons))

    def _member(self, contract: Contract, port: Port, member: Member) -> Multicast | str:
        copies = [
            op
            for op in operations(contract.role(port.role).body)
            if (op.verb, op.target, op.member) == ("copy", port.name, member.name)
        ]
        if len(copies) != 1:
            return f"{len(copies) or 'no'} copies write it, not 1"
        tensor = contract.port(copies[0].source)
        uses = [
            op
            for role in contract.roles
            for op in operations(role.body)
            if op.source == tensor.name
        ]
        if len(uses) != 1:  # its tensor map is one of slices
            return f"`{tensor.name}` is used by {len(uses)} operations, not 1"
        tile = tensor.tile
        if tile is None:
            return f"`{tensor.name}` has no tensor map"
        if tile.along is None:
            return f"`tile` of `{tensor.name}` has no `along` clause"
        box = [constant_or_none(extent) for extent in tile.box]
        if len(box) != 2 or None in box:
            return f"the box of `{tensor.name}` has {len(box)} modes, not 2"
        rows, columns = (extent or 0 for extent in box)
        row_bytes = columns * DTYPES[tensor.members[0].dtype][0]
        if rows * row_bytes != member_bytes(member):
            return f"one box of `{tensor.name}` does not fill it"
        if dict(item_layout(port).offsets)[member.name] % OFFSET:
            return f"it does not start at a multiple of {OFFSET} bytes"
        alike = self._alike(tile.along)
        if not alike:
            moves = ", ".join(
                f"`{name}` along {' and '.join(self.varies[name])}"
                for name in tile.along
                if self.varies.get(name)
            )
            return f"the CTAs need different boxes of `{tensor.name}`: {moves}"
        for axes in alike:
            size = math.prod(self.extents[axis] for axis in axes)
            if rows % (size * SLICE_ROWS) == 0:
                stride = 1 if AXES[0] in axes else self.extents[AXES[0]]
                part = rows // size
                return Multicast(
                    member.name, tensor.name, axes, size, stride, part, part * row_bytes
                )
        return f"{rows} rows cannot be divided into {size} slices of whole {SLICE_ROWS} rows"

    def _alike(self, along: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the sets of axes along which the same box is needed, the largest first."""
        axes = tuple(
            axis
            for axis in AXES
            if self.extents[axis] > 1 and not any(axis in self.varies.get(f, ()) for f in along)
        )
        return [axes, *((axis,) for axis in axes if len(axes) > 1)] if axes else []
