"""How often a role performs operations in a work tile, as expressions that are decided exactly.

An operation inside repeats is performed as often as the product of their counts; a count below 0
is 0.  Both ends of a ring move equally many items, and their `rate` clauses say how many (PL1002).
Registers are read only where this work tile has written them (PL0503): behind a loop over `mma`
that runs zero times they hold the accumulator of the work tile before.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pipelink_rules.check.domain import domain_of, range_advice
from pipelink_rules.check.program_index import End, ProgramIndex, qualified_name
from pipelink_rules.check.types import rate_problem
from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels
from pipelink_rules.expression.expression import names, substitute
from pipelink_rules.model.contract import RINGS, Operation, Repeat
from pipelink_rules.model.program import Connection
from pipelink_rules.model.source_span import Expr
from pipelink_rules.solver.decide import Answer, Domain, always, equal, lowest


class OperationSite(NamedTuple):
    """An operation, and the repeats around it, the outer one first."""

    op: Operation
    repeats: tuple[Repeat, ...]


def sites(
    body: Iterable[Operation | Repeat], repeats: tuple[Repeat, ...] = ()
) -> Iterator[OperationSite]:
    """Yield every operation in program order."""
    for item in body:
        if isinstance(item, Repeat):
            yield from sites(item.body, (*repeats, item))
        else:
            yield OperationSite(item, repeats)


def count(found: Iterable[tuple[Repeat, ...]], domain: Domain) -> Expr:
    """Return how often operations inside these repeats are performed together."""
    products = [" * ".join(_factor(repeat, domain) for repeat in outer) or "1" for outer in found]
    return substitute(Expr(" + ".join(products) or "0"), {})


def _factor(repeat: Repeat, domain: Domain) -> str:
    low = lowest(repeat.count, domain)
    return f"({repeat.count})" if low is not None and low >= 0 else f"max({repeat.count}, 0)"


def _moves(index: ProgramIndex, end: End) -> list[OperationSite]:
    """Return where a role begins items of one of its rings."""
    port = index.port(end)
    verb = "acquire" if port.direction == "out" else "wait"
    body = index.role_of(end).body
    return [site for site in sites(body) if (site.op.verb, site.op.target) == (verb, port.name)]


def check_moves(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL1002: both ends of a ring move equally many items, as many as their rates say."""
    domain = domain_of(index)
    for connection in index.program.connections:
        ends = connection.producer, connection.consumer
        if index.port(ends[0]).space not in RINGS:
            continue
        found = [_moves(index, end) for end in ends]
        if not all(found):
            continue  # reported where an item is used (PL0209), or the port is not (PL0510)
        made, taken = (count([site.repeats for site in moved], domain) for moved in found)
        spans = [moved[0].op.span for moved in found]
        answer = equal(made, taken, domain)
        if not answer.holds:
            yield rate_problem(index, connection, (made, taken), (spans[1], spans[0]), answer)
            continue
        for end, moved in zip(ends, (made, taken), strict=True):
            rate = index.port(end).rate
            answer = equal(f"max({rate}, 0)", f"max({moved}, 0)", domain)
            if not answer.holds:
                yield _not_the_rate(index, connection, end, moved, answer)
                break


def _not_the_rate(
    index: ProgramIndex, connection: Connection, end: End, made: Expr, answer: Answer
) -> Diagnostic:
    port = index.port(end)
    verb = "acquires" if port.direction == "out" else "waits for"
    return Diagnostic(
        "PL1002",
        f"`{qualified_name(end)}` declares `rate: {port.rate}`, but its role {verb} {made} items "
        "per work tile",
        labels(
            (port.where("rate"), f"declares {port.rate}"),
            *((site.op.span, f"{verb} items") for site in _moves(index, end)),
        ),
        expected=f"rate: {made}",
        found=f"rate: {port.rate}",
        notes=(f"for example with {answer.text}",) if answer.text else (),
        suggestions=(f"set `rate: {made}`", "or remove `rate`: it is derived"),
        subject=connection.name,
    )


def check_registers(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0503: registers are read only where the role before has written them in this work tile."""
    domain = domain_of(index)
    for connection in index.program.connections:
        if index.port(connection.producer).space != "registers":
            continue
        taken = [
            site
            for site in sites(index.role_of(connection.consumer).body)
            if (site.op.verb, site.op.target) == ("read", connection.consumer[1])
        ]
        reads = count([site.repeats for site in taken], domain)
        for write, needed, what in _needed(index, connection.producer, domain):
            done = count([write.repeats], domain)
            answer = always(f"({reads}) * ({done}) == 0 or ({needed}) > 0", domain)
            if not answer.holds:
                yield _stale(index, connection, write, taken[:1], (needed, what), answer)
                break


def _needed(
    index: ProgramIndex, end: End, domain: Domain
) -> Iterator[tuple[OperationSite, Expr, str]]:
    """Yield (write, count that is not 0, what it counts) for a register port."""
    before: list[OperationSite] = []  # wgmma
    other = 0  # of them, those before other registers are written
    writes: list[OperationSite] = []
    for site in sites(index.role_of(end).body):
        if site.op.wgmma:
            before.append(site)
        elif site.op.verb == "write" and site.op.target != end[1]:
            other = len(before)
        elif site.op.verb == "write":
            writes.append(site)
            if before:  # repeats around both run once at least where the write is performed
                inner = [
                    tuple(repeat for repeat in mma.repeats if repeat not in site.repeats)
                    for mma in before[other:] or before
                ]
                yield site, count(inner, domain), "`mma`"
    if writes and all(site.repeats for site in writes):
        always_read = OperationSite(writes[0].op, ())
        yield always_read, count([site.repeats for site in writes], domain), f"`write {end[1]}`"


def _stale(
    index: ProgramIndex,
    connection: Connection,
    write: OperationSite,
    reads: list[OperationSite],
    needed: tuple[Expr, str],
    answer: Answer,
) -> Diagnostic:
    made, what = needed
    (instance, port), (reader, _) = connection.producer, connection.consumer
    scheduler = index.contracts[index.program.scheduler[0]].work
    fields = [field for field in scheduler.fields if field.name in names(made)] if scheduler else []
    case = f" with {answer.text}" if answer.text else ""
    role, consumer = (index.role_of(end) for end in (connection.producer, connection.consumer))
    return Diagnostic(
        "PL0503",
        f"`{reader}.{consumer.name}` reads registers `{instance}.{port}` of the work tile before"
        if answer.text
        else f"cannot decide whether `{instance}.{role.name}` writes `{port}` in every work tile",
        labels(
            *((site.op.span, "reads them") for site in reads),
            (write.op.span, f"performs {what} {made} times before"),
        ),
        expected=f"at least 1 {what} in every work tile where `{port}` is read",
        found=f"none{case}" if case else f"{made} times",
        at_run_time="the registers keep the result of the work tile before: wrong results",
        suggestions=(
            range_advice(index, fields[0], "`min: 1`"),
            f"or read `{connection.consumer[1]}` inside `repeat: min({made}, 1)`",
        )
        if fields
        else (f"perform {what} at least once in every work tile",),
        subject=connection.name,
    )


CHECKS = (check_moves, check_registers)
