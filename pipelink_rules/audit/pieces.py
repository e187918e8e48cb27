"""Does a role touch the piece of scratch memory that its contract names?  By the addresses.

Work items whose indices differ have nothing to do with each other: no address is in the pieces of
both.  Where the pieces lie is the component's own business.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pipelink_rules.audit.compare import Difference
from pipelink_rules.expression.expression import evaluate
from pipelink_rules.model.contract import Contract, Operation, Role
from pipelink_rules.model.operation import operations


@dataclass
class ScratchSlices:
    """Which piece each address was touched as, over the work items and warps of a role."""

    contract: Contract
    role: Role
    seen: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)

    def check(
        self, environment: dict[str, int], touched: set[tuple[str, int]]
    ) -> Difference | None:
        """The first address that belongs to another piece as well."""
        named: dict[str, set[Operation]] = {}
        for op in operations(self.role.body):
            if op.index and op.verb not in ("signal", "until"):
                name = op.source if op.verb in ("copy", "store") else op.target
                named.setdefault(name, set()).add(op)
        for port, address in sorted(touched):
            if len({op.piece for op in named.get(port, ())}) != 1:
                continue  # not used here, or as two kinds of pieces: which one nobody can say
            op = next(iter(named[port]))
            index = tuple(evaluate(part, environment) for part in op.index)
            other = self.seen.setdefault((port, address), index)
            if other != index:
                return Difference(
                    "PL0930",
                    f"touches a piece of `{port}` that is not the one it names",
                    op,
                    port,
                    f"{port}{op.piece} = {list(index)}",
                    f"an address that was in {list(other)}",
                )
        return None
