"""Checks of work fields against the roles and CTAs that read them, and of shared tensors."""

from collections.abc import Iterator

from pipelink_rules.check.program_index import ProgramIndex, multiple, qualified_name
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import Contract, WorkField
from pipelink_rules.model.operation import repeats
from pipelink_rules.model.source_span import Span


def check_field_ranges(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1001: the tile scheduler assigns only values that every role allows."""
    scheduler = index.program.scheduler[0]
    contract = index.contracts[scheduler]
    given = {field.name: field for field in contract.work.fields} if contract.work else {}
    for instance, user in index.contracts.items():
        for field in user.work.fields if user.work and instance != scheduler else ():
            source = given.get(field.name)
            if source is None:
                continue
            if field.index_within and not _numbers_alike(source, field):
                yield _mismatch(
                    f"{instance}.{field.name}",
                    f"`{scheduler}` does not number tiles by `{field.name}` as `{instance}` "
                    f"requires",
                    (source.span, "declares", _numbering(source)),
                    (field.span, "requires", _numbering(field)),
                    "tiles that other roles wait for are missing or repeated: hang",
                    (f"set the same parameters in `{scheduler}` and `{instance}`",),
                )
            elif problem := _outside(contract, source, field):
                yield _mismatch(
                    f"{instance}.{field.name}",
                    f"`{scheduler}` can assign `{instance}` a value of `{field.name}` {problem}",
                    (source.span, "assigns", _given(contract, source)),
                    (field.span, "allows", _range(field)),
                    f"`{instance}` skips or repeats operations: hang",
                    (
                        f"declare this range of `{field.name}` in `{scheduler}`, if it keeps it",
                        f"or make `{instance}` accept every value",
                    ),
                )


def _mismatch(
    subject: str,
    message: str,
    given: tuple[Span | None, str, str],
    wanted: tuple[Span | None, str, str],
    run: str,
    suggestions: tuple[str, ...],
) -> Diagnostic:
    """Return PL1001; both ends are (span, verb, what it declares)."""
    span, verb, expected = wanted
    return report(
        "PL1001",
        message,
        (span, f"{verb} {expected}"),
        (given[0], f"{given[1]} {given[2]}"),
        expected=expected,
        found=given[2],
        at_run_time=run,
        suggestions=suggestions,
        subject=subject,
    )


def _numbers_alike(source: WorkField, field: WorkField) -> bool:
    counts = [evaluate(item.index_count or "0", {}) for item in (source, field)]
    return source.index_within == field.index_within and counts[0] == counts[1]


def _numbering(field: WorkField) -> str:
    if not field.index_within:
        return "no numbering"
    return f"{field.index_count} tiles per value of `{field.index_within}`"


def _range(field: WorkField) -> str:
    low, high = field.minimum.text, field.maximum.text if field.maximum else ""
    return f"{field.name} from {low} to {high}" if high else f"{field.name} of {low} or more"


def _given(contract: Contract, source: WorkField) -> str:
    if source.value is None:
        return _range(source)
    low = max(min(_values(contract, source)), source.minimum.literal or 0)
    return f"{source.name} = {source.value}, {low} or more"


def _outside(contract: Contract, source: WorkField, field: WorkField) -> str:
    """Return how a value of the tile scheduler can be out of range, or ""."""
    low, high = field.minimum.literal, field.maximum.literal if field.maximum else None
    least, most = source.minimum.literal, source.maximum.literal if source.maximum else None
    if low and (least is None or least < low):
        values = _values(contract, source)
        if not values or min(values) < low:
            return f"below {low}"
    if high is not None and (most is None or most > high):
        values = _values(contract, source)
        if not values or max(values) > high:
            return f"above {high}"
    return ""


def _values(contract: Contract, source: WorkField) -> list[int]:
    """Return the value for sizes of its symbols, from their minimum up; [] if it has none."""
    if source.value is None:
        return []
    symbols = {symbol.name: symbol for symbol in contract.symbols}
    found = []
    for step in (0, 1, 2, 3, 5, 8, 64, 4096, 2**20):
        env = {name: multiple(symbols[name], step) for name in names(source.value)}
        found.append(evaluate(source.value, env))
    return found


def check_tensor_order(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0507: a tensor that a port writes has no other use, because no order is known."""
    for keyword, ends in index.program.tensors:
        ports = [(end, index.port(end)) for end in ends]
        written = [(end, port) for end, port in ports if port.direction == "out"]
        if not written or len(ports) == 1:
            continue
        end, port = written[0]
        other, second = next(item for item in ports if item[0] != end)
        reads = second.direction == "in"
        verb = "reads" if reads else "writes"
        yield report(
            "PL0507",
            f"data race on tensor `{keyword}`: written by `{qualified_name(end)}` and "
            f"{'read' if reads else 'written'} by `{qualified_name(other)}` without an order",
            (index.program.spec.where("tensors", keyword), ""),
            (port.span, f"`{qualified_name(end)}` writes it"),
            (second.span, f"`{qualified_name(other)}` {verb} it"),
            expected="one port for a tensor that is written",
            found=f"{len(ports)} ports",
            at_run_time="the access can precede another CTA's write: intermittent wrong results"
            if reads
            else "the result depends on which CTA writes last: intermittent wrong results",
            suggestions=(f"bind `{qualified_name(other)}` to a separate keyword",),
            subject=keyword,
        )


def check_multicast_receivers(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0804: no count of operations depends on a field that varies inside a cluster."""
    program = index.program
    scheduler = program.scheduler[0]
    work = index.contracts[scheduler].work
    varying = {field.name: field for field in work.fields if field.along} if work else {}
    shared = [channel for channel in program.channels if channel.multicast]
    if not shared or not varying:
        return
    consumer = qualified_name(shared[0].consumers[0])
    for instance, name, span, what in _counts(index):
        field = varying.get(name)
        if field is None:
            continue
        axes = " and ".join(field.along)
        yield report(
            "PL0804",
            f"{what} of `{instance}` depends on `{name}`, which differs between CTAs of a cluster",
            (span, f"depends on `{name}`"),
            (field.span, f"`{scheduler}` assigns different values of `{name}` along {axes}"),
            (index.connection(shared[0]).span, "a multicast to all of them"),
            expected="a field with one value in all CTAs of a cluster",
            found=f"`{name}` varies along {axes}",
            at_run_time="a CTA receives copies of items that it does not consume: it or the "
            "others hang",
            suggestions=(
                f"perform the same number of operations for every value of `{name}`",
                f'or disable the multicast: transfers={{"{consumer}": "ring"}}',
            ),
            subject=f"{scheduler}.{name}",
        )


def _counts(index: ProgramIndex) -> Iterator[tuple[str, str, Span | None, str]]:
    """Yield (instance, field, span, what) for every field that decides a count of operations."""
    for instance, contract in index.contracts.items():
        for role in contract.roles:
            for repeat in repeats(role.body):
                for name in sorted(names(repeat.count)):
                    yield instance, name, repeat.span, "the count of a repeat"
        for port in contract.ports:
            for clause, expr in (("rate", port.rate), ("tx_bytes", port.tx_bytes)):
                for name in sorted(names(expr)) if expr else ():
                    yield instance, name, port.where(clause), f"`{clause}` of `{port.name}`"


CHECKS = (check_field_ranges, check_tensor_order, check_multicast_receivers)
