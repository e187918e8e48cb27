"""Check that the CTAs of a multicast group consume the same items."""

from collections.abc import Iterator

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.diagnostics.diagnostic import Diagnostic, report
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
                f'or disable the multicast: transfers={{"{_consumer(index)}": "ring"}}',
            ),
            subject=f"{scheduler}.{name}",
        )


def _consumer(index: ProgramIndex) -> str:
    channel = next(item for item in index.program.channels if item.multicast)
    return ".".join(channel.consumers[0])


def _counts(index: ProgramIndex) -> Iterator[tuple[str, str, Span | None, str]]:
    """Yield (instance, field, span, what) for every field that decides a count of operations."""
    for item in index.program.instances:
        contract = item.variant.contract
        for role in contract.roles:
            for repeat in repeats(role.body):
                for name in sorted(names(repeat.count)):
                    yield item.name, name, repeat.span, "the count of a repeat"
        for port in contract.ports:
            for clause, expr in (("rate", port.rate), ("tx_bytes", port.tx_bytes)):
                for name in sorted(names(expr)) if expr else ():
                    yield item.name, name, port.where(clause), f"`{clause}` of `{port.name}`"


CHECKS = (check_multicast_receivers,)
