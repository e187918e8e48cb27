"""Values that symbols and work fields have in a program: what expressions are decided for."""

from pipelink_rules.check.agreement import both, unify_symbols
from pipelink_rules.check.program_index import ProgramIndex
from pipelink_rules.diagnostics.wording import list_of
from pipelink_rules.expression.expression import names
from pipelink_rules.model.contract import Symbol, WorkField
from pipelink_rules.model.source_span import Expr
from pipelink_rules.solver.decide import Domain

MOST = 2**31 - 1  # a work field is an int32


def domain_of(index: ProgramIndex, allowed: bool = True) -> Domain:
    """Return the launches that the kernel accepts, and the fields that the tile scheduler assigns.

    `allowed`: values that all roles allow; that there are no others is a check (PL1001).  A field
    that the tile scheduler does not have is its default.
    """
    contracts = index.contracts
    scheduler = contracts[index.program.scheduler[0]].work
    given = {field.name: field for field in scheduler.fields} if scheduler else {}
    symbols = {symbol.name: symbol for symbol in unify_symbols(index.program.instances)}
    values: list[tuple[str, Expr]] = []
    conditions = [("", item) for contract in contracts.values() for item in contract.requires]
    for name, field in given.items():
        symbols[name] = _bounds(field)
        if field.value is not None:
            values.append((name, field.value))
        if field.maximum is not None and field.maximum.literal is None:
            conditions.append((name, Expr(f"{name} <= ({field.maximum})")))
        if field.minimum.literal is None:
            conditions.append((name, Expr(f"{name} >= ({field.minimum})")))
    for condition in scheduler.where if scheduler else ():
        conditions += [(name, condition) for name in names(condition) & set(given)]
    for contract in contracts.values():
        for field in contract.work.fields if contract.work and allowed else ():
            if field.name in given:
                symbols[field.name] = both(symbols[field.name], _bounds(field))
            elif field.default is not None:
                values.append((field.name, field.default))
    return Domain(tuple(symbols.values()), tuple(dict(values).items()), tuple(conditions))


def _bounds(field: WorkField) -> Symbol:
    low = field.minimum.literal or 0
    high = field.maximum.literal if field.maximum else None
    step = field.multiple_of.literal if field.multiple_of else None
    return Symbol(field.name, low, MOST if high is None else min(high, MOST), step or 1)


def range_advice(index: ProgramIndex, field: WorkField, wanted: str) -> str:
    """Return how the tile scheduler declares a range of its field."""
    scheduler = index.program.scheduler[0]
    if field.value is None:
        return f"declare {wanted} of `{field.name}` in `{scheduler}`, if it keeps it"
    symbols = list_of(sorted(names(field.value)))
    return f"limit {symbols} in `{scheduler}` by `min` or `max`: `{field.name}` follows from it"
