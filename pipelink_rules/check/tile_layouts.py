"""Checks that both ends place each element at the same byte, and of the alignment of tiles.

Layouts are compared as maps from coordinates to bytes, never as text: a coordinate times its
strides (a mode may be nested: extents and strides, innermost first), then the swizzle.  The part
before the swizzle is a sum of one term per mode, so two maps of one swizzle are equal iff these
terms are.
"""

import math
from collections.abc import Iterator
from itertools import product
from typing import Unpack

from pipelink_rules.check.domain import domain_of
from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.types import same_shape
from pipelink_rules.contract.item_layout import box_bytes
from pipelink_rules.diagnostics.diagnostic import Clauses, Diagnostic, Location, report
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import DTYPES, Member, Operation, Port
from pipelink_rules.model.program import MULTICAST, RING, Channel, Connection

MOST_POINTS = (
    232_448  # bytes of shared memory of a CTA (sm_90a, sm_100a): no tile has more elements
)
ALIGN = {0: 16, 32: 256, 64: 512, 128: 1024}  # PTX ISA, tensor swizzling modes
COPY_ALIGN = 128  # PTX ISA, cp.async.bulk.tensor: shared address without a swizzle

Coordinate = tuple[int, ...]


def swizzled(offset: int, span: int) -> int:
    """XOR address bits 4..6 with bits 7..9; a span of 32 or 64 bytes uses 1 or 2 of them."""
    bits = {0: 0, 32: 1, 64: 2, 128: 3}[span]
    return offset ^ ((offset >> 7 & (1 << bits) - 1) << 4)


def terms(member: Member) -> list[list[int]]:
    """Return per mode the byte offset of every coordinate, before the swizzle."""
    size = DTYPES[member.dtype][0]
    extents = [evaluate(extent, {}) for extent in member.shape]
    strides = list(member.layout.strides)
    if not strides:
        return [
            [place * math.prod(extents[mode + 1 :]) * size for place in range(extent)]
            for mode, extent in enumerate(extents)
        ]
    found = []
    for extent, stride in zip(extents, strides, strict=True):
        if not isinstance(stride, tuple):
            step = evaluate(stride, {})
            found.append([place * step * size for place in range(extent)])
            continue
        pairs = [(evaluate(inner, {}), evaluate(step, {})) for inner, step in stride]
        found.append([_nested(place, pairs) * size for place in range(extent)])
    return found


def _nested(place: int, pairs: list[tuple[int, int]]) -> int:
    offset = 0
    for position, (extent, step) in enumerate(pairs):
        last = position == len(pairs) - 1
        offset += (place if last else place % extent) * step
        place //= extent
    return offset


def difference(a: Member, b: Member) -> tuple[Coordinate, int, int] | None:
    """Return the first coordinate with two bytes, and both bytes; None if the maps are equal.

    With one swizzle, a mode is compared at a time.  Otherwise every element is: a tile of more than
    MOST_POINTS has no place in shared memory (PL0101).
    """
    ours, theirs = terms(a), terms(b)
    spans = (a.layout.swizzle, b.layout.swizzle)
    if spans[0] == spans[1]:
        for mode in range(len(ours) - 1, -1, -1):
            for place, (x, y) in enumerate(zip(ours[mode], theirs[mode], strict=True)):
                if x != y:
                    at = tuple(place if other == mode else 0 for other in range(len(ours)))
                    return at, swizzled(x, spans[0]), swizzled(y, spans[1])
        return None
    for number, at in enumerate(product(*(range(len(mode)) for mode in ours))):
        if number >= MOST_POINTS:
            break
        x = swizzled(sum(mode[place] for mode, place in zip(ours, at, strict=True)), spans[0])
        y = swizzled(sum(mode[place] for mode, place in zip(theirs, at, strict=True)), spans[1])
        if x != y:
            return at, x, y
    return None


def describe(member: Member) -> str:
    """Return `row-major, swizzle 128`."""
    strides = member.layout.strides
    order = "row-major"
    if strides:
        order = "strides " + ", ".join(
            "[" + ", ".join(f"[{e}, {s}]" for e, s in mode) + "]"
            if isinstance(mode, tuple)
            else str(mode)
            for mode in strides
        )
    return order + (f", swizzle {member.layout.swizzle}" if member.layout.swizzle else "")


def check_layouts(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0601: both ends of a ring use one layout of a tile, compared as maps, and `mma` can."""
    domain = domain_of(index)
    for connection, source, sink in index.connected_ports():
        if connection.transfer not in (RING, MULTICAST):
            continue
        read = {member.name: member for member in sink.members}
        for written in source.members:
            taken = read.get(written.name)
            if taken is None or written.dtype != taken.dtype:
                continue  # reported by check_tiles
            if not same_shape(written, taken, domain).holds:
                continue  # too
            found = difference(written, taken)
            if found is None:
                yield from _operand(index, connection, written, taken)
                continue
            at, ours, theirs = found
            place = ", ".join(map(str, at))
            yield mismatch(
                f"tile `{written.name}` of `{connection.name}`: element ({place}) is written at "
                f"byte {ours:,} and read at byte {theirs:,}",
                (taken.layout.span or taken.span, f"{describe(taken)}: byte {theirs:,}"),
                (written.layout.span or written.span, f"{describe(written)}: byte {ours:,}"),
                connection.span,
                expected=describe(written),
                found=describe(taken),
                suggestions=(f"set the layout of the consumer's tile to {describe(written)}",),
                subject=connection.name,
            )


def _operand(
    index: ProgramIndex, connection: Connection, written: Member, taken: Member
) -> Iterator[Diagnostic]:
    """Report rows of an operand of `mma` that are not as long as its swizzle span.

    A descriptor of wgmma or tcgen05.mma describes rows of exactly 32, 64 or 128 bytes, one after
    the other (PTX ISA, wgmma: canonical layouts).
    """
    end, span, row = connection.consumer, taken.layout.swizzle, _row_bytes(taken)
    ops = [op for instance, _, op in index.operations("mma") if (instance, op.target) == end]
    if ops and span and row not in (0, span):
        yield mismatch(
            f"tile `{taken.name}` of `{'.'.join(end)}`: rows of {row:,} bytes, but `mma` reads "
            f"rows of {span}",
            (taken.layout.span or taken.span, describe(taken)),
            (ops[0].span, f"reads rows of {span} bytes under swizzle {span}"),
            (written.layout.span or written.span, describe(written)),
            expected=f"rows of {span} bytes",
            found=f"rows of {row:,} bytes",
            suggestions=(
                f"use rows of {span // DTYPES[taken.dtype][0]} elements",
                *(f"or set `swizzle: {row}` on both ends" for _ in range(row in ALIGN)),
            ),
            subject=connection.name,
        )


def _row_bytes(member: Member) -> int:
    """Return the smallest distance of two elements that are not neighbors in a row; 0: one row."""
    size = DTYPES[member.dtype][0]
    steps = {places[1] for places in terms(member) if len(places) > 1}
    for stride in member.layout.strides:
        if isinstance(stride, tuple):
            steps |= {evaluate(step, {}) * size for extent, step in stride if extent.literal != 1}
    return min((step for step in steps if step > size), default=0)


def mismatch(where: str, *locations: Location, **clauses: Unpack[Clauses]) -> Diagnostic:
    """Return PL0601: what is written with one layout is read with another one."""
    clauses["at_run_time"] = "the consumer reads other elements than intended: always wrong results"
    return report("PL0601", f"layout mismatch on {where}", *locations, **clauses)


def check_copied_tiles(index: ProgramIndex) -> Iterator[tuple[str, Operation, Port, Port]]:
    """Yield (instance, operation, tensor, ring) for every copy into a ring."""
    for instance, _, op in index.operations("copy"):
        yield instance, op, index.port((instance, op.source)), index.port((instance, op.target))


def check_stage_alignment(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0604: every tile of every stage is aligned for its swizzle and its copies."""
    tensor_copies = {
        (instance, op.target, op.member)
        for instance, op, tensor, _ in check_copied_tiles(index)
        if tensor.tile is not None
    }
    for channel in index.program.channels:
        if channel.kind != RING:
            continue
        offsets = dict(channel.member_offsets)
        for end in (channel.producer, *channel.consumers):
            for member in index.port(end).members:
                need = ALIGN[member.layout.swizzle]
                if (*end, member.name) in tensor_copies:
                    need = max(need, COPY_ALIGN)
                at = offsets.get(member.name, 0)
                if channel.align % need or channel.stage_bytes % need or at % need:
                    yield _misaligned(index, channel, member, need, at)


def _misaligned(
    index: ProgramIndex, channel: Channel, member: Member, need: int, at: int
) -> Diagnostic:
    connection = index.connection(channel)
    have = math.gcd(channel.align, channel.stage_bytes, at)
    why = f"swizzle {member.layout.swizzle}" if member.layout.swizzle else "a tensor copy"
    return report(
        "PL0604",
        f"tile `{member.name}` of `{connection.name}` is aligned to {have:,} bytes, but {why} "
        f"requires {need:,}",
        (member.layout.span or member.span, f"{why}: {need:,} bytes"),
        (connection.span, ""),
        expected=f"an alignment of {need:,} bytes in every stage",
        found=f"an alignment of {have:,} bytes: stages of {channel.stage_bytes:,} bytes aligned to "
        f"{channel.align:,}, with the tile at offset {at:,}",
        at_run_time="elements are written to other addresses than they are read from: wrong "
        "results",
        suggestions=("set a swizzle on the tile: its stages are then aligned to it",)
        if not member.layout.swizzle
        else (f"make the size of the tiles before it a multiple of {need:,} bytes",),
        subject=connection.name,
    )


def check_buffer_alignment(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0604: a buffer that a tensor copy stores from is aligned for the swizzle of the copy."""
    for instance, _, op in index.operations("store"):
        contract = index.contracts[instance]
        buffer = {buffer.name: buffer for buffer in contract.buffers}.get(op.target)
        if buffer is None:
            continue
        port = contract.port(op.source)
        need, part_bytes = ALIGN[0], evaluate(buffer.bytes, {}) // buffer.stages
        if port.tile:
            need, part_bytes = max(ALIGN[port.tile.swizzle], COPY_ALIGN), box_bytes(port)
        if buffer.align % need == 0 and part_bytes % need == 0:
            continue
        have = math.gcd(buffer.align, part_bytes)
        name = f"{instance}.{buffer.name}"
        yield report(
            "PL0604",
            f"copies from buffer `{name}` start at multiples of {have:,} bytes, not of {need:,}",
            (buffer.span, f"align: {buffer.align}"),
            (port.tile.span if port.tile else op.span, f"requires {need:,} bytes"),
            expected=f"multiples of {need:,} bytes",
            found=f"multiples of {have:,} bytes",
            at_run_time="the copy stores other elements than were written: always wrong results",
            suggestions=(f"set `align: {need}` on buffer `{buffer.name}`",)
            if buffer.align % need
            else (f"choose a box of a multiple of {need:,} bytes",),
            subject=name,
        )


CHECKS = (check_layouts, check_stage_alignment, check_buffer_alignment)
