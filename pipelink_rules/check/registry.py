"""What is a rule?  Codes and the function that finds them; a family is a file of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pipelink_rules.check.resolved import Resolved
from pipelink_rules.diagnostics.diagnostic import Diagnostic


@dataclass(frozen=True)
class Rule:
    """`find` yields diagnostics of `codes` and no others."""

    codes: tuple[str, ...]
    find: Callable[[Resolved], Iterable[Diagnostic]]
