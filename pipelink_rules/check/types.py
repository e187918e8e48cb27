"""Checks that both ends of a connection agree: tiles, fragments, rates and numerical contracts."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Unpack

from pipelink_rules.check.domain import domain_of
from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.contract.codegen_flags import FLAG_DEFAULTS
from pipelink_rules.diagnostics.diagnostic import Details, Diagnostic, report
from pipelink_rules.diagnostics.wording import list_of, plural, similar_name_help
from pipelink_rules.expression.evaluate import value_of
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import RINGS, Member, Port
from pipelink_rules.model.program import HANDOVER, Connection, Instance
from pipelink_rules.model.source_span import Expr, Span
from pipelink_rules.solver.decide import Answer, Domain, equal

_PROXY = {"read": "generic", "write": "generic", "copy": "async", "mma": "async", "store": "async"}


def shape_of(member: Member) -> str:
    """Return `128 x 64`."""
    return " x ".join(extent.text for extent in member.shape)


def same_shape(a: Member, b: Member, domain: Domain) -> Answer:
    """Decide whether the extents are equal for all values of the symbols."""
    if len(a.shape) != len(b.shape):
        return Answer(False)
    answers = [equal(x, y, domain) for x, y in zip(a.shape, b.shape, strict=True)]
    return next((answer for answer in answers if not answer.holds), Answer(True))


def _mismatch(
    code: str,
    connection: Connection,
    message: str,
    read: tuple[Span | None, str],
    written: tuple[Span | None, str],
    **details: Unpack[Details],
) -> Diagnostic:
    """Build the diagnostic of two ends that disagree; what is written is what is expected."""
    return report(code, message, read, written, connection.span, subject=connection.name, **details)


def check_tiles(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0610, PL0602, PL0609: both ends declare the same tiles of an item, or fragment."""
    domain = domain_of(index)
    for connection, source, sink in index.connected_ports():
        written = {member.name: member for member in source.members}
        read = {member.name: member for member in sink.members}
        if list(written) != list(read):
            yield _names(connection, source, sink)
            continue
        pairs = [(written[name], read[name]) for name in written]
        for a, b in pairs:
            if a.dtype == b.dtype:
                continue
            yield _mismatch(
                "PL0602",
                connection,
                f"dtype mismatch on `{connection.name}`: {_tile(a)}written as {a.dtype} and "
                f"read as {b.dtype}",
                (b.span, f"reads {b.dtype}"),
                (a.span, f"writes {a.dtype}"),
                expected=a.dtype,
                found=b.dtype,
                at_run_time="bits of one type are read as another: always wrong results",
                suggestions=(
                    f"set the dtype of the consumer to {a.dtype}",
                    "or insert a component that converts",
                ),
            )
        for a, b in pairs:
            answer = same_shape(a, b, domain)
            if answer.holds:
                continue
            problem = "shape mismatch" if answer.holds is False else "undecided shapes"
            yield _mismatch(
                "PL0609",
                connection,
                f"{problem} on `{connection.name}`: {_tile(a)}written as {shape_of(a)} and "
                f"read as {shape_of(b)}",
                (b.span, f"reads {shape_of(b)}"),
                (a.span, f"writes {shape_of(a)}"),
                expected=shape_of(a),
                found=shape_of(b),
                at_run_time="the consumer reads beyond what was written, or leaves a part unread",
                notes=(f"for example with {answer.text}",) if answer.text else (),
                suggestions=("set the same tile parameters in both instances",)
                if answer.holds is False
                else ("write both shapes alike",),
            )


def _names(connection: Connection, source: Port, sink: Port) -> Diagnostic:
    names = [member.name for member in source.members]
    written, read = (", ".join(member.name for member in port.members) for port in (source, sink))
    missing = [member.name for member in sink.members if member.name not in names]
    suggestions = similar_name_help(missing[0], names, "its tiles") if missing else ()
    return _mismatch(
        "PL0610",
        connection,
        f"tile mismatch on `{connection.name}`: items are written as ({written}), read as ({read})",
        (sink.where("item"), f"reads {read}"),
        (source.where("item"), f"writes {written}"),
        expected=written,
        found=read,
        at_run_time="each end computes other offsets of tiles in a stage: always wrong results",
        suggestions=suggestions or (f"declare the tiles {written} in this order on both ends",),
    )


def _tile(member: Member) -> str:
    return f"tile `{member.name}` is " if member.name else ""


def check_fragments(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0608, PL0611: fragments match the threads of both ends."""
    for connection, source, sink in index.connected_ports():
        if source.space != "registers":
            continue
        if source.fragment != sink.fragment:
            yield _mismatch(
                "PL0608",
                connection,
                f"fragment mismatch on `{connection.name}`: written as {source.fragment} and read "
                f"as {sink.fragment}",
                (sink.where("fragment"), f"reads {sink.fragment}"),
                (source.where("fragment"), f"writes {source.fragment}"),
                expected=source.fragment,
                found=sink.fragment,
                at_run_time="threads read elements that other threads hold: always wrong results",
                suggestions=("insert a component that converts between the two fragments",),
            )
        allowed = 0 if connection.transfer == HANDOVER else sink.pending
        if source.pending > allowed:
            reader = "a handover" if connection.transfer == HANDOVER else "the reader"
            yield _mismatch(
                "PL0611",
                connection,
                f"`{qualified_name(connection.producer)}` hands over accumulators with "
                f"{plural(source.pending, 'wgmma group')} pending, but {reader} allows {allowed}",
                (sink.where("pending"), f"allows {sink.pending}"),
                (source.where("pending"), f"{source.pending} pending"),
                expected=f"at most {plural(allowed, 'pending group')}",
                found=plural(source.pending, "pending group"),
                at_run_time="registers are read before wgmma writes them: wrong results",
                suggestions=(f"add `await mma {allowed}` to the producer before `write`",),
            )
    for instance, _, port in index.ports():
        yield from _fragment_rows(index, instance, port)


def _fragment_rows(index: ProgramIndex, instance: str, port: Port) -> Iterator[Diagnostic]:
    """Check the 64 rows per warpgroup of a wgmma fragment, and the shape of `in_place`."""
    if port.fragment != "wgmma_m64":
        return
    member = port.members[0]
    rows = evaluate(member.shape[0], {})
    role = index.role_of((instance, port.name))
    warps = evaluate(role.warps, {})
    if rows * 4 != warps * 64:
        yield report(
            "PL0608",
            f"`{instance}.{port.name}` has {rows} rows, but its role has {plural(warps, 'warp')}",
            (port.where("shape"), f"{rows} rows: {rows // 64} warpgroups of 64"),
            (role.where("warps"), f"{plural(warps, 'warp')}"),
            expected=f"{warps * 16} rows (64 per 4 warps)",
            found=f"{rows} rows",
            at_run_time="rows are missing or uninitialized: always wrong results",
            suggestions=(f"set `warps` of role `{role.name}` to {rows // 16}",),
            subject=f"{instance}.{port.name}",
        )
    other = index.contracts[instance].port(port.in_place) if port.in_place else port
    if not same_shape(other.members[0], member, domain_of(index)).holds:
        shape = shape_of(other.members[0])
        yield report(
            "PL0608",
            f"`{instance}.{port.name}` reuses the registers of `{port.in_place}`, but has another "
            f"shape",
            (port.where("shape"), shape_of(member)),
            (other.where("shape"), shape),
            expected=shape,
            found=shape_of(member),
            at_run_time="the reader uses registers that hold no elements: always wrong results",
            suggestions=(f"set the shape of `{port.name}` to {shape}", "or remove `in_place`"),
            subject=f"{instance}.{port.name}",
        )


def check_rates(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1002: both ends declare the same number of items per work tile, for every work tile."""
    domain = domain_of(index)
    for connection, source, sink in index.connected_ports():
        answer = equal(source.rate, sink.rate, domain)
        if source.space in RINGS and not answer.holds:
            spans = sink.where("rate"), source.where("rate")
            yield rate_problem(index, connection, (source.rate, sink.rate), spans, answer)


def rate_problem(
    index: ProgramIndex,
    connection: Connection,
    counts: tuple[Expr, Expr],
    spans: tuple[Span | None, Span | None],
    answer: Answer,
) -> Diagnostic:
    """PL1002 of counts that are unequal, or not known to be equal (produced, consumed)."""
    if answer.holds is None:
        return _mismatch(
            "PL1002",
            connection,
            f"cannot decide whether `{qualified_name(connection.producer)}` and "
            f"`{qualified_name(connection.consumer)}` move equally many items",
            (spans[0], f"consumes {counts[1]}"),
            (spans[1], f"produces {counts[0]}"),
            expected=f"{_items(counts[0])} per work tile",
            found=f"{_items(counts[1])} per work tile",
            at_run_time="one of the two roles may hang",
            suggestions=("write both counts alike",),
        )
    found = unequal_rates(index, connection, *counts, spans)
    if not answer.text:
        return found
    made, taken = (value_of(item.text, dict(answer.case)) for item in counts)
    note = f"for example with {answer.text}: {plural(made, 'item')} produced, {taken} consumed"
    return replace(found, notes=(note,), at_run_time=_hang(connection, made, taken))


def unequal_rates(
    index: ProgramIndex,
    connection: Connection,
    produced: Expr,
    consumed: Expr,
    spans: tuple[Span | None, Span | None],
    notes: tuple[str, ...] = (),
) -> Diagnostic:
    """PL1002 with the rates of both ends, and the spans where the consumer's and producer's are."""
    sink = index.port(connection.consumer)
    producer, consumer = connection.producer[0], connection.consumer[0]
    run = "one of the two roles hangs"
    if produced.literal is not None and consumed.literal is not None:
        run = _hang(connection, produced.literal, consumed.literal)
    return _mismatch(
        "PL1002",
        connection,
        f"`{qualified_name(connection.producer)}` produces {_items(produced)} per work tile, but "
        f"`{qualified_name(connection.consumer)}` consumes {consumed}",
        (spans[0], f"consumes {consumed}"),
        (spans[1], f"produces {produced}"),
        expected=f"{_items(produced)} per work tile",
        found=f"{_items(consumed)} per work tile",
        at_run_time=run,
        notes=notes,
        suggestions=(
            f"let role `{sink.role}` of `{consumer}` wait for `{sink.name}` as often as "
            f"`{producer}` acquires it",
        ),
    )


def _hang(connection: Connection, produced: int, consumed: int) -> str:
    if consumed < produced:
        return f"`{connection.producer[0]}` hangs once the ring is full"
    return f"`{connection.consumer[0]}` hangs waiting for an item that is never produced"


def _items(rate: Expr) -> str:
    return plural(rate.literal, "item") if rate.literal is not None else f"{rate} items"


def check_scalars(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0613: a launcher keyword has one type."""
    for keyword, ends in index.program.scalars:
        (first, other), *ports = [(qualified_name(end), index.port(end)) for end in ends]
        for name, port in ports:
            if port.type == other.type:
                continue
            yield report(
                "PL0613",
                f"scalar `{keyword}` is bound to `{first}` as {other.type} and `{name}` as "
                f"{port.type}",
                (port.where("type"), f"`{name}` reads {port.type}"),
                (other.where("type"), f"`{first}` reads {other.type}"),
                (index.program.spec.where("scalars", keyword), ""),
                expected=other.type,
                found=port.type,
                at_run_time="bits of one type are read as another: always wrong results",
                suggestions=("bind each port to a separate keyword",),
                subject=keyword,
            )


def check_proxies(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0614: `proxy` of a ring port is the proxy that its operations use."""
    for instance, role, op in index.operations(*_PROXY):
        ports = {port.name: port for port in index.contracts[instance].ports}
        port, proxy = ports.get(op.target), _PROXY[op.verb]
        if port and port.space == "ring" and port.role == role.name and port.proxy != proxy:
            yield report(
                "PL0614",
                f"port `{instance}.{port.name}` is declared `proxy: {port.proxy}`, but "
                f"`{op.verb}` uses the {proxy} proxy",
                (port.where("proxy"), f"declared {port.proxy}"),
                (op.span, f"uses {proxy}"),
                expected=f"proxy: {proxy}",
                found=f"proxy: {port.proxy}",
                at_run_time="the fence is required at the wrong end of the ring: data race",
                suggestions=(f"set `proxy: {proxy}` on port `{port.name}`",),
                subject=f"{instance}.{port.name}",
            )


def check_numerical_contracts(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1102: both ends of registers and tensor memory accumulate alike and treat NaN alike."""
    for connection, port, _ in index.connected_ports():
        if port.space not in ("registers", "tensor_memory"):
            continue
        source = index.contracts[connection.producer[0]].numeric
        sink = index.contracts[connection.consumer[0]].numeric
        for clause in ("accumulate", "nan"):
            given, taken = getattr(source, clause), getattr(sink, clause)
            if not (source.span and sink.span and given and taken) or given == taken:
                continue
            yield report(
                "PL1102",
                f"`{connection.name}` connects `{clause}: {given}` to `{clause}: {taken}`",
                (sink.span, f"{clause}: {taken}"),
                (source.span, f"{clause}: {given}"),
                (connection.span, ""),
                expected=f"{clause}: {given}",
                found=f"{clause}: {taken}",
                at_run_time="the result has only the guarantees that both components declare",
                suggestions=(f"connect components that both declare `{clause}: {given}`",),
                subject=connection.name,
            )


def check_flags(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1208: all objects of a link use the same values of flags that change results."""
    instances = index.program.instances
    for flag, default in FLAG_DEFAULTS.items():
        on: dict[bool, list[Instance]] = {True: [], False: []}
        for instance in instances:
            chosen = dict(item.split("=", 1) for item in instance.variant.flags if "=" in item)
            value = chosen.get(flag)
            on[default if value is None else value == "true"].append(instance)
        if not on[True] or not on[False]:
            continue
        fewer, more = sorted((on[True], on[False]), key=len)
        value, other = ("true", "false") if fewer is on[True] else ("false", "true")
        names = list_of(item.name for item in fewer)
        yield report(
            "PL1208",
            f"{names} compiled with {flag}={value}, but other components with {flag}={other}",
            *((item.span, f"{item.label}: {flag}={value}") for item in fewer),
            (more[0].span, f"{more[0].label}: {flag}={other}"),
            expected=f"one value of {flag} in the whole megakernel",
            found=f"{flag}={value} in {len(fewer)} of {len(instances)} components",
            at_run_time="nvlink rejects the mix; nvJitLink uses the value of its first input",
            suggestions=(f"set the same `{flag}` in `copts` of all components",),
            subject=flag,
        )


CHECKS = (
    check_tiles,
    check_fragments,
    check_rates,
    check_scalars,
    check_proxies,
    check_numerical_contracts,
    check_flags,
)
