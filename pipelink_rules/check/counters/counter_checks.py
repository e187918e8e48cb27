"""The rules about counters and scratch memory between CTAs."""

from __future__ import annotations

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
from pipelink_rules.check.program_index import Check, ProgramIndex, qualified_name
from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels
from pipelink_rules.expression.expression import evaluate, names
from pipelink_rules.model.contract import Contract, Operation, Port, Role, WorkField
from pipelink_rules.model.source_span import Expr

WIDE = ("gpu", "sys")  # scopes that reach every CTA of the grid
STEPS = (0, 1, 2, 3, 5, 8, 63, 64, 65, 4096, 2**17)  # multiples that symbols are tried at


def check_scopes(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0507: items run on any CTA of the grid, so both ends have to reach all of them."""
    for instance in index.program.instances:
        for port in instance.variant.contract.ports:
            if port.space != "counter" or port.scope in WIDE:
                continue
            end = (instance.name, port.name)
            verb = "signals" if port.direction == "out" else "waits"
            others = [
                (index.port(other).where("scope"), f"`{qualified_name(other)}`: the other end")
                for item in index.program.connections
                for other in (item.producer, item.consumer)
                if end in (item.producer, item.consumer) and other != end
            ]
            yield Diagnostic(
                "PL0507",
                f"`{qualified_name(end)}` {verb} at scope {port.scope}, "
                "which other CTAs do not see",
                labels((port.where("scope"), f"{verb} at this scope"), *others),
                expected="scope gpu: the least that two CTAs of one grid have in common",
                found=f"scope {port.scope}",
                at_run_time="the counter is seen, the data before it are not: wrong results, "
                "at times",
                suggestions=("set `scope: gpu` at both ends",),
                subject=qualified_name(end),
            )


def check_signal_arrivals(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0201: every warp of the role that signals arrives once."""
    for instance, role, op, port in users(index):
        warps, counted = evaluate(role.warps, {}), evaluate(port.arrivals, {})
        if op.verb == "signal" and warps != counted:
            yield Diagnostic(
                "PL0201",
                f"a signal of `{instance}.{port.name}` counts {counted}, "
                f"and `{instance}.{role.name}` arrives {warps} times",
                labels(
                    (port.where("arrivals"), f"{counted} a signal"),
                    (role.where("warps"), f"{warps} warps, each arrives once"),
                ),
                expected=f"arrivals: {warps}",
                found=f"arrivals: {counted}",
                at_run_time="who waits goes on too early, or never",
                suggestions=(f"set `arrivals` of `{port.name}` to the warps of `{role.name}`",),
                subject=f"{instance}.{port.name}",
            )


def check_residency(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1003: who waits for other CTAs needs all of them on the device at once."""
    for instance in index.program.instances:
        contract = instance.variant.contract
        waits = [
            op
            for name, _, op, _ in users(index)
            if name == instance.name and op.verb == "wait_until"
        ]
        if waits and contract.coresident != "grid":
            port = contract.port(waits[0].target)
            yield Diagnostic(
                "PL1003",
                f"`{instance.name}` waits for other CTAs and does not ask that they are resident",
                labels((waits[0].span, "waits for other CTAs"), (port.span, "counts theirs")),
                expected="coresident: grid",
                found="no such clause",
                at_run_time="CTAs that wait keep those that they wait for from being started: "
                "the kernel hangs on a smaller or a busy GPU",
                suggestions=(f"add `coresident: grid` to the contract of `{contract.component}`",),
                subject=instance.name,
            )


def check_indices(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1005: one field indexes a counter; the schedule numbers and bounds it."""
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
    """Items of clusters are shared by CTAs: how often they signal is another question."""
    size = math.prod(index.program.cluster)
    for instance, role, op, _ in users(index):
        yield Diagnostic(
            "PL1005",
            f"`{instance}.{role.name}` uses counters or scratch memory in clusters of {size} CTAs",
            labels((op.span, "for instance here"), (index.program.spec.where("cluster"), "")),
            expected="one CTA a work item",
            found=f"{size}",
            suggestions=("leave `cluster=` out",),
            subject=instance,
        )
        return


def _two_fields(
    target: str, other: tuple[str, Operation], field: Expr, op: Operation
) -> Diagnostic:
    return Diagnostic(
        "PL1005",
        f"`{target}` is indexed by `{other[0]}` and by `{field}`",
        labels((op.span, "this one"), (other[1].span, "and that one")),
        expected=f"one field for all uses of `{target}`",
        found=f"{other[0]} and {field}",
        suggestions=("index both ends by the same field of the work item",),
        subject=target,
    )


def _schedule_field(index: ProgramIndex, name: str) -> WorkField | None:
    work = index.contracts[index.program.scheduler[0]].work
    return next((field for field in work.fields if field.name == name), None) if work else None


def _not_numbered(index: ProgramIndex, owner: str, op: Operation, field: Expr) -> Diagnostic:
    scheduler = index.program.scheduler[0]
    source = _schedule_field(index, field.text)
    return Diagnostic(
        "PL1005",
        f"`{scheduler}` does not say how many items have one `{field}`",
        labels(
            (op.span, f"`{owner}` counts by it"),
            (source.span if source else None, f"given by `{scheduler}`"),
        ),
        expected=f"a field of `{scheduler}` with `index_within: {{field: {field}, of: ...}}`",
        found="no such field",
        suggestions=(
            f"let `{scheduler}` number the items of one {field}: "
            f"`part: {{index_within: {{field: {field}, of: ...}}}}`",
        ),
        subject=f"{owner}: {field}",
    )


def _beyond(index: ProgramIndex, instance: str, port: Port, field: str) -> str:
    """Why the index need not lie below `count`, or ""."""
    source = _schedule_field(index, field)
    if source is None or source.maximum is None:
        return f"`{field}` has no maximum"
    contract = index.contracts[instance]
    scheduler = index.contracts[index.program.scheduler[0]]
    count = port.count or Expr("0")
    for env in _sizes((contract, scheduler), names(source.maximum) | names(count)):
        most, size = evaluate(source.maximum, env), evaluate(count, env)
        if most >= size:
            case = ", ".join(f"{name}={value}" for name, value in sorted(env.items()))
            return f"{field} is up to {most}, of {size}" + (f" with {case}" if case else "")
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
    source = _schedule_field(index, field)
    limit = source.maximum if source else None
    return Diagnostic(
        "PL1005",
        f"`{instance}.{role.name}` may signal a counter that `{instance}.{port.name}` has not",
        labels(
            (port.where("count"), "counters"),
            (limit.span if limit else source.span if source else None, problem),
            (op.span, "signals"),
        ),
        expected=f"a {field} below {port.count}",
        found=problem,
        at_run_time="memory behind the counters is changed",
        suggestions=(f"declare `max` of `{field}` in the schedule, or a larger `count`",),
        subject=f"{instance}.{port.name}",
    )


def check_group_order(index: ProgramIndex) -> Iterator[Diagnostic]:
    """What the groups of work items get wrong at their counters and scratch memory."""
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
        return  # told already
    mixed = any(len(names_) > 1 for names_ in fields.values())
    if mixed or next(check_signal_arrivals(index), None) is not None:
        return  # what a wait is for is not known
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


CHECKS = (
    Check(("PL0507",), check_scopes),
    Check(("PL0201",), check_signal_arrivals),
    Check(("PL1003",), check_residency),
    Check(("PL1005",), check_indices),
    Check(
        ("PL0401", "PL0403", "PL0502", "PL0505", "PL0507", "PL0508", "PL1005"), check_group_order
    ),
)
