"""Checks of work-field values against the roles that read them, and of shared tensors."""

from collections.abc import Iterator

from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import Contract, WorkField

SAMPLES = 32


def check_field_ranges(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1001: the tile scheduler assigns only values that every role allows."""
    scheduler = index.program.scheduler[0]
    contract = index.contracts[scheduler]
    given = {field.name: field for field in contract.work.fields} if contract.work else {}
    for instance in index.program.instances:
        work = instance.variant.contract.work
        if instance.name == scheduler or work is None:
            continue
        for field in work.fields:
            source = given.get(field.name)
            if source and field.index_within and not _numbers_alike(source, field):
                yield _numbered_otherwise(scheduler, instance.name, source, field)
                continue
            problem = _outside(contract, source, field) if source else ""
            if source and problem:
                yield report(
                    "PL1001",
                    f"`{scheduler}` can assign `{instance.name}` a value of `{field.name}` "
                    f"{problem}",
                    (field.span, f"allows {_range(field)}"),
                    (source.span, f"assigns {_given(contract, source)}"),
                    expected=_range(field),
                    found=_given(contract, source),
                    at_run_time=f"`{instance.name}` skips or repeats operations: hang",
                    suggestions=(
                        f"declare this range of `{field.name}` in `{scheduler}`, if it keeps it",
                        f"or make `{instance.name}` accept every value",
                    ),
                    subject=f"{instance.name}.{field.name}",
                )


def _numbers_alike(source: WorkField, field: WorkField) -> bool:
    same = source.index_within == field.index_within
    return same and evaluate(source.index_count or "0", {}) == evaluate(
        field.index_count or "0", {}
    )


def _numbering(field: WorkField) -> str:
    return (
        f"{field.index_count} tiles per value of `{field.index_within}`"
        if field.index_within
        else "no numbering"
    )


def _numbered_otherwise(
    scheduler: str, instance: str, source: WorkField, field: WorkField
) -> Diagnostic:
    return report(
        "PL1001",
        f"`{scheduler}` does not number tiles by `{field.name}` as `{instance}` requires",
        (field.span, f"requires {_numbering(field)}"),
        (source.span, f"declares {_numbering(source)}"),
        expected=_numbering(field),
        found=_numbering(source),
        at_run_time="tiles that other roles wait for are missing or repeated: hang",
        suggestions=(f"set the same parameters in `{scheduler}` and `{instance}`",),
        subject=f"{instance}.{field.name}",
    )


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
    if low and not _at_least(contract, source, low):
        return f"below {low}"
    if high is not None and not _at_most(contract, source, high):
        return f"above {high}"
    return ""


def _at_least(contract: Contract, source: WorkField, low: int) -> bool:
    declared = source.minimum.literal
    if declared is not None and declared >= low:
        return True
    return source.value is not None and min(_values(contract, source)) >= low


def _at_most(contract: Contract, source: WorkField, high: int) -> bool:
    declared = source.maximum.literal if source.maximum else None
    if declared is not None and declared <= high:
        return True
    return source.value is not None and max(_values(contract, source)) <= high


def _values(contract: Contract, source: WorkField) -> list[int]:
    """Return the value for sizes of its symbols, from their minimum up."""
    assert source.value is not None
    symbols = {symbol.name: symbol for symbol in contract.symbols}
    found = []
    for step in (0, 1, 2, 3, 5, 8, 64, 4096, 2**20):
        env = {}
        for name in names(source.value):
            symbol = symbols[name]
            first = -(-symbol.minimum // symbol.multiple_of) * symbol.multiple_of
            env[name] = min(first + step * symbol.multiple_of, symbol.maximum)
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


CHECKS = (check_field_ranges, check_tensor_order)
