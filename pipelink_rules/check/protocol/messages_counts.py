"""Findings about numbers: arrivals, bytes, threads, items."""

from __future__ import annotations

from pipelink_rules.check.program_index import End, ProgramIndex, qualified_name
from pipelink_rules.check.protocol.analyze import Found
from pipelink_rules.check.protocol.message_parts import memory_of, notes_of, subject_of
from pipelink_rules.check.protocol.model import ARRIVALS, Kind
from pipelink_rules.check.protocol.process_builder import WARP
from pipelink_rules.check.protocol.protocol_problems import (
    ItemNotAcquired,
    UnequalBarrierUse,
    UnequalRates,
    UnwrittenRead,
    WrongArrivals,
    WrongBytes,
    WrongThreads,
)
from pipelink_rules.contract.item_layout import member_bytes
from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Role
from pipelink_rules.model.operation import operations


def wrong_arrivals(index: ProgramIndex, case: Found[WrongArrivals]) -> Diagnostic:
    """PL0201: a phase gets more or fewer arrivals than its barrier counts."""
    problem = case.problem
    channel = index.protocol.channel_of[problem.target]
    full = problem.target.endswith(".full")
    made = _per_end(case, 1 if full else len(channel.reach(0)))
    ends = [channel.producer] if full else list(channel.consumers)
    guilty = next(
        (end for end in ends if made.get(end, 0) != _promised(index, channel.kind, end)), ends[0]
    )
    found, promised = made.get(guilty, 0), _promised(index, channel.kind, guilty)
    connection = index.connection(channel, guilty)
    port, role = index.port(guilty), index.role_of(guilty)
    warps = index.home(guilty[0], port.role).warps
    side = "full" if full else "empty"
    origin = next(
        (
            action.origin
            for process in case.composition.processes
            for action in process.period
            if action.kind in ARRIVALS and action.origin.end == guilty
        ),
        None,
    )
    other = channel.consumers[0] if full else channel.producer
    which = f"item {problem.item} of {problem.items}" if problem.items > 1 else "an item"
    if found < promised:
        wait = index.port(other).role
        run = f"{side} never completes that phase: role `{wait}` of `{other[0]}` waits for ever"
    else:
        run = f"{side} completes too early: data are overwritten, or read before they are there"
    suggestions = []
    if found == 0:
        suggestions.append(_missing_arrival(role, guilty[1], full))
    elif found % promised == 0:
        suggestions.append(
            f"{'commit' if full else 'release'} every item once, not {found // promised} times"
        )
    else:
        suggestions.append(
            f"set `arrivals` of port `{guilty[1]}` to the {plural(found, 'arrival')} its role makes"
        )
        suggestions.append(f"or run role `{port.role}` on {promised} warps")
    return Diagnostic(
        "PL0201",
        f"`{qualified_name(guilty)}` promises {plural(promised, 'arrival')} on {side} per item, "
        f"its role makes {found}",
        labels(
            (port.where("arrivals"), f"promises {plural(promised, 'arrival')} per item"),
            (
                origin.span if origin else role.where("body"),
                f"{plural(found, 'arrival')} on {side} for {which}"
                + (f": one per warp, {plural(warps, 'warp')}" if origin and not port.raw else ""),
            ),
            (connection.span, ""),
        ),
        expected=plural(promised, "arrival"),
        found=f"{plural(found, 'arrival')} for {which} of a work item"
        if problem.items > 1
        else plural(found, "arrival"),
        at_run_time=run,
        notes=notes_of(index, case, problem.target),
        suggestions=tuple(suggestions),
        subject=connection.name,
    )


def _promised(index: ProgramIndex, kind: str, end: End) -> int:
    port = index.port(end)
    return evaluate(port.arrivals, {}) if port.space in ("ring", "tensor_memory") else 4


def _per_end(case: Found[WrongArrivals], ctas: int) -> dict[End, int]:
    """Arrivals on the phase of the problem, per port; `ctas` of a cluster make the same."""
    target, item, items = case.problem.target, case.problem.item, case.problem.items
    made: dict[End, int] = {}
    for process in case.composition.processes:
        for action in process.period:
            if action.kind in ARRIVALS and action.target == target and action.item % items == item:
                made[action.origin.end] = made.get(action.origin.end, 0) + action.amount
    return {end: found // ctas for end, found in made.items()}


def _missing_arrival(role: Role, port: str, full: bool) -> str:
    """What to add where a role never arrives for its items of a ring."""
    if any(
        op.verb == "mma" and op.source and port in (op.target, op.source)
        for op in operations(role.body)
    ):
        return f"add `commit mma -> {port}` to role `{role.name}`, after the mma of an item"
    if full:
        return f"add `commit {port}` to role `{role.name}`"
    return f"add `release {port} lag 0` to role `{role.name}`, after the loop and its last `await`"


def wrong_bytes(index: ProgramIndex, case: Found[WrongBytes]) -> Diagnostic:
    """PL0202: announced and copied bytes differ."""
    problem = case.problem
    channel = index.protocol.channel_of[problem.target]
    announced, delivered = problem.announced, problem.delivered
    port = index.port(channel.producer)
    instance = channel.producer[0]
    connection = index.connection(channel, problem.action.origin.end)
    brought: dict[str, int] = {}  # tensor -> bytes, of all CTAs that copy to this one
    for process in case.composition.processes:
        for action in process.period:
            operation = action.origin.operation
            same = (action.barrier, action.item) == (problem.target, problem.item)
            if action.kind == Kind.COPY and same and operation is not None:
                source = operation.source
                brought[source] = brought.get(source, 0) + max(action.bytes, 0)
    copies = []
    for source, size in brought.items():
        tensor = index.contracts[instance].port(source)
        where = tensor.tile.span if tensor.tile else tensor.span
        copies.append((where, f"`{source}` delivers {size or 'its'} bytes"))
    tx = port.tx_bytes
    expects = [
        a for p in case.composition.processes for a in p.period if a.kind == Kind.ARRIVE and a.bytes
    ]
    never = not expects or not announced
    if delivered < 0:  # a bulk copy, whose size is a value of the work item: at most the tiles
        delivered = sum(member_bytes(member) for member in port.members)
    difference = announced - delivered
    waiter = connection.consumer[0]
    return Diagnostic(
        "PL0202",
        f"`{qualified_name(channel.producer)}` announces {announced} bytes per item, "
        f"its copies bring {delivered}",
        labels(
            (
                port.where("tx_bytes"),
                "never announced" if never else f"announces {announced} bytes per item",
            ),
            *copies,
            (problem.action.origin.span, "per item"),
            (connection.span, ""),
        ),
        expected=f"{delivered} bytes, what the copies bring",
        found=f"{announced} bytes",
        at_run_time=(
            f"`{waiter}` waits for ever for its first item: {difference} bytes never arrive"
            if difference > 0
            else f"`{waiter}` waits for ever for its first item: {-difference} bytes more than "
            "announced arrive"
        ),
        notes=notes_of(index, case),
        suggestions=(
            f"add `expect {channel.producer[1]}` before the copies"
            if never
            else f"set `tx_bytes` of port `{channel.producer[1]}` to {delivered}"
            + (f" (it is `{tx.text}`)" if tx and tx.literal is None else ""),
            "or change the boxes, so that they cover the tiles of an item",
        ),
        subject=connection.name,
    )


def item_not_acquired(index: ProgramIndex, case: Found[ItemNotAcquired]) -> Diagnostic:
    """PL0209: an item is used before it is acquired or waited for."""
    problem = case.problem
    origin = problem.action.origin
    port = index.port(origin.end)
    getter = "acquire" if port.direction == "out" else "wait"
    return Diagnostic(
        "PL0209",
        f"`{origin.text}` of `{origin.owner}` has no item of `{port.name}` to work on",
        labels(
            (origin.span, f"no `{getter} {port.name}` before it in this work item"), (port.span, "")
        ),
        expected=f"`{getter} {port.name}` first",
        at_run_time="it would touch the stage of an item that the other side is using",
        notes=notes_of(index, case),
        suggestions=(f"put `{getter} {port.name}` before it",),
        subject=subject_of(index, problem),
    )


def unequal_rates(index: ProgramIndex, case: Found[UnequalRates]) -> Diagnostic:
    """PL1002: a consumer takes more or fewer items per work item than are made."""
    problem = case.problem
    channel = index.protocol.channel_of[problem.target]
    made, taken = problem.made, problem.taken
    producer, consumer = problem.producer, problem.consumer
    connection = index.connection(channel, consumer.end)
    sink = index.port(connection.consumer)
    few = taken < made
    return Diagnostic(
        "PL1002",
        f"`{qualified_name(connection.producer)}` makes {plural(made, 'item')} per work item, "
        f"`{qualified_name(connection.consumer)}` takes {taken}",
        labels(
            (producer.span or index.port(channel.producer).span, f"makes {made}"),
            (consumer.span or sink.span, f"takes {taken}"),
            (connection.span, ""),
        ),
        expected=plural(made, "item"),
        found=plural(taken, "item"),
        at_run_time=f"`{connection.producer[0]}` waits for ever once the ring is full"
        if few
        else f"`{connection.consumer[0]}` waits for ever for an item that nobody makes",
        notes=notes_of(index, case),
        suggestions=(
            f"let role `{sink.role}` of `{connection.consumer[0]}` wait for `{sink.name}` as often "
            f"as `{connection.producer[0]}` acquires it",
        ),
        subject=connection.name,
    )


def wrong_threads(index: ProgramIndex, case: Found[WrongThreads]) -> Diagnostic:
    """PL0302: the count of a named barrier is not the number of threads that come."""
    problem = case.problem
    assert problem.action is not None
    found, wanted, origin = problem.found, problem.expected, problem.action.origin
    instance, name = origin.end
    barrier = next(b for b in index.contracts[instance].named_barriers if b.name == name)
    comers = [
        f"`{role}` on {plural(index.home(instance, role).warps, 'warp')}" for role in barrier.roles
    ]
    return Diagnostic(
        "PL0302",
        f"named barrier `{instance}.{name}` counts {wanted} threads, {found} come",
        labels(
            (barrier.span, f"counts {wanted} threads"),
            (origin.span, f"{found} threads come: {', '.join(comers)}"),
        ),
        expected=f"count {found}: {WARP} threads for every warp of the roles that come",
        found=f"count {wanted}",
        at_run_time="the roles wait for ever at the barrier"
        if found < wanted
        else "the barrier opens before all have come; the next round begins with the late ones",
        notes=notes_of(index, case),
        suggestions=(f"set `count` of `{name}` to {found}",),
        subject=f"{instance}.{name}",
    )


def unequal_barrier_use(index: ProgramIndex, case: Found[UnequalBarrierUse]) -> Diagnostic:
    """PL0302: the roles of a named barrier come unequally often."""
    problem = case.problem
    found, wanted, origin = problem.found, problem.expected, problem.action.origin
    instance, name = origin.end
    barrier = next(b for b in index.contracts[instance].named_barriers if b.name == name)
    return Diagnostic(
        "PL0302",
        f"role `{origin.role}` comes to named barrier `{instance}.{name}` "
        f"{plural(found, 'time')} per work item, another role {plural(wanted, 'time')}",
        labels(
            (origin.span, f"{plural(found, 'time')} per work item"),
            (barrier.span, f"roles {', '.join(barrier.roles)}"),
        ),
        expected=f"{plural(wanted, 'time')} per work item for every role",
        found=plural(found, "time"),
        at_run_time="the roles drift apart until one waits for ever",
        notes=notes_of(index, case),
        suggestions=("let every role of the barrier come as often per work item",),
        subject=f"{instance}.{name}",
    )


def unwritten_read(index: ProgramIndex, case: Found[UnwrittenRead]) -> Diagnostic:
    """PL0503: something is read that nobody has written."""
    problem = case.problem
    origin = problem.action.origin
    what = memory_of(index, problem.target, origin)
    channel = index.protocol.channel_of.get(problem.target)
    writer = channel.producer if channel else origin.end
    return Diagnostic(
        "PL0503",
        f"`{origin.text}` of `{origin.owner}` reads {what}, which is not written before",
        labels(
            (origin.span, "reads it"),
            (index.port(writer).span, "its producer neither copies nor writes it")
            if channel
            else None,
        ),
        at_run_time="it reads what happens to be there",
        notes=notes_of(index, case),
        suggestions=(f"write `{writer[1]}` first",),
        subject=subject_of(index, problem),
    )
