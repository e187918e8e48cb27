"""Checks of counters and scratch memory between CTAs."""

import math
from collections.abc import Iterator

from pipelink_rules.check.counters.analyze_group import analyze
from pipelink_rules.check.counters.counter_groups import (
    Undecidable,
    counter_group,
    defining_port,
    tile_numberings,
    users,
)
from pipelink_rules.check.counters.messages_counters import to_diagnostic, undecidable
from pipelink_rules.check.counters.same_tile import same_tile_problems
from pipelink_rules.check.domain import domain_of
from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Operation, Port, Role, WorkField
from pipelink_rules.model.source_span import Expr
from pipelink_rules.solver.decide import always

WIDE = ("gpu", "sys")  # scopes that reach every CTA of the grid


def check_scopes(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0507: the scope of a counter covers the grid, since any CTA may process a tile."""
    for instance, _, port in index.ports():
        if port.space != "counter" or port.scope in WIDE:
            continue
        end = (instance, port.name)
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
            declares = f"declares {plural(counted, 'arrival')} per signal"
            yield report(
                "PL0201",
                f"`{instance}.{port.name}` {declares}, but `{instance}.{role.name}` performs "
                f"{warps}",
                (port.where("arrivals"), declares),
                (role.where("warps"), f"{plural(warps, 'warp')}, each arrives once"),
                expected=f"arrivals: {warps}",
                found=f"arrivals: {counted}",
                at_run_time="waiting warps resume before the data is written, or never resume",
                suggestions=(f"set `arrivals: {warps}` on port `{port.name}`",),
                subject=f"{instance}.{port.name}",
            )


def check_residency(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1003: a role that waits for other CTAs requires the whole grid to be resident."""
    for instance, _, op, port in users(index):
        contract = index.contracts[instance]
        if op.verb == "wait_until" and contract.coresident != "grid":
            yield report(
                "PL1003",
                f"`{instance}` waits for other CTAs, but does not require the grid to be resident",
                (op.span, "waits for other CTAs"),
                (port.span, "counts their signals"),
                expected="coresident: grid",
                found="none",
                at_run_time="waiting CTAs keep others from starting: hang on a smaller or busy GPU",
                suggestions=(f"add `coresident: grid` to the contract of `{contract.component}`",),
                subject=instance,
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
        other, earlier = first.setdefault(target, (field.text, op))
        if other != field.text:
            yield report(
                "PL1005",
                f"`{target}` is indexed by `{other}` and by `{field}`",
                (op.span, f"by `{field}`"),
                (earlier.span, f"by `{other}`"),
                expected="one field",
                found=f"{other} and {field}",
                suggestions=(f"index all uses of `{target}` by `{other}`",),
                subject=target,
            )
        elif field.text not in numbered:
            yield _not_numbered(index, f"{instance}.{role.name}", op, field)
        elif port.space == "counter" and port.direction == "out":
            yield from _out_of_range(index, instance, role, op, port)


def _on_clusters(index: ProgramIndex) -> Iterator[Diagnostic]:
    """Report counters in clusters: CTAs share their tiles, so signals cannot be counted."""
    size = math.prod(index.program.cluster)
    for instance, role, op, _ in users(index):
        yield report(
            "PL1005",
            f"`{instance}.{role.name}` uses counters or scratch memory, but clusters have {size} "
            f"CTAs",
            (op.span, "used here"),
            index.program.spec.where("cluster"),
            expected="clusters of 1 CTA",
            found=f"clusters of {size} CTAs",
            suggestions=("remove `cluster=`",),
            subject=instance,
        )
        return


def _scheduler_field(index: ProgramIndex, name: str) -> WorkField | None:
    work = index.contracts[index.program.scheduler[0]].work
    return next((field for field in work.fields if field.name == name), None) if work else None


def _not_numbered(index: ProgramIndex, owner: str, op: Operation, field: Expr) -> Diagnostic:
    scheduler = index.program.scheduler[0]
    source = _scheduler_field(index, field.text)
    clause = f"index_within: {{field: {field}, of: ...}}"
    return report(
        "PL1005",
        f"`{scheduler}` does not declare how many tiles share a `{field}`",
        (op.span, f"`{owner}` indexes by it"),
        (source.span if source else None, f"assigned by `{scheduler}`"),
        expected=f"a field of `{scheduler}` with `{clause}`",
        found="none",
        suggestions=(
            f"number the tiles per value of `{field}` in `{scheduler}`: `part: {{{clause}}}`",
        ),
        subject=f"{owner}: {field}",
    )


def _out_of_range(
    index: ProgramIndex, instance: str, role: Role, op: Operation, port: Port
) -> Iterator[Diagnostic]:
    """Report a signal whose index may not be below `count`."""
    field = op.index[0].text
    source = _scheduler_field(index, field)
    limit = source.maximum if source else None
    problem = _beyond(index, port, field, limit)
    if problem:
        yield report(
            "PL1005",
            f"`{instance}.{role.name}` can signal beyond the last counter of "
            f"`{instance}.{port.name}`",
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


def _beyond(index: ProgramIndex, port: Port, field: str, limit: Expr | None) -> str:
    """Return why the index may not be below `count`, or ""."""
    if limit is None:
        return f"`{field}` has no maximum"
    count = port.count or Expr("0")
    answer = always(f"({limit}) < ({count})", domain_of(index))
    if answer.holds:
        return ""
    if answer.holds is None:
        return f"`{field}` is up to {limit}, and `count` is {count}: not decided"
    most, size = (evaluate(expr, dict(answer.case)) for expr in (limit, count))
    suffix = f" with {answer.text}" if answer.case else ""
    return f"`{field}` is up to {most}, but `count` is {size}{suffix}"


def check_group_order(index: ProgramIndex) -> Iterator[Diagnostic]:
    """Report the problems of counter groups with counters and scratch memory."""
    numbered = tile_numberings(index)
    cleared = {
        f"{instance}.{port.name}" for instance, _, port in index.ports() if port.init == "zero"
    }
    fields: dict[str, set[str]] = {}
    for instance, _, op, port in users(index):
        fields.setdefault(defining_port(index, (instance, port.name)), set()).add(op.index[0].text)
    if math.prod(index.program.cluster) > 1:
        return  # reported by check_indices
    mixed = any(len(group) > 1 for group in fields.values())
    if mixed or any(check_signal_arrivals(index)):
        return  # what a wait waits for is unknown
    for field in dict.fromkeys(op.index[0].text for _, _, op, _ in users(index)):
        if field not in numbered:
            continue
        try:
            group = counter_group(index, numbered[field])
        except Undecidable as problem:
            yield undecidable(index, problem)
        else:
            same_tile = same_tile_problems(index, numbered[field], group)
            for found in (*analyze(group, cleared), *same_tile):
                yield to_diagnostic(index, numbered[field], found)


CHECKS = (check_scopes, check_signal_arrivals, check_residency, check_indices, check_group_order)
