"""Which fields of the work item decide how often a role does something?"""

from __future__ import annotations

from collections.abc import Iterator

from pipelink_rules.expression.expression import names
from pipelink_rules.model.contract import Operation, Repeat
from pipelink_rules.model.operation import repeats
from pipelink_rules.model.program import Program


def loop_fields(program: Program) -> frozenset[str]:
    """The fields that counts of repeats depend on."""
    return frozenset(
        name
        for instance in program.instances
        for role in instance.variant.contract.roles
        for name in count_names(role.body)
    )


def count_names(body: tuple[Operation | Repeat, ...]) -> Iterator[str]:
    """Names in the counts of repeats, nested ones too."""
    for repeat in repeats(body):
        yield from names(repeat.count)
