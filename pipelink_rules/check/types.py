"""Do both ends of a connection mean the same data?  Tiles, dtypes, shapes, fragments, rates."""

from __future__ import annotations

from collections.abc import Iterator

from pipelink_rules.check.program_index import Check, ProgramIndex, qualified_name
from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels
from pipelink_rules.diagnostics.wording import plural, similar_name_help
from pipelink_rules.expression.expression import equal, evaluate
from pipelink_rules.model.contract import Member, Port
from pipelink_rules.model.operation import operations
from pipelink_rules.model.program import HANDOVER, Connection

_PROXY = {
    "read": "generic",
    "write": "generic",
    "copy": "async",
    "mma": "async",
    "store": "async",
}


def shape_of(member: Member) -> str:
    """`128 x 64`."""
    return " x ".join(extent.text for extent in member.shape)


def same_shape(a: Member, b: Member) -> bool:
    """Equal extents, for every value of the symbols."""
    return len(a.shape) == len(b.shape) and all(
        equal(x, y) for x, y in zip(a.shape, b.shape, strict=True)
    )


def check_tiles(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0610, PL0602, PL0609: the tiles of an item, or the fragment, are the same on both ends."""
    for connection in index.program.connections:
        source, sink = index.port(connection.producer), index.port(connection.consumer)
        given = {member.name: member for member in source.members}
        taken = {member.name: member for member in sink.members}
        if list(given) != list(taken):
            yield _names(connection, source, sink, list(given), list(taken))
            continue
        pairs = [(given[name], taken[name]) for name in given]
        dtypes = [(a, b) for a, b in pairs if a.dtype != b.dtype]
        if dtypes:
            yield _dtype(connection, *dtypes[0])
        shapes = [(a, b) for a, b in pairs if not same_shape(a, b)]
        if shapes:
            yield _shape(connection, *shapes[0])


def _names(
    connection: Connection, source: Port, sink: Port, given: list[str], taken: list[str]
) -> Diagnostic:
    missing = [name for name in taken if name not in given]
    suggestions = similar_name_help(missing[0], given, "its tiles") if missing else ()
    if not suggestions:
        suggestions = (f"declare the tiles {', '.join(given)} in this order on both ends",)
    return Diagnostic(
        "PL0610",
        f"the items of `{connection.name}` have other tiles on each end",
        labels(
            (sink.where("item"), f"takes {', '.join(taken)}"),
            (source.where("item"), f"gives {', '.join(given)}"),
            (connection.span, ""),
        ),
        expected=", ".join(given),
        found=", ".join(taken),
        at_run_time="tiles lie in a stage in the order of the contract: each end finds another one",
        suggestions=suggestions,
        subject=connection.name,
    )


def _dtype(connection: Connection, given: Member, taken: Member) -> Diagnostic:
    tile = f" for tile `{given.name}`" if given.name else ""
    return Diagnostic(
        "PL0602",
        f"`{connection.name}` gives {given.dtype}, but {taken.dtype} is taken{tile}",
        labels(
            (taken.span, f"takes {taken.dtype}"),
            (given.span, f"gives {given.dtype}"),
            (connection.span, ""),
        ),
        expected=given.dtype,
        found=taken.dtype,
        at_run_time="bits of one type would be read as another",
        suggestions=(
            "bind both components to one dtype, or put a component that converts between them",
        ),
        subject=connection.name,
    )


def _shape(connection: Connection, given: Member, taken: Member) -> Diagnostic:
    tile = f"tile `{given.name}` of " if given.name else ""
    return Diagnostic(
        "PL0609",
        f"{tile}`{connection.name}` is {shape_of(given)} on one end, "
        f"{shape_of(taken)} on the other",
        labels(
            (taken.span, f"takes {shape_of(taken)}"),
            (given.span, f"gives {shape_of(given)}"),
            (connection.span, ""),
        ),
        expected=shape_of(given),
        found=shape_of(taken),
        at_run_time="one end reads beyond what the other wrote",
        suggestions=("give both instances the same tile parameters",),
        subject=connection.name,
    )


def check_fragments(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0608, PL0611: what passes in registers fits the threads of both ends."""
    for connection in index.program.connections:
        source, sink = index.port(connection.producer), index.port(connection.consumer)
        if source.space != "registers":
            continue
        if source.fragment != sink.fragment:
            yield Diagnostic(
                "PL0608",
                f"`{connection.name}` joins fragments {source.fragment} and {sink.fragment}",
                labels(
                    (sink.where("fragment"), f"takes {sink.fragment}"),
                    (source.where("fragment"), f"gives {source.fragment}"),
                    (connection.span, ""),
                ),
                expected=source.fragment,
                found=sink.fragment,
                at_run_time="threads would take each other's elements for their own",
                suggestions=(
                    "put a component between them that takes the one and gives the other",
                ),
                subject=connection.name,
            )
        allowed = 0 if connection.transfer == HANDOVER else sink.pending
        if source.pending > allowed:
            reason = "a hand-over stores them" if connection.transfer == HANDOVER else "the reader"
            yield Diagnostic(
                "PL0611",
                f"`{qualified_name(connection.producer)}` passes accumulators on with "
                f"{plural(source.pending, 'wgmma group')} in flight, {reason} allows {allowed}",
                labels(
                    (source.where("pending"), f"{source.pending} in flight"),
                    (sink.where("pending"), f"allows {sink.pending}"),
                    (connection.span, ""),
                ),
                expected=f"at most {allowed}",
                found=str(source.pending),
                at_run_time="registers are read before the result is in them: wrong results",
                suggestions=("let the producer await its groups before it passes the fragment on",),
                subject=connection.name,
            )
    for instance in index.program.instances:
        for port in instance.variant.contract.ports:
            yield from _fragment_rows(index, instance.name, port)


def _fragment_rows(index: ProgramIndex, instance: str, port: Port) -> Iterator[Diagnostic]:
    """A wgmma fragment has 64 rows per warpgroup of its role; `in_place` keeps the shape."""
    if port.fragment != "wgmma_m64":
        return
    member = port.members[0]
    rows = evaluate(member.shape[0], {})
    role = index.role_of((instance, port.name))
    warps = evaluate(role.warps, {})
    if rows * 4 != warps * 64:
        yield Diagnostic(
            "PL0608",
            f"`{instance}.{port.name}` has {rows} rows, its role has {plural(warps, 'warp')}",
            labels(
                (port.where("shape"), f"{rows} rows: {rows // 64} warpgroups of 64"),
                (role.where("warps"), f"{plural(warps, 'warp')}"),
            ),
            expected=f"{warps * 16} rows: 64 for every 4 warps",
            found=f"{rows} rows",
            at_run_time="warps would own rows that nobody computes, or leave rows out",
            suggestions=(f"set `warps` of role `{role.name}` to {rows // 16}",),
            subject=f"{instance}.{port.name}",
        )
    if port.in_place:
        other = index.contracts[instance].port(port.in_place)
        if not same_shape(other.members[0], member):
            yield Diagnostic(
                "PL0608",
                f"`{instance}.{port.name}` stays in the registers of `{port.in_place}`, "
                "but has another shape",
                labels(
                    (port.where("shape"), shape_of(member)),
                    (other.where("shape"), shape_of(other.members[0])),
                ),
                expected=shape_of(other.members[0]),
                found=shape_of(member),
                at_run_time="the reader would take registers for columns that do not exist",
                suggestions=("give both ports one shape, or leave `in_place` out",),
                subject=f"{instance}.{port.name}",
            )


def check_rates(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1002: both ends move as many items per work item, whatever the work item."""
    for connection in index.program.connections:
        source, sink = index.port(connection.producer), index.port(connection.consumer)
        if source.space not in ("ring", "tensor_memory") or equal(source.rate, sink.rate):
            continue
        yield Diagnostic(
            "PL1002",
            f"`{qualified_name(connection.producer)}` makes {source.rate} items per work item, "
            f"`{qualified_name(connection.consumer)}` takes {sink.rate}",
            labels(
                (sink.where("rate"), f"takes {sink.rate}"),
                (source.where("rate"), f"makes {source.rate}"),
                (connection.span, ""),
            ),
            expected=str(source.rate),
            found=str(sink.rate),
            at_run_time="one of the two waits for ever",
            suggestions=(
                "join ports of one rate, or put a component between them that changes it",
            ),
            subject=connection.name,
        )


def check_scalars(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0613: one launcher keyword has one type."""
    for keyword, ends in index.program.scalars:
        ports = [(qualified_name(end), index.port(end)) for end in ends]
        for name, port in ports[1:]:
            first, other = ports[0]
            if port.type == other.type:
                continue
            yield Diagnostic(
                "PL0613",
                f"scalar `{keyword}` is {other.type} for `{first}` and {port.type} for `{name}`",
                labels(
                    (port.where("type"), f"`{name}` takes {port.type}"),
                    (other.where("type"), f"`{first}` takes {other.type}"),
                    (index.program.spec.where("scalars", keyword), ""),
                ),
                expected=other.type,
                found=port.type,
                at_run_time="the bits of one type would be read as the other",
                suggestions=("give each port a keyword of its own",),
                subject=keyword,
            )


def check_proxies(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0614: `proxy` of a ring port is the proxy that its operations use."""
    for instance in index.program.instances:
        contract = instance.variant.contract
        for port in contract.ports:
            if port.space != "ring":
                continue
            for op in operations(contract.role(port.role).body):
                proxy = _PROXY.get(op.verb) if op.target == port.name else None
                if proxy is None or proxy == port.proxy:
                    continue
                yield Diagnostic(
                    "PL0614",
                    f"port `{instance.name}.{port.name}` says proxy {port.proxy}, "
                    f"but `{op.verb}` uses the {proxy} proxy",
                    labels(
                        (port.where("proxy"), f"says {port.proxy}"),
                        (op.span, f"uses {proxy}"),
                    ),
                    expected=f"proxy: {proxy}",
                    found=f"proxy: {port.proxy}",
                    at_run_time="fences would be asked for on the wrong side",
                    suggestions=(f"set `proxy: {proxy}` of port `{port.name}`",),
                    subject=f"{instance.name}.{port.name}",
                )
                break


CHECKS = (
    Check(("PL0602", "PL0609", "PL0610"), check_tiles),
    Check(("PL0608", "PL0611"), check_fragments),
    Check(("PL1002",), check_rates),
    Check(("PL0613",), check_scalars),
    Check(("PL0614",), check_proxies),
)
