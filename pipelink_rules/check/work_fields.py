"""Checks of work fields against the roles and CTAs that read them, and of shared tensors."""

import re
from collections.abc import Iterator

from pipelink_rules.check.domain import domain_of, range_advice
from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.expression.normal_form import normal_form
from pipelink_rules.expression.parse import parse
from pipelink_rules.model.contract import WorkField
from pipelink_rules.model.operation import repeats
from pipelink_rules.model.source_span import Expr, Span
from pipelink_rules.solver.decide import Answer, Domain, always, lowest


def check_field_ranges(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1001: the tile scheduler assigns only values that every role allows."""
    scheduler = index.program.scheduler[0]
    contract, domain = index.contracts[scheduler], domain_of(index, allowed=False)
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
            elif found := _outside(source, field, domain):
                problem, answer = found
                verb = "assigns" if answer.holds is None else "can assign"
                yield _mismatch(
                    f"{instance}.{field.name}",
                    f"`{scheduler}` {verb} `{instance}` a value of `{field.name}` {problem}",
                    (source.span, "assigns", _given(source, domain)),
                    (field.span, "allows", _range(field)),
                    f"`{instance}` skips or repeats operations: hang",
                    (
                        range_advice(index, source, "this range"),
                        f"or make `{instance}` accept every value",
                    ),
                    _example(source, answer),
                )


def check_values(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1001: the value of a field is in the range that the tile scheduler declares for it."""
    scheduler = index.program.scheduler[0]
    work, domain = index.contracts[scheduler].work, domain_of(index, allowed=False)
    for field in work.fields if work else ():
        free = domain._replace(
            symbols=tuple(item for item in domain.symbols if item.name != field.name),
            conditions=tuple(item for item in domain.conditions if item[0] != field.name),
        )
        if field.value is not None and (found := _outside(field, field, free)):
            yield _mismatch(
                f"{scheduler}.{field.name}",
                f"the value of `{field.name}` in `{scheduler}` can be {found[0]}, out of its range",
                (None, "assigns", _given(field, free)),
                (field.span, "declares", _range(field)),
                f"`{scheduler}` assigns work tiles that roles skip or repeat: hang",
                (range_advice(index, field, "this range"),),
                _example(field, found[1]),
            )


def _example(source: WorkField, answer: Answer) -> tuple[str, ...]:
    return (f"for example with {answer.text}",) if source.value and answer.text else ()


def _mismatch(
    subject: str,
    message: str,
    given: tuple[Span | None, str, str],
    wanted: tuple[Span | None, str, str],
    run: str,
    suggestions: tuple[str, ...],
    notes: tuple[str, ...] = (),
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
        notes=notes,
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


def _given(source: WorkField, domain: Domain) -> str:
    if source.value is None:
        return _range(source)
    low = lowest(source.name, domain)
    return f"{source.name} = {source.value}" + ("" if low is None else f", {low} or more")


def _outside(source: WorkField, field: WorkField, domain: Domain) -> tuple[str, Answer] | None:
    """Return how a value of the tile scheduler can be out of the range of a field."""
    name, step = source.name, field.multiple_of
    for limit, condition, problem in (
        (field.minimum, f"{name} >= ({field.minimum})", f"below {field.minimum}"),
        (field.maximum, f"{name} <= ({field.maximum})", f"above {field.maximum}"),
        (step, f"{name} % ({step}) == 0", f"that is not a multiple of {step}"),
    ):
        if limit is not None and not (limit is step and _is_multiple(source, field)):
            answer = always(condition, domain)
            if not answer.holds:
                return f"{'perhaps ' if answer.holds is None else ''}{problem}", answer
    return None


def _is_multiple(source: WorkField, field: WorkField) -> bool:
    """Return whether the declared multiples say it: most do, without the solver."""
    given, wanted = (
        one.multiple_of.literal if one.multiple_of else None for one in (source, field)
    )
    return wanted == 1 or bool(given and wanted and given % wanted == 0)


def check_conditions(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1001: every work tile meets the conditions that roles declare for their work tiles."""
    scheduler = index.program.scheduler[0]
    work, domain = index.contracts[scheduler].work, domain_of(index, allowed=False)
    fields = {field.name for field in work.fields} if work else set()
    given = {condition.text for condition in work.where} if work else set()
    for instance, user in index.contracts.items():
        if user.work is None or instance == scheduler:
            continue
        defaults = [
            (field.name, field.default)
            for field in user.work.fields
            if field.default is not None and field.name not in fields
        ]
        known = domain._replace(values=(*domain.values, *defaults))
        for condition in user.work.where:
            if condition.text in given or _follows(condition, known):
                continue
            answer = always(condition, known)
            if answer.holds:
                continue
            verb = "assigns" if answer.holds is False else "can assign"
            yield _mismatch(
                f"{instance}: {condition.text}",
                f"`{scheduler}` {verb} work tiles without `{condition.text}`, which `{instance}` "
                f"declares",
                (work.span if work else None, "declares", "no such condition"),
                (condition.span or user.work.span, "declares", f"where: {condition.text}"),
                f"`{instance}` accesses memory outside of its tensors",
                (f"declare it in `where` of `work` of `{scheduler}`, if it keeps it",),
                (f"for example with {answer.text}",) if answer.text else (),
            )


def _follows(condition: Expr, domain: Domain) -> bool:
    """Return whether a part of `a or b <= c` holds because both sides are one polynomial."""
    text = condition.text
    for name, value in domain.values:
        text = re.sub(rf"\b{name}\b", f"({value.text})", text)
    for part in text.split(" or "):
        left, relation, right = part.partition(" <= ")
        if relation and normal_form(parse(left)) == normal_form(parse(right)) is not None:
            return True
    return False


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


CHECKS = (
    check_values,
    check_field_ranges,
    check_conditions,
    check_tensor_order,
    check_multicast_receivers,
)
