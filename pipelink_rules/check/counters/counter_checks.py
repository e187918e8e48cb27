"""Checks of counters and scratch memory between CTAs."""

import math
from collections.abc import Iterator

from pipelink_rules.check.counters.analyze_group import analyze
from pipelink_rules.check.counters.counter_groups import (
    TileNumbering,
    Undecidable,
    counter_group,
    defining_port,
    tile_numberings,
    users,
)
from pipelink_rules.check.counters.messages_counters import to_diagnostic, undecidable
from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import Contract, Operation, Port, Role, WorkField
from pipelink_rules.model.source_span import Expr

WIDE = ("gpu", "sys")  # scopes that reach every CTA of the grid
STEPS = (0, 1, 2, 3, 5, 8, 63, 64, 65, 4096, 2**17)  # multiples at which symbols are evaluated


def check_scopes(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0507: the scope of a counter covers the grid, since any CTA may process a tile."""
    for instance in index.program.instances:
        for port in instance.variant.contract.ports:
            if port.space != "counter" or port.scope in WIDE:
                continue
            end = (instance.name, port.name)
            verb = "signals" if port.direction == "out" else "waits"
            others = [
                (index.port(other).where("scope"), f"`{qualified_name(other)}` is the other end")
                for item in index.program.connections
                for other in (item.producer, item.consumer)
                if end in (item.producer, item.consumer) and other != end
            ]
            yield report(
                "PL0507",
                f"`{qualified_name(end)}` {verb} at scope {port.scope}, which excludes other CTAs",
                (port.where("scope"), f"{verb} at this scope"),
                *others,
                expected="`scope: gpu`",
                found=f"`scope: {port.scope}`",
                at_run_time="the signal can be visible before the data: intermittent wrong results",
                suggestions=("set `scope: gpu` on both ends",),
                subject=qualified_name(end),
            )


def check_signal_arrivals(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0201: a signal counts one arrival per warp of its role."""
    for instance, role, op, port in users(index):
        warps, counted = evaluate(role.warps, {}), evaluate(port.arrivals, {})
        if op.verb == "signal" and warps != counted:
            yield report(
                "PL0201",
                f"`{instance}.{port.name}` declares {plural(counted, 'arrival')} per signal, but "
                f"`{instance}.{role.name}` performs {warps}",
                (port.where("arrivals"), f"declares {plural(counted, 'arrival')} per signal"),
                (role.where("warps"), f"{plural(warps, 'warp')}, each arrives once"),
                expected=f"arrivals: {warps}",
                found=f"arrivals: {counted}",
                at_run_time="waiting warps resume before the data is written, or never resume",
                suggestions=(f"set `arrivals: {warps}` on port `{port.name}`",),
                subject=f"{instance}.{port.name}",
            )


def check_residency(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1003: a role that waits for other CTAs requires the whole grid to be resident."""
    for instance in index.program.instances:
        contract = instance.variant.contract
        waits = [
            op
            for name, _, op, _ in users(index)
            if name == instance.name and op.verb == "wait_until"
        ]
        if waits and contract.coresident != "grid":
            port = contract.port(waits[0].target)
            yield report(
                "PL1003",
                f"`{instance.name}` waits for other CTAs, but does not require the grid to be "
                f"resident",
                (waits[0].span, "waits for other CTAs"),
                (port.span, "counts their signals"),
                expected="coresident: grid",
                found="none",
                at_run_time="waiting CTAs keep others from starting: hang on a smaller or busy GPU",
                suggestions=(f"add `coresident: grid` to the contract of `{contract.component}`",),
                subject=instance.name,
            )


def check_indices(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1005: a counter is indexed by one field, which the tile scheduler numbers and bounds."""
    first: dict[str, tuple[str, Operation]] = {}
    numbered = tile_numberings(index)
    if math.prod(index.program.cluster) > 1:
        yield from _on_clusters(index)
        return
    for instance, role, op, port in users(index):
        target, field = defining_port(index, (instance, port.name)), op.index[0]
        other = first.setdefault(target, (field.text, op))
        if other[0] != field.text:
            yield _two_fields(target, other, field, op)
        elif field.text not in numbered:
            yield _not_numbered(index, f"{instance}.{role.name}", op, field)
        elif port.space == "counter" and port.direction == "out":
            problem = _beyond(index, instance, port, field.text)
            if problem:
                yield _out_of_range(index, instance, role, op, port, problem)


def _on_clusters(index: ProgramIndex) -> Iterator[Diagnostic]:
    """Report counters in clusters: CTAs share their tiles, so signals cannot be counted."""
    size = math.prod(index.program.cluster)
    for instance, role, op, _ in users(index):
        yield report(
            "PL1005",
            f"`{instance}.{role.name}` uses counters or scratch memory, but clusters have {size} "
            f"CTAs",
            (op.span, "used here"),
            (index.program.spec.where("cluster"), ""),
            expected="clusters of 1 CTA",
            found=f"clusters of {size} CTAs",
            suggestions=("remove `cluster=`",),
            subject=instance,
        )
        return


def _two_fields(
    target: str, other: tuple[str, Operation], field: Expr, op: Operation
) -> Diagnostic:
    return report(
        "PL1005",
        f"`{target}` is indexed by `{other[0]}` and by `{field}`",
        (op.span, f"by `{field}`"),
        (other[1].span, f"by `{other[0]}`"),
        expected="one field",
        found=f"{other[0]} and {field}",
        suggestions=(f"index all uses of `{target}` by `{other[0]}`",),
        subject=target,
    )


def _scheduler_field(index: ProgramIndex, name: str) -> WorkField | None:
    work = index.contracts[index.program.scheduler[0]].work
    return next((field for field in work.fields if field.name == name), None) if work else None


def _not_numbered(index: ProgramIndex, owner: str, op: Operation, field: Expr) -> Diagnostic:
    scheduler = index.program.scheduler[0]
    source = _scheduler_field(index, field.text)
    return report(
        "PL1005",
        f"`{scheduler}` does not declare how many tiles share a `{field}`",
        (op.span, f"`{owner}` indexes by it"),
        (source.span if source else None, f"assigned by `{scheduler}`"),
        expected=f"a field of `{scheduler}` with `index_within: {{field: {field}, of: ...}}`",
        found="none",
        suggestions=(
            f"number the tiles per value of `{field}` in `{scheduler}`: "
            f"`part: {{index_within: {{field: {field}, of: ...}}}}`",
        ),
        subject=f"{owner}: {field}",
    )


def _beyond(index: ProgramIndex, instance: str, port: Port, field: str) -> str:
    """Return why the index may not be below `count`, or ""."""
    source = _scheduler_field(index, field)
    if source is None or source.maximum is None:
        return f"`{field}` has no maximum"
    contract = index.contracts[instance]
    scheduler = index.contracts[index.program.scheduler[0]]
    count = port.count or Expr("0")
    for env in _sizes((contract, scheduler), names(source.maximum) | names(count)):
        most, size = evaluate(source.maximum, env), evaluate(count, env)
        if most >= size:
            case = ", ".join(f"{name}={value}" for name, value in sorted(env.items()))
            return f"`{field}` is up to {most}, but `count` is {size}" + (
                f" with {case}" if case else ""
            )
    return ""


def _sizes(contracts: tuple[Contract, ...], wanted: frozenset[str]) -> Iterator[dict[str, int]]:
    symbols = {symbol.name: symbol for contract in contracts for symbol in contract.symbols}
    for number in range(len(STEPS) ** min(len(wanted), 2)):
        env = {}
        for place, name in enumerate(sorted(wanted)):
            step = STEPS[number // len(STEPS) ** (place % 2) % len(STEPS)]
            symbol = symbols[name]
            low = -(-symbol.minimum // symbol.multiple_of) * symbol.multiple_of
            env[name] = min(low + step * symbol.multiple_of, symbol.maximum)
        yield env


def _out_of_range(
    index: ProgramIndex, instance: str, role: Role, op: Operation, port: Port, problem: str
) -> Diagnostic:
    field = op.index[0].text
    source = _scheduler_field(index, field)
    limit = source.maximum if source else None
    return report(
        "PL1005",
        f"`{instance}.{role.name}` can signal beyond the last counter of `{instance}.{port.name}`",
        (port.where("count"), "counters"),
        (limit.span if limit else source.span if source else None, problem),
        (op.span, "signals"),
        expected=f"`{field}` below {port.count}",
        found=problem,
        at_run_time="the signal changes the memory after the counters: wrong results",
        suggestions=(
            f"declare `max` of `{field}` in the tile scheduler",
            f"or a larger `count` on port `{port.name}`",
        ),
        subject=f"{instance}.{port.name}",
    )


def check_group_order(index: ProgramIndex) -> Iterator[Diagnostic]:
    """Report the problems of counter groups with counters and scratch memory."""
    numbered = tile_numberings(index)
    used = dict.fromkeys(op.index[0].text for _, _, op, _ in users(index))
    cleared = {
        f"{instance.name}.{port.name}"
        for instance in index.program.instances
        for port in instance.variant.contract.ports
        if port.init == "zero"
    }
    fields: dict[str, set[str]] = {}
    for instance, _, op, port in users(index):
        fields.setdefault(defining_port(index, (instance, port.name)), set()).add(op.index[0].text)
    if math.prod(index.program.cluster) > 1:
        return  # reported by check_indices
    mixed = any(len(names_) > 1 for names_ in fields.values())
    if mixed or next(check_signal_arrivals(index), None) is not None:
        return  # what a wait waits for is unknown
    for field in used:
        if field in numbered:
            yield from _of_group(index, numbered[field], cleared)


def _of_group(
    index: ProgramIndex, numbered: TileNumbering, cleared: set[str]
) -> Iterator[Diagnostic]:
    try:
        group = counter_group(index, numbered)
    except Undecidable as problem:
        name = problem.op.source if problem.op.verb in ("copy", "store") else problem.op.target
        yield undecidable(problem, defining_port(index, (problem.instance, name)))
        return
    for found in analyze(group, cleared):
        yield to_diagnostic(index, numbered, found)


CHECKS = (check_scopes, check_signal_arrivals, check_residency, check_indices, check_group_order)
