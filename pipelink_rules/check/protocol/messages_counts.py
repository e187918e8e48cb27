"""Diagnostics about counts: arrivals, bytes, threads and items."""

from pipelink_rules.check import types
from pipelink_rules.check.program_index import End, ProgramIndex, qualified_name
from pipelink_rules.check.protocol import protocol_problems as problems
from pipelink_rules.check.protocol.message_parts import Case
from pipelink_rules.check.protocol.model import ARRIVALS, Kind
from pipelink_rules.check.protocol.process_builder import WARP
from pipelink_rules.contract.item_layout import member_bytes
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Port, Role
from pipelink_rules.model.operation import operations
from pipelink_rules.model.source_span import Expr


def wrong_arrivals(case: Case[problems.WrongArrivals]) -> Diagnostic:
    """PL0201: a phase gets more or fewer arrivals than its barrier counts."""
    problem, index, channel = case.problem, case.index, case.ring
    full = problem.target.endswith(".full")
    performed = _per_end(case, 1 if full else len(channel.reach(0)))
    ends = [channel.producer] if full else list(channel.consumers)
    wrong = (end for end in ends if performed.get(end, 0) != _declared(index, end))
    end = next(wrong, ends[0])
    found, declared = performed.get(end, 0), _declared(index, end)
    connection = index.connection(channel, end)
    port, role = index.port(end), index.role_of(end)
    warps = index.home(end[0], port.role).warps
    barrier = "full" if full else "empty"
    arrivals = [a for a in case.composition.actions() if a.kind in ARRIVALS and a.origin.end == end]
    origin = arrivals[0].origin if arrivals else None
    producer, consumer = channel.producer[0], channel.consumers[0][0]
    which = f"item {problem.item} of {problem.items}" if problem.items > 1 else "an item"
    if found < declared:
        run = f"the barrier never completes: `{consumer if full else producer}` hangs"
    elif full:
        run = f"the barrier completes early: `{consumer}` reads a stage that is not written yet"
    else:
        run = f"the barrier completes early: `{producer}` overwrites a stage that is still read"
    return case.report(
        f"`{qualified_name(end)}` declares {plural(declared, 'arrival')} on the {barrier} barrier "
        f"per item, but its role performs {found or 'none'}",
        (port.where("arrivals"), f"declares {plural(declared, 'arrival')} per item"),
        (
            origin.span if origin else role.where("body"),
            f"{plural(found, 'arrival')} on the {barrier} barrier for {which}"
            + (f": one per warp, {plural(warps, 'warp')}" if origin and not port.raw else ""),
        ),
        (connection.span, ""),
        expected=f"{plural(declared, 'arrival')} per item",
        found=f"{plural(found, 'arrival')} for {which}",
        at_run_time=run,
        notes=case.notes(problem.target),
        suggestions=_arrival_help(role, port, full, (found, declared, warps)),
        subject=connection.name,
    )


def _arrival_help(
    role: Role, port: Port, full: bool, counts: tuple[int, int, int]
) -> tuple[str, ...]:
    found, declared, warps = counts
    if found == 0:
        return (_missing_arrival(role, port.name, full),)
    # One operation of all warps is one arrival of each: the operation is right, the number is not.
    if found == warps:
        return (f"set `arrivals: {found}` on port `{port.name}`",)
    if found % declared == 0:
        verb = "commit" if full else "release"
        return (f"`{verb}` every item once, not {plural(found // declared, 'time')}",)
    return (
        f"set `arrivals: {found}` on port `{port.name}`",
        f"or run role `{port.role}` on {plural(declared, 'warp')}",
    )


def _declared(index: ProgramIndex, end: End) -> int:
    port = index.port(end)
    return evaluate(port.arrivals, {}) if port.space in ("ring", "tensor_memory") else 4


def _per_end(case: Case[problems.WrongArrivals], ctas: int) -> dict[End, int]:
    """Return the arrivals per port on the phase of the problem; `ctas` perform the same."""
    target, item, items = case.problem.target, case.problem.item, case.problem.items
    performed: dict[End, int] = {}
    for action in case.composition.actions():
        if action.kind in ARRIVALS and action.target == target and action.item % items == item:
            end = action.origin.end
            performed[end] = performed.get(end, 0) + action.amount
    return {end: found // ctas for end, found in performed.items()}


def _missing_arrival(role: Role, port: str, full: bool) -> str:
    """Return the operation to add to a role that never arrives for its items of a ring."""
    if any(
        op.verb == "mma" and op.source and port in (op.target, op.source)
        for op in operations(role.body)
    ):
        return f"add `commit mma -> {port}` to role `{role.name}`, after the mma of an item"
    if full:
        return f"add `commit {port}` to role `{role.name}`"
    return f"add `release {port} lag 0` to role `{role.name}`, after the loop and its last `await`"


def wrong_bytes(case: Case[problems.WrongBytes]) -> Diagnostic:
    """PL0202: expected and copied bytes differ."""
    problem, index, channel = case.problem, case.index, case.ring
    expected, copied = problem.expected, problem.copied
    port = index.port(channel.producer)
    connection = index.connection(channel, problem.action.origin.end)
    by_tensor: dict[str, int] = {}  # bytes of all CTAs that copy to this one
    expects = False
    for action in case.composition.actions():
        operation = action.origin.operation
        expects |= action.kind == Kind.ARRIVE and action.bytes > 0
        same = (action.barrier, action.item) == (problem.target, problem.item)
        if action.kind == Kind.COPY and same and operation is not None:
            source = operation.source
            by_tensor[source] = by_tensor.get(source, 0) + max(action.bytes, 0)
    copies = []
    for source, size in by_tensor.items():
        tensor = index.contracts[channel.producer[0]].port(source)
        where = tensor.tile.span if tensor.tile else tensor.span
        copies.append((where, f"transfers {size:,} bytes" if size else "transfers its bytes"))
    tx, never = port.tx_bytes, not expects or not expected
    if copied < 0:  # a bulk copy whose size depends on the work tile: at most the tiles
        copied = sum(member_bytes(member) for member in port.members)
    return case.report(
        f"`{qualified_name(channel.producer)}` expects {expected:,} bytes per item, but its copies "
        f"transfer {copied:,}",
        (
            port.where("tx_bytes"),
            "no `expect` of it" if never else f"expects {expected:,} bytes per item",
        ),
        *copies,
        (problem.action.origin.span, "per item"),
        (connection.span, ""),
        expected=f"{copied:,} bytes per item",
        found=f"{expected:,} bytes per item",
        at_run_time="the byte count of the full barrier never reaches zero: "
        f"`{connection.consumer[0]}` hangs on its first item",
        suggestions=(
            f"add `expect {channel.producer[1]}` before the copies"
            if never
            else f"set `tx_bytes` of port `{channel.producer[1]}` to {copied}"
            + (f" (it is `{tx.text}`)" if tx and tx.literal is None else ""),
            "or change the boxes so that they fill the tiles of an item",
        ),
    )


def item_not_acquired(case: Case[problems.ItemNotAcquired]) -> Diagnostic:
    """PL0209: an item is used before it is acquired or waited for."""
    origin = case.problem.action.origin
    port = case.index.port(origin.end)
    getter = "acquire" if port.direction == "out" else "wait"
    return case.report(
        f"`{origin.owner}` performs `{origin.text}` without holding a stage of `{port.name}`",
        (origin.span, f"no `{getter} {port.name}` before it in this work tile"),
        (port.span, ""),
        expected=f"`{getter} {port.name}` before it",
        at_run_time="it accesses a stage that the other role is using: data race",
        suggestions=(f"add `{getter} {port.name}` before `{origin.text}`",),
    )


def unequal_rates(case: Case[problems.UnequalRates]) -> Diagnostic:
    """PL1002: a consumer consumes more or fewer items per work tile than are produced."""
    problem, index = case.problem, case.index
    connection = index.connection(case.ring, problem.consumer.end)
    return types.unequal_rates(
        index,
        connection,
        Expr(str(problem.made)),
        Expr(str(problem.taken)),
        (
            problem.consumer.span or index.port(connection.consumer).span,
            problem.producer.span or index.port(case.ring.producer).span,
        ),
        case.notes(),
    )


def wrong_threads(case: Case[problems.WrongThreads]) -> Diagnostic:
    """PL0302: the count of a named barrier is not the number of threads that arrive."""
    problem = case.problem
    assert problem.action is not None
    found, wanted, origin = problem.found, problem.expected, problem.action.origin
    instance, name = origin.end
    barrier, home = case.named_barrier(origin), case.index.home
    arriving = [f"`{r}` on {plural(home(instance, r).warps, 'warp')}" for r in barrier.roles]
    return case.report(
        f"named barrier `{instance}.{name}` is declared for {wanted} threads, but {found} arrive",
        (barrier.span, f"declared for {wanted} threads"),
        (origin.span, f"{found} threads arrive: {', '.join(arriving)}"),
        expected=f"count: {found} ({WARP} threads per warp)",
        found=f"count: {wanted}",
        at_run_time="the barrier never completes: its roles hang"
        if found < wanted
        else "it completes before all warps arrive, and late arrivals count for the next phase",
        suggestions=(f"set `count: {found}` on named barrier `{name}`",),
    )


def unequal_barrier_use(case: Case[problems.UnequalBarrierUse]) -> Diagnostic:
    """PL0302: the roles of a named barrier use it unequally often."""
    problem = case.problem
    found, wanted, origin = problem.found, problem.expected, problem.action.origin
    barrier = case.named_barrier(origin)
    return case.report(
        f"role `{origin.role}` arrives at named barrier `{qualified_name(origin.end)}` "
        f"{plural(found, 'time')} per work tile, but another role {plural(wanted, 'time')}",
        (origin.span, f"{plural(found, 'time')} per work tile"),
        (barrier.span, f"roles {', '.join(barrier.roles)}"),
        expected=f"{plural(wanted, 'time')} per work tile for every role",
        found=f"{plural(found, 'time')} per work tile",
        at_run_time="the roles drift apart until one hangs",
        suggestions=(
            f"let every role arrive at `{origin.name}` {plural(wanted, 'time')} per work tile",
        ),
    )


def unwritten_read(case: Case[problems.UnwrittenRead]) -> Diagnostic:
    """PL0503: data is read that no operation writes."""
    origin, channel = case.problem.action.origin, case.channel
    writer = channel.producer if channel else origin.end
    return case.report(
        f"`{origin.text}` of `{origin.owner}` reads uninitialized data in {case.memory(origin)}",
        (origin.span, "reads it"),
        (case.index.port(writer).span, "no operation of its producer writes it")
        if channel
        else None,
        at_run_time="reads uninitialized memory: wrong results",
        suggestions=(f"add a `copy` to or `write` of `{writer[1]}` before it is committed",)
        if channel
        else (f"add `write {writer[1]}` before `{origin.text}`",),
    )
