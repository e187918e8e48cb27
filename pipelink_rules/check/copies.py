"""Checks that copies meet the limits of the hardware and fill exactly what rings and buffers hold.

Limits: CUDA driver API, cuTensorMapEncodeTiled (boxes, strides); PTX ISA, cp.async.bulk (sizes and
addresses are multiples of 16 bytes).
"""

import math
from collections.abc import Iterator
from dataclasses import replace

from pipelink_rules.check.domain import domain_of
from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.check.protocol.cases import Range, ranges
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.model import Composition, Kind
from pipelink_rules.check.protocol.protocol_index import TooManyOperations
from pipelink_rules.check.tile_layouts import (
    Coordinate,
    check_copied_tiles,
    describe,
    difference,
    mismatch,
)
from pipelink_rules.check.types import shape_of
from pipelink_rules.contract.item_layout import box_bytes, member_bytes
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.expression.evaluate import value_of
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import DTYPES, Layout, Member, Operation, Port, TileAccess
from pipelink_rules.model.program import RING, Channel
from pipelink_rules.model.source_span import Expr
from pipelink_rules.solver.decide import Answer, Domain, always, equal

GRAIN = 16  # bytes: sizes, addresses and strides of bulk and tensor copies


def check_boxes(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0605: the inner row of a box is a multiple of 16 bytes, and fills the swizzle span."""
    multiplied = _multiplied_tensors(index)
    for instance, _, port in index.ports():
        if port.tile is None:
            continue
        size = DTYPES[port.members[0].dtype][0]
        inner = evaluate(port.tile.box[-1], {}) * size
        if inner % GRAIN:
            yield report(
                "PL0605",
                f"box rows of `{instance}.{port.name}` are not a multiple of {GRAIN} bytes",
                (port.tile.box[-1].span or port.tile.span, f"{inner:,} bytes"),
                expected=f"a multiple of {GRAIN} bytes",
                found=f"{inner:,} bytes",
                at_run_time="the driver rejects the tensor map: launch failure",
                suggestions=(f"use a multiple of {GRAIN // size} elements",),
                subject=f"{instance}.{port.name}",
            )
        elif inner < port.tile.swizzle and (instance, port.name) not in multiplied:
            yield _short_rows(f"{instance}.{port.name}", port.tile, inner, size)


def _multiplied_tensors(index: ProgramIndex) -> set[tuple[str, str]]:
    """Return tensors that are copied into operands of `mma`, whose rows `check_layouts` judges."""
    operands = {(instance, op.target) for instance, _, op in index.operations("mma")}
    producers = {item.producer for item in index.program.connections if item.consumer in operands}
    return {
        (instance, op.source)
        for instance, op, _, ring in check_copied_tiles(index)
        if (instance, ring.name) in producers
    }


def _short_rows(name: str, tile: TileAccess, inner: int, size: int) -> Diagnostic:
    """Report rows that the copy engine pads in shared memory to the whole span.

    CUDA programming guide, swizzle modes: shared memory holds the full swizzle width of each row.
    On an H200, stores of rows of 64 bytes under a swizzle of 128 left elements unwritten.
    """
    span = tile.swizzle
    return report(
        "PL0605",
        f"box rows of `{name}` are shorter than their swizzle span",
        (tile.box[-1].span or tile.span, f"{inner:,} bytes"),
        (tile.span, f"swizzle {span}"),
        expected=f"rows of {span} bytes",
        found=f"rows of {inner:,} bytes",
        at_run_time=f"the copy places rows {span} bytes apart: wrong elements",
        suggestions=(
            f"use rows of {span // size} elements",
            *(f"or set `swizzle: {inner}`" for _ in range(inner in (32, 64))),
        ),
        subject=name,
    )


def check_copy_bounds(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0602, PL0601: a copy keeps the dtype of its tensor and the layout of its box."""
    reported: set[tuple[str, str]] = set()
    for instance, op, tensor, ring in check_copied_tiles(index):
        member = next(member for member in ring.members if member.name == op.member)
        subject = f"{op.target}.{op.member}"
        given = tensor.members[0]
        if (instance, subject) in reported:
            continue
        reported.add((instance, subject))
        if given.dtype != member.dtype:
            yield report(
                "PL0602",
                f"`copy {op.source} -> {subject}` copies {given.dtype} into a tile of "
                f"{member.dtype}",
                (given.span, f"`{op.source}` is {given.dtype}"),
                (member.span, f"the tile is {member.dtype}"),
                (op.span, "copies do not convert"),
                expected=member.dtype,
                found=given.dtype,
                at_run_time="bits of one type are read as another: always wrong results",
                suggestions=(f"set the dtype of tile `{op.member}` to {given.dtype}",),
                subject=f"{instance}.{subject}",
            )
        elif tensor.tile is None:
            found = difference(member, Member("", member.dtype, member.shape))
            if found:
                yield mismatch(
                    f"bulk `copy {op.source} -> {subject}`: {_misplaced(found)}",
                    (member.layout.span or member.span, f"the tile is {describe(member)}"),
                    (tensor.span, "without `tile`, a copy keeps the layout of global memory"),
                    op.span,
                    expected="row-major",
                    found=describe(member),
                    suggestions=(
                        f"add a `tile` with this layout to port `{op.source}`: a tensor copy",
                        "or remove the layout from the tile on both ends",
                    ),
                    subject=f"{instance}.{subject}",
                )
        else:
            yield from _box_layout(op, tensor.tile, member, f"{instance}.{subject}")


def _box_layout(
    op: Operation, tile: TileAccess, member: Member, subject: str
) -> Iterator[Diagnostic]:
    box = Member("", member.dtype, tile.box, Layout((), tile.swizzle))
    whole = [evaluate(e, {}) for e in box.shape] == [evaluate(e, {}) for e in member.shape]
    found = difference(member, box) if whole else None
    if found or (not whole and tile.swizzle != member.layout.swizzle):
        suffix = f": {_misplaced(found)}" if found else ""
        yield mismatch(
            f"`copy {op.source} -> {op.target}.{op.member}`{suffix}",
            (tile.span, f"copies {describe(box)}"),
            (member.layout.span or member.span, f"the tile is {describe(member)}"),
            expected=describe(member),
            found=describe(box),
            suggestions=(f"set `swizzle: {member.layout.swizzle}` in `tile` of port `{op.source}`",)
            if tile.swizzle != member.layout.swizzle
            else (f"set the layout of tile `{op.member}` to row-major, that of the box",),
            subject=subject,
        )


def _misplaced(found: tuple[Coordinate, int, int]) -> str:
    at, read, copied = found
    place = ", ".join(map(str, at))
    return f"element ({place}) is copied to byte {copied:,} and read at byte {read:,}"


def check_strides(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0606: row strides of a copied or stored tensor are multiples of 16 bytes."""
    domain = domain_of(index)
    used = {(instance, op.source) for instance, _, op in index.operations("copy", "store")}
    for instance, _, port in index.ports():
        if port.space != "global" or (port.tile is None and (instance, port.name) not in used):
            continue
        member = port.members[0]
        size = DTYPES[member.dtype][0]
        for mode in range(1, len(member.shape)):
            inner = member.shape[mode:]
            text = " * ".join(extent.text for extent in inner)
            stride = " * ".join(f"({extent})" for extent in inner) + f" * {size}"
            answer = always(f"{stride} % {GRAIN} == 0", domain)
            if answer.holds:
                continue
            example, wrong = "", f"{text} * {size} bytes: not decided"
            if answer.holds is False:
                value = value_of(stride, dict(answer.case))
                example, wrong = f", for example {value:,}", f"{value:,} bytes for one of them"
            symbols = sorted({name for extent in inner for name in names(extent)})
            need = GRAIN // math.gcd(GRAIN, size)
            yield report(
                "PL0606",
                f"row stride of `{instance}.{port.name}` may not be a multiple of {GRAIN} bytes",
                (port.where("shape"), f"a stride of {text} * {size} bytes{example}"),
                expected=f"multiples of {GRAIN} bytes for all shapes that the kernel accepts",
                found=wrong,
                at_run_time="the driver rejects the tensor map: launch failure"
                if port.tile
                else "the copy uses a misaligned address: trap",
                suggestions=(f"declare `symbols: {{{symbols[-1]}: {{multiple_of: {need}}}}}`",)
                if symbols
                else (f"use extents with rows of a multiple of {GRAIN} bytes",),
                subject=f"{instance}.{port.name}",
            )


def check_copy_coverage(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0607: the copies of an item fill exactly the bytes of its tiles.

    Tensor copies always transfer the same bytes, so what is expected of them is constant (PL0202).
    """
    protocol, program = index.protocol, index.program
    fields = {name: field.clip(2) for name, field in ranges(program).items()}
    stages = {channel.name: channel.minimum for channel in program.channels}
    try:
        composition, _ = compose(protocol, stages, [fields], alone=True)
    except TooManyOperations:  # reported by check_protocol
        return
    copied: dict[tuple[str, str, str], list[str]] = {}
    for action in composition.actions():
        copy = action.origin.operation
        if action.kind == Kind.COPY and action.item == 0 and copy is not None:
            key = (action.origin.instance, copy.target, copy.member)
            copied.setdefault(key, []).append(copy.source)
    for channel in program.channels:
        if channel.kind != RING:
            continue
        end = channel.producer
        yield from _constant_bytes(index, channel, fields, copied)
        for member in index.port(end).members:
            sources = copied.get((*end, member.name), [])
            tensors = [index.contracts[end[0]].port(source) for source in sources]
            yield from _tile_coverage(index, end, member, tensors)
    yield from _stores_cover(index, composition)


def _constant_bytes(
    index: ProgramIndex,
    channel: Channel,
    fields: dict[str, int],
    copied: dict[tuple[str, str, str], list[str]],
) -> Iterator[Diagnostic]:
    """Compare the bytes that tensor copies are expected to transfer with those for these fields."""
    port, connection = index.port(channel.producer), index.connection(channel)
    instance, name = channel.producer
    sources = [item for key in copied for item in copied[key] if key[:2] == (instance, name)]
    bulk = any(index.contracts[instance].port(source).tile is None for source in sources)
    if bulk or port.tx_bytes is None:
        return
    size = evaluate(port.tx_bytes, fields)
    answer = equal(port.tx_bytes, str(size), domain_of(index))
    if answer.holds:
        return
    yield report(
        "PL0202",
        f"`{qualified_name(channel.producer)}` expects another number of bytes in some work tiles, "
        f"but its copies transfer {size:,} in all",
        (port.where("tx_bytes"), f"expects {port.tx_bytes}"),
        connection.span,
        expected=f"{size:,} bytes per item",
        found=f"{_case(port.tx_bytes, answer)} per item",
        at_run_time="the byte count of the full barrier never reaches zero: "
        f"`{connection.consumer[0]}` hangs",
        suggestions=(f"set `tx_bytes: {size}`", "or remove `tx_bytes`: it is derived"),
        subject=connection.name,
    )


def _tile_coverage(
    index: ProgramIndex, end: tuple[str, str], member: Member, tensors: list[Port]
) -> Iterator[Diagnostic]:
    """Check that the copies of a tile fill it; a bulk copy does so alone."""
    tile, port, times = f"{qualified_name(end)}.{member.name}", index.port(end), len(tensors)
    if times > 1 and any(tensor.tile is None for tensor in tensors):
        copies = [
            op.span
            for instance, _, op in index.operations("copy")
            if (instance, op.target, op.member) == (*end, member.name)
        ]
        yield report(
            "PL0607",
            f"{times} copies fill tile `{tile}`, but a bulk copy fills it alone",
            *((span, "fills the tile") for span in copies),
            (member.span, f"{shape_of(member)} {member.dtype}"),
            (port.where("tx_bytes"), "expected from one bulk copy"),
            expected="one bulk copy per tile and item",
            found=f"{times} copies",
            at_run_time="more bytes arrive than the full barrier expects: the consumer hangs",
            suggestions=("remove all copies of the tile but one",),
            subject=tile,
        )
    boxes = [tensor.tile for tensor in tensors if tensor.tile is not None]
    if not boxes or len(boxes) < times:
        return
    warps, size = index.home(end[0], port.role).warps, member_bytes(member)
    filled = sum(box_bytes(tensor) for tensor in tensors) * warps
    if filled == size:
        return
    box, by = replace(member, shape=boxes[0].box), f", by each of {warps} warps"
    yield report(
        "PL0607",
        f"copies fill {filled:,} of the {size:,} bytes of tile `{tile}`"
        if filled < size
        else f"copies of {filled:,} bytes exceed the {size:,} bytes of tile `{tile}`",
        (
            boxes[0].span,
            f"{plural(times, 'box', 'es')} of {shape_of(box)}{by if warps > 1 else ''}",
        ),
        (member.span, f"{shape_of(member)} {member.dtype}: {size:,} bytes"),
        expected=f"{size:,} bytes per item",
        found=f"{filled:,} bytes per item",
        at_run_time="a part of the tile keeps data of an earlier item: always wrong results"
        if filled < size
        else "the copies overwrite the memory after the tile: wrong results",
        suggestions=(
            f"set `box` of port `{tensors[0].name}` to the shape of the tile: {shape_of(member)}",
        )
        if times == 1 and warps == 1
        else (f"change boxes, copies or warps so that together they fill {size:,} bytes",),
        subject=tile,
    )


def _stores_cover(index: ProgramIndex, composition: Composition) -> Iterator[Diagnostic]:
    """Check that a stage of a buffer holds what its warps store from it."""
    reported: set[tuple[str, str]] = set()
    for process in composition.processes:
        for action in process.period:
            origin = action.origin
            if action.kind != Kind.STORE or origin.operation is None or origin.end in reported:
                continue
            contract = index.contracts[origin.instance]
            buffer = next((item for item in contract.buffers if item.name == origin.name), None)
            tensor = contract.port(origin.operation.source)
            if buffer is None or tensor.tile is None:
                continue
            reported.add(origin.end)
            same = [a for a in process.period if a.target == action.target]
            writes = sum(a.kind == Kind.WRITE for a in same) or 1
            stores = sum(a.kind == Kind.STORE for a in same)
            warps = evaluate(contract.role(origin.role).warps, {})
            stage = evaluate(buffer.bytes, {}) // buffer.stages
            box = box_bytes(tensor)
            stored = box * warps * stores // writes
            if stored <= stage:
                continue
            yield report(
                "PL0607",
                f"stores read {stored:,} bytes from a stage of buffer "
                f"`{qualified_name(origin.end)}`, which has {stage:,}",
                (buffer.bytes.span or buffer.span, f"{buffer.stages} x {stage:,} bytes"),
                (tensor.tile.span, f"{plural(warps, 'warp')}, one box of {box:,} bytes each"),
                expected=f"{stored:,} bytes per stage",
                found=f"{stage:,} bytes per stage",
                at_run_time="the stores read the memory after the buffer: always wrong results",
                suggestions=(f"set `bytes` of buffer `{buffer.name}` to {stored * buffer.stages}",),
                subject=qualified_name(origin.end),
            )


def check_bulk_sizes(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0612: a bulk copy has a multiple of 16 bytes, and does not exceed its tile or tensor."""
    fields, domain = ranges(index.program), domain_of(index)
    for instance, op, tensor, ring in check_copied_tiles(index):
        if tensor.tile is not None or ring.tx_bytes is None:
            continue
        room = sum(member_bytes(member) for member in ring.members)
        found = _bulk_problem(ring.tx_bytes, fields, room, domain)
        found = found or _past_tensor(op, tensor, ring, domain)
        if found is None:
            continue
        problem, expected, size, fix = found
        yield report(
            "PL0612",
            f"bulk copies into `{instance}.{ring.name}` {problem}",
            (ring.where("tx_bytes"), size),
            (op.span, "copied here"),
            (ring.where("item"), f"{room:,} bytes per item"),
            expected=expected,
            found=size,
            at_run_time="the copy traps or overwrites the next stage"
            if "past" not in problem
            else "the copy reads the memory after the tensor: illegal address or wrong results",
            suggestions=fix,
            subject=f"{instance}.{ring.name}",
        )


BulkProblem = tuple[str, str, str, tuple[str, ...]]  # problem, expected, found, suggestions


def _bulk_problem(
    size: Expr, fields: dict[str, Range], room: int, domain: Domain
) -> BulkProblem | None:
    for name in sorted(names(size)):
        if fields[name].maximum is None:
            fix = (f"declare `max` of the work field `{name}`",)
            return f"have no size limit: `{name}` has no maximum", "a size limit", size.text, fix
    answer = always(f"({size}) % {GRAIN} == 0", domain)
    if not answer.holds:
        multiple = f"a multiple of {GRAIN} bytes"
        fix = (f"use extents with rows of a multiple of {GRAIN} bytes",)
        return f"may not be {multiple}", multiple, _case(size, answer), fix
    answer = always(f"({size}) <= {room}", domain)
    if answer.holds:
        return None
    fix = (f"declare a smaller `max` of the work fields in `{size}`",)
    if answer.holds is False:
        fix = (f"enlarge the tile to {value_of(size.text, dict(answer.case)):,} bytes",)
    return "can exceed the item", f"at most {room:,} bytes", _case(size, answer), fix


def _case(size: Expr, answer: Answer) -> str:
    """Return `2,056 bytes with rows=1`."""
    if answer.holds is None:
        return f"{size}: not decided"
    found = f"{value_of(size.text, dict(answer.case)):,} bytes"
    return f"{found} with {answer.text}" if answer.case else found


def _least(size: Expr, domain: Domain) -> int | None:
    """Return the least value of an expression; None where it cannot be decided."""
    answer = always(f"({size}) < 0", domain)
    value = None
    while answer.holds is False:
        value = value_of(size.text, dict(answer.case))
        answer = always(f"({size}) >= {value}", domain)
    return value if answer.holds else None


def _past_tensor(op: Operation, tensor: Port, ring: Port, domain: Domain) -> BulkProblem | None:
    """Return how the last of all blocks can exceed its tensor: its size is no multiple of them.

    Where a block starts is not in the contract.  If no copy is smaller than `least` bytes, blocks
    that start at multiples of it stay within the tensor only if its size is one, too.
    """
    assert ring.tx_bytes is not None
    least = _least(ring.tx_bytes, domain)
    if len(ring.members) > 1:
        room = sum(member_bytes(member) for member in ring.members)
        whole = least == room  # else the part of this copy is unknown
        least = (
            next(member_bytes(m) for m in ring.members if m.name == op.member) if whole else None
        )
    if not least or least < 0:
        return None
    shape, width = tensor.members[0].shape, DTYPES[tensor.members[0].dtype][0]
    size = Expr(" * ".join(f"({extent})" for extent in shape) + f" * {width}")
    answer = always(f"{size} % {least} == 0", domain)
    if answer.holds:
        return None
    found = f"blocks of {least:,} bytes or more, of a tensor of {_case(size, answer)}"
    row = math.prod(extent.literal or 0 for extent in shape[1:]) * width
    fix: tuple[str, ...] = (
        "let `tx_bytes` count only rows of the tensor: a work field that is less at its end",
    )
    if shape[0].text.isidentifier() and row and least % row == 0:
        multiple = f"symbols: {{{shape[0]}: {{multiple_of: {least // row}}}}}"
        fix = (*fix, f"or declare `{multiple}`")
    expected = f"blocks that divide tensor `{tensor.name}`, or a shorter last one"
    return f"can read past tensor `{tensor.name}`", expected, found, fix


CHECKS = (check_boxes, check_copy_bounds, check_strides, check_copy_coverage, check_bulk_sizes)
