"""Do the copies of the program fit the hardware that makes them and the memory they fill?

Limits: CUDA driver API, cuTensorMapEncodeTiled (boxes, strides); PTX ISA, cp.async.bulk (sizes and
addresses are multiples of 16 bytes).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pipelink_rules.check.layout import check_copied_tiles, describe, difference
from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.registry import Check
from pipelink_rules.check.wording import labels
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import DTYPES, Layout, Member, Operation, Port
from pipelink_rules.model.operation import operations
from pipelink_rules.model.source_span import Expr

GRAIN = 16  # bytes: sizes, addresses and strides of bulk and tensor copies
SAMPLES = 64  # values of a work field or symbol that are tried


def box_bytes(port: Port) -> int:
    """Bytes of one box of a global port."""
    assert port.tile is not None
    extents = [evaluate(extent, {}) for extent in port.tile.box]
    return math.prod(extents) * DTYPES[port.members[0].dtype][0]


def check_boxes(resolved: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0605: the inner row of a box is a multiple of 16 bytes."""
    for instance in resolved.program.instances:
        for port in instance.variant.contract.ports:
            if port.tile is None:
                continue
            size = DTYPES[port.members[0].dtype][0]
            inner = evaluate(port.tile.box[-1], {}) * size
            if inner % GRAIN:
                yield Diagnostic(
                    "PL0605",
                    f"rows of the box of `{instance.name}.{port.name}` have {inner} bytes, "
                    f"which is no multiple of {GRAIN}",
                    labels((port.tile.box[-1].span or port.tile.span, f"{inner} bytes")),
                    expected=f"a multiple of {GRAIN} bytes",
                    found=f"{inner} bytes",
                    at_run_time="the driver refuses to encode the tensor map",
                    helps=(f"choose a multiple of {GRAIN // size} elements",),
                    subject=f"{instance.name}.{port.name}",
                )


def check_copy_bounds(resolved: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0602, PL0601: a copy moves bytes as they are, in the layout of its box."""
    told: set[tuple[str, str, str]] = set()
    for instance, op, tensor, ring in check_copied_tiles(resolved):
        member = next(member for member in ring.members if member.name == op.member)
        subject = f"{instance}.{op.target}.{op.member}"
        given = tensor.members[0]
        if (instance, op.target, op.member) in told:
            continue
        told.add((instance, op.target, op.member))
        if given.dtype != member.dtype:
            yield Diagnostic(
                "PL0602",
                f"`{op.verb} {op.source} -> {op.target}.{op.member}` copies {given.dtype} "
                f"into a tile of {member.dtype}",
                labels(
                    (given.span, f"`{op.source}` is {given.dtype}"),
                    (member.span, f"the tile is {member.dtype}"),
                    (op.span, "copies move bytes as they are"),
                ),
                expected=member.dtype,
                found=given.dtype,
                at_run_time="bits of one type would be read as another",
                helps=("give both one dtype",),
                subject=subject,
            )
        elif tensor.tile is None:
            plain = Member("", member.dtype, member.shape)
            found = difference(member, plain)
            if found:
                yield _bulk_layout(op, tensor, member, found, subject)
        else:
            box = Member("", member.dtype, tensor.tile.box, Layout((), tensor.tile.swizzle))
            whole = [evaluate(e, {}) for e in box.shape] == [evaluate(e, {}) for e in member.shape]
            found = difference(member, box) if whole else None
            if found or (not whole and tensor.tile.swizzle != member.layout.swizzle):
                yield _box_layout(op, tensor, member, box, found, subject)


def _box_layout(
    op: Operation,
    tensor: Port,
    member: Member,
    box: Member,
    found: tuple[tuple[int, ...], int, int] | None,
    subject: str,
) -> Diagnostic:
    assert tensor.tile is not None
    at = ""
    if found:
        place = ", ".join(map(str, found[0]))
        at = f": element ({place}) is copied to byte {found[2]}, read at byte {found[1]}"
    return Diagnostic(
        "PL0601",
        f"`copy {op.source} -> {op.target}.{op.member}` fills the tile in another layout{at}",
        labels(
            (tensor.tile.span, f"copies {describe(box)}"),
            (member.layout.span or member.span, f"the tile is {describe(member)}"),
        ),
        expected=describe(member),
        found=describe(box),
        at_run_time="the consumer reads other elements than it means: wrong results, every time",
        helps=(f"set `swizzle: {member.layout.swizzle}` in `tile` of port `{op.source}`",)
        if tensor.tile.swizzle != member.layout.swizzle
        else ("give the tile the layout of the box: row-major",),
        subject=subject,
    )


def _bulk_layout(
    op: Operation,
    tensor: Port,
    member: Member,
    found: tuple[tuple[int, ...], int, int],
    subject: str,
) -> Diagnostic:
    place = ", ".join(map(str, found[0]))
    return Diagnostic(
        "PL0601",
        f"bulk `copy {op.source} -> {op.target}.{op.member}` fills the tile in another layout: "
        f"element ({place}) is copied to byte {found[2]}, read at byte {found[1]}",
        labels(
            (member.layout.span or member.span, f"the tile is {describe(member)}"),
            (tensor.span, "without `tile`: bytes are copied as they lie in global memory"),
            (op.span, ""),
        ),
        expected="a tile in the order of the tensor: row-major, without a swizzle",
        found=describe(member),
        at_run_time="the consumer reads other elements than it means: wrong results, every time",
        helps=(
            f"give port `{op.source}` a `tile` with the swizzle of the tile: a tensor copy",
            "or leave the swizzle out on both ends",
        ),
        subject=subject,
    )


def check_strides(resolved: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0606: rows of a tensor that is copied or stored start at multiples of 16 bytes."""
    multiples = symbol_multiples(resolved)
    for instance in resolved.program.instances:
        contract = instance.variant.contract
        used = {
            op.source: op
            for role in contract.roles
            for op in operations(role.body)
            if op.verb in ("copy", "store")
        }
        for port in contract.ports:
            if port.space != "global" or (port.tile is None and port.name not in used):
                continue
            member = port.members[0]
            size = DTYPES[member.dtype][0]
            for mode in range(1, len(member.shape)):
                inner = member.shape[mode:]
                wrong = _no_multiple(inner, size, multiples, contract.requires)
                if wrong is None:
                    continue
                text = " * ".join(extent.text for extent in inner)
                symbols = sorted({name for extent in inner for name in names(extent)})
                yield _stride(instance.name, port, text, wrong, size, symbols)
                break


def symbol_multiples(resolved: ProgramIndex) -> dict[str, int]:
    """What every symbol is a multiple of: all components of the program together."""
    found: dict[str, int] = {}
    for contract in resolved.contracts.values():
        for symbol in contract.symbols:
            found[symbol.name] = math.lcm(found.get(symbol.name, 1), symbol.multiple_of)
    return found


def _no_multiple(
    extents: tuple[Expr, ...], size: int, multiples: dict[str, int], requires: tuple[Expr, ...]
) -> int | None:
    """Bytes of a stride that is no multiple of 16 for some allowed symbols."""
    wanted = sorted({name for extent in extents for name in names(extent)})
    for step in range(1, SAMPLES):
        env = {name: multiples.get(name, 1) * (step + place) for place, name in enumerate(wanted)}
        if all(_holds(condition, env) for condition in requires):
            stride = math.prod(evaluate(extent, env) for extent in extents) * size
            if stride % GRAIN:
                return stride
    return None


def _holds(condition: Expr, env: dict[str, int]) -> bool:
    """Whether a precondition allows these values; one about other symbols allows all."""
    return not names(condition) <= set(env) or bool(evaluate(condition, env))


def _stride(
    instance: str, port: Port, text: str, wrong: int, size: int, symbols: list[str]
) -> Diagnostic:
    need = GRAIN // math.gcd(GRAIN, size)
    return Diagnostic(
        "PL0606",
        f"rows of `{instance}.{port.name}` need not start at multiples of {GRAIN} bytes",
        labels((port.where("shape"), f"stride {text} * {size} bytes, e.g. {wrong}")),
        expected=f"{text} * {size} a multiple of {GRAIN} for every shape the kernel accepts",
        found=f"{wrong} bytes is possible",
        at_run_time="the driver refuses the tensor map, or the copy traps"
        if port.tile
        else "the copy traps: misaligned address",
        helps=(f"declare `symbols: {{{symbols[-1]}: {{multiple_of: {need}}}}}`",)
        if symbols
        else (f"choose extents with rows of a multiple of {GRAIN} bytes",),
        subject=f"{instance}.{port.name}",
    )


RULES = (
    Check(("PL0605",), check_boxes),
    Check(("PL0601", "PL0602"), check_copy_bounds),
    Check(("PL0606",), check_strides),
)
