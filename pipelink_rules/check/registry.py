"""What is a rule?  Codes and the function that finds them; a family is a file of rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.diagnostics.diagnostic import Diagnostic


@dataclass(frozen=True)
class Check:
    """`find` yields diagnostics of `codes` and no others."""

    codes: tuple[str, ...]
    find: Callable[[ProgramIndex], Iterable[Diagnostic]]
