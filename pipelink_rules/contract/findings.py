"""What is wrong with one contract, and which names may its expressions use?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Unpack

from pipelink_rules.diagnostics.diagnostic import Clauses, Location, PipelinkError
from pipelink_rules.diagnostics.sink import DiagnosticSink
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.expression import expression
from pipelink_rules.model.source_span import Expr

# kind of a name -> how messages call it
NAMED = {
    "param": "a parameter, known at compile time",
    "symbol": "a symbol, known only at launch",
    "field": "a field of the work item, which varies from item to item",
}

_PLURAL = {"param": "parameters", "symbol": "symbols", "field": "work fields"}
LONGEST_MESSAGE = 240  # characters


class ContractFindings(DiagnosticSink):
    """What is wrong with one file, and the names that its expressions may use."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, str] = {}  # name -> kind (see NAMED)
        self.dtype_params: set[str] = set()
        self.blind = False  # a clause that declares names is unreadable: do not judge names

    def add(
        self, code: str, message: str, *locations: Location, **clauses: Unpack[Clauses]
    ) -> None:
        """Records one finding; names of the file in its message may be of any length and form."""
        message = " ".join(message.split())[:LONGEST_MESSAGE]
        clauses.setdefault("subject", f"{locations[0] if locations else None}: {message}")
        super().add(code, message, *locations, **clauses)

    def take(self, problem: PipelinkError) -> None:
        """Records the findings of another stage at this place."""
        for item in problem.diagnostics:
            place = str(item.labels[0].span) if item.labels else ""
            self.items.append(replace(item, subject=f"{place}: {item.subject}"))

    def judge_names(self, expr: Expr, clause: str, scope: Collection[str]) -> None:
        """PL0031 for every name of an expression that is unknown, or of a kind not in `scope`."""
        known = self.known
        for name in () if self.blind else sorted(expression.names(expr)):
            place = expression.name_span(expr, name)
            if name not in known:
                usable = [other for other, kind in known.items() if kind in scope]
                self.add(
                    "PL0031",
                    f"{clause} names `{name}`, which is not declared",
                    place,
                    suggestions=similar_name_help(name, usable, "declared"),
                )
            elif known[name] not in scope:
                wanted = " and ".join(_PLURAL[kind] for kind in scope)
                self.add(
                    "PL0031",
                    f"{clause} cannot use `{name}`",
                    place,
                    expected=f"an expression over {wanted}",
                    found=f"`{name}` is {NAMED[known[name]]}",
                )
