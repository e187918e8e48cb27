"""The rules about order and liveness: found by the protocol, told one per connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.check.protocol.find_problems import find_problems
from pipelink_rules.check.protocol.messages import to_diagnostic
from pipelink_rules.check.protocol.process_builder import MOST_ACTIONS
from pipelink_rules.check.protocol.protocol_index import TooManyOperations
from pipelink_rules.check.registry import Check
from pipelink_rules.check.wording import labels
from pipelink_rules.diagnostics.diagnostic import Diagnostic

CODES = (
    "PL0201",
    "PL0202",
    "PL0203",
    "PL0209",
    "PL0302",
    "PL0303",
    "PL0401",
    "PL0402",
    "PL0501",
    "PL0502",
    "PL0503",
    "PL0504",
    "PL0505",
    "PL0509",
    "PL1002",
)


def check_protocol(
    resolved: ProgramIndex, stages: Mapping[str, int] | None = None
) -> Iterator[Diagnostic]:
    """What the protocol of the program gets wrong, for all stage counts or for these."""
    try:
        found = find_problems(resolved.blueprint, stages)
    except TooManyOperations as long:
        yield _too_long(long)
        return
    yield from to_diagnostic(resolved, resolved.blueprint, found)


def _too_long(long: TooManyOperations) -> Diagnostic:
    origin = long.origin
    return Diagnostic(
        "PL0402",
        f"role `{origin.owner}` has more than {MOST_ACTIONS} operations per work item",
        labels((origin.span, "repeated too often to be judged")),
        expected=f"at most {MOST_ACTIONS} operations per work item",
        helps=(
            "make the count of the repeat a field of the work item: loops are judged for small "
            "counts and for those around the stage counts",
        ),
        subject=origin.owner,
    )


RULES = (Check(CODES, check_protocol),)
