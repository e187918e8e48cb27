"""Do the copies of a work item bring exactly the bytes that rings and buffers hold?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pipelink_rules.check.layout import check_copied_tiles
from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.check.protocol.cases import Range, ranges
from pipelink_rules.check.protocol.compose import compose
from pipelink_rules.check.protocol.model import COPY, STORE, WRITE, Composition
from pipelink_rules.check.protocol.protocol_index import TooManyOperations
from pipelink_rules.check.registry import Check
from pipelink_rules.check.tensor_maps import GRAIN, SAMPLES, box_bytes
from pipelink_rules.check.types import shape_of
from pipelink_rules.check.wording import count, labels
from pipelink_rules.contract.item_layout import member_bytes
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import Member, Port
from pipelink_rules.model.operation import operations
from pipelink_rules.model.program import RING
from pipelink_rules.model.source_span import Expr


def check_copy_coverage(resolved: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0607: the copies of an item bring exactly the bytes of its tiles."""
    blueprint, program = resolved.blueprint, resolved.program
    fields = {name: field.clip(2) for name, field in ranges(program).items()}
    stages = {channel.name: channel.minimum for channel in program.channels}
    try:
        composition, _ = compose(blueprint, stages, [fields], alone=True)
    except TooManyOperations:  # told by the protocol
        return
    copied: dict[tuple[str, str, str], list[str]] = {}
    for process in composition.processes:
        for action in process.period:
            if action.kind == COPY and action.item == 0:
                tile = action.origin.text.split(".")[-1]
                key = (action.origin.instance, action.origin.name, tile)
                copied.setdefault(key, []).append(action.origin.text.split()[1])
    for channel in program.channels:
        if channel.kind != RING:
            continue
        instance, name = channel.producer
        port = resolved.port(channel.producer)
        warps = resolved.home(instance, port.role).warps
        for member in port.members:
            sources = copied.get((instance, name, member.name), [])
            tensors = [resolved.contracts[instance].port(source) for source in sources]
            bulk = [tensor for tensor in tensors if tensor.tile is None]
            if len(tensors) > 1 and bulk:
                yield _twice(resolved, channel.producer, member, len(tensors))
            if not tensors or bulk:
                continue
            brought = sum(box_bytes(tensor) for tensor in tensors) * warps
            if brought != member_bytes(member):
                yield _coverage(
                    resolved, channel.producer, member, tensors[0], brought, len(tensors)
                )
    yield from _stores_cover(resolved, composition)


def _twice(resolved: ProgramIndex, end: tuple[str, str], member: Member, times: int) -> Diagnostic:
    port = resolved.port(end)
    copies = [
        op
        for op in operations(resolved.role_of(end).body)
        if (op.verb, op.target, op.member) == ("copy", end[1], member.name)
    ]
    return Diagnostic(
        "PL0607",
        f"tile `{qualified_name(end)}.{member.name}` is filled by {times} copies, "
        "one of them a bulk copy",
        labels(
            *((op.span, "fills the tile") for op in copies),
            (member.span, f"{shape_of(member)} {member.dtype}"),
            (port.where("tx_bytes"), "announced for one bulk copy"),
        ),
        expected="one bulk copy per tile and item: it brings what is announced",
        found=f"{times} copies",
        at_run_time="more bytes than announced arrive: the consumer waits for ever",
        helps=("leave one copy",),
        subject=f"{qualified_name(end)}.{member.name}",
    )


def _coverage(
    resolved: ProgramIndex,
    end: tuple[str, str],
    member: Member,
    tensor: Port,
    brought: int,
    times: int,
) -> Diagnostic:
    size = member_bytes(member)
    assert tensor.tile is not None
    box = shape_of(replace(member, shape=tensor.tile.box))
    warps = resolved.home(end[0], tensor.role).warps
    by = f", by each of {warps} warps" if warps > 1 else ""
    return Diagnostic(
        "PL0607",
        f"copies bring {brought} bytes of tile `{qualified_name(end)}.{member.name}`, "
        f"which has {size}",
        labels(
            (
                tensor.tile.span,
                f"{count(times, 'box')[:-1] + 'es' if times > 1 else '1 box'} of {box}{by}",
            ),
            (member.span, f"{shape_of(member)} {member.dtype}: {size} bytes"),
        ),
        expected=f"{size} bytes per item",
        found=f"{brought} bytes",
        at_run_time="a part of the tile keeps what an earlier item left there"
        if brought < size
        else "the copies overwrite what lies behind the tile",
        helps=(f"set `box` of port `{tensor.name}` to the shape of the tile: {shape_of(member)}",)
        if times == 1 and warps == 1
        else ("make boxes, copies and warps multiply to the tile",),
        subject=f"{qualified_name(end)}.{member.name}",
    )


def _stores_cover(resolved: ProgramIndex, composition: Composition) -> Iterator[Diagnostic]:
    """A stage of a buffer holds what its warps store from it."""
    told: set[tuple[str, str]] = set()
    for process in composition.processes:
        for action in process.period:
            origin = action.origin
            buffers = (
                {b.name: b for b in resolved.contracts[origin.instance].buffers}
                if origin.instance
                else {}
            )
            if action.kind != STORE or origin.name not in buffers:
                continue
            key = (origin.instance, origin.name)
            tensor = resolved.contracts[origin.instance].port(origin.text.split()[-1])
            if key in told or tensor.tile is None:
                continue
            told.add(key)
            same = [a for a in process.period if a.target == action.target]
            writes = sum(a.kind == WRITE for a in same) or 1
            stores = sum(a.kind == STORE for a in same)
            buffer = buffers[origin.name]
            warps = evaluate(resolved.contracts[origin.instance].role(origin.role).warps, {})
            stage = evaluate(buffer.bytes, {}) // buffer.stages
            stored = box_bytes(tensor) * warps * stores // writes
            if stored > stage:
                yield Diagnostic(
                    "PL0607",
                    f"a stage of buffer `{origin.instance}.{buffer.name}` has {stage} bytes, "
                    f"{stored} are stored from it",
                    labels(
                        (buffer.bytes.span or buffer.span, f"{buffer.stages} x {stage} bytes"),
                        (
                            tensor.tile.span,
                            f"{count(warps, 'warp')}, one box of {box_bytes(tensor)} bytes each",
                        ),
                    ),
                    expected=f"{stored} bytes a stage",
                    found=f"{stage} bytes",
                    at_run_time="the copies read and store what lies behind the buffer",
                    helps=(f"set `bytes` of buffer `{buffer.name}` to {stored * buffer.stages}",),
                    subject=f"{origin.instance}.{buffer.name}",
                )


def check_bulk_sizes(resolved: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0612: a bulk copy has a multiple of 16 bytes and stays within its tile."""
    fields = ranges(resolved.program)
    for instance, op, tensor, ring in check_copied_tiles(resolved):
        if tensor.tile is not None or ring.tx_bytes is None:
            continue
        room = sum(member_bytes(member) for member in ring.members)
        found = _bulk_problem(ring.tx_bytes, fields, room)
        if found is None:
            continue
        problem, expected, said, fix = found
        yield Diagnostic(
            "PL0612",
            f"bulk copies into `{instance}.{ring.name}` {problem}",
            labels(
                (ring.where("tx_bytes"), said),
                (op.span, "copies that many bytes"),
                (ring.where("item"), f"{room} bytes an item"),
            ),
            expected=expected,
            found=said,
            at_run_time="the copy traps, or writes into the next stage",
            helps=(fix,),
            subject=f"{instance}.{ring.name}",
        )


def _bulk_problem(
    size: Expr, fields: dict[str, Range], room: int
) -> tuple[str, str, str, str] | None:
    used = sorted(names(size))
    for name in used:
        if fields[name].maximum is None:
            fix = f"declare `max` of the work field `{name}`"
            return (
                f"have no largest size: `{name}` has no maximum",
                "a largest size",
                size.text,
                fix,
            )
    for step in range(SAMPLES):
        env = {}
        for name in used:
            low, high = fields[name].minimum, fields[name].maximum or 0
            env[name] = min(low + step, high) if step < SAMPLES - 1 else high
        value = evaluate(size, env)
        case = ", ".join(f"{name}={env[name]}" for name in used)
        said = f"{value} bytes" + (f" with {case}" if case else "")
        if value % GRAIN:
            fix = "choose extents with rows of a multiple of 16 bytes"
            return (
                f"need not be multiples of {GRAIN} bytes",
                f"a multiple of {GRAIN} bytes",
                said,
                fix,
            )
        if value > room:
            fix = "make the tile as large as the largest copy"
            return "can exceed the item", f"at most {room} bytes", said, fix
    return None


RULES = (Check(("PL0607",), check_copy_coverage), Check(("PL0612",), check_bulk_sizes))
