"""Do CTAs that load for each other take the same items?"""

from __future__ import annotations

from collections.abc import Iterator

from pipelink_rules.check.program_index import Check, ProgramIndex
from pipelink_rules.diagnostics.diagnostic import Diagnostic, labels
from pipelink_rules.expression.expression import names
from pipelink_rules.model.operation import repeats
from pipelink_rules.model.source_span import Span


def check_multicast_receivers(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0804: no count of operations depends on a field that varies inside a cluster."""
    program = index.program
    scheduler = program.scheduler[0]
    work = index.contracts[scheduler].work
    varying = {field.name: field for field in work.fields if field.along} if work else {}
    shared = [channel for channel in program.channels if channel.multicast]
    if not shared or not varying:
        return
    for instance, name, place, what in _counts(index):
        field = varying.get(name)
        if field is None:
            continue
        axes = " and ".join(field.along)
        yield Diagnostic(
            "PL0804",
            f"{what} of `{instance}` depends on `{name}`, which differs from CTA to CTA of a "
            "cluster",
            labels(
                (place, f"depends on `{name}`"),
                (field.span, f"`{scheduler}` gives another `{name}` along {axes}"),
                (index.connection(shared[0]).span, "loaded for all of them"),
            ),
            expected=f"a field that is the same in all CTAs of a cluster, for `{name}`",
            found=f"`{name}` varies along {axes}",
            at_run_time="a CTA gets copies of items that it does not take: it or the others hang",
            suggestions=(
                f"let every CTA of a cluster do the same for every `{name}`",
                f'or turn it off: transfers={{"{_consumer(index)}": "ring"}}',
            ),
            subject=f"{scheduler}.{name}",
        )


def _consumer(index: ProgramIndex) -> str:
    channel = next(item for item in index.program.channels if item.multicast)
    return ".".join(channel.consumers[0])


def _counts(index: ProgramIndex) -> Iterator[tuple[str, str, Span | None, str]]:
    """(instance, field, place, what): everything that decides how much a role does."""
    for item in index.program.instances:
        contract = item.variant.contract
        for role in contract.roles:
            for repeat in repeats(role.body):
                for name in sorted(names(repeat.count)):
                    yield item.name, name, repeat.span, "a repeat"
        for port in contract.ports:
            for clause, expr in (("rate", port.rate), ("tx_bytes", port.tx_bytes)):
                for name in sorted(names(expr)) if expr else ():
                    yield item.name, name, port.where(clause), f"`{clause}` of `{port.name}`"


CHECKS = (Check(("PL0804",), check_multicast_receivers),)
