"""Which launch-time integers does a megakernel have?  Symbols of all components, by name."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pipelink_rules.model.contract import Symbol
from pipelink_rules.model.program import Instance, MegakernelSpec
from pipelink_rules.program.findings import Findings


def unify_symbols(instances: Iterable[Instance]) -> tuple[Symbol, ...]:
    """Symbols of the same name are one symbol: ranges intersected, multiples joined; sorted."""
    found: dict[str, Symbol] = {}
    for instance in instances:
        for symbol in instance.variant.contract.symbols:
            other = found.get(symbol.name)
            found[symbol.name] = symbol if other is None else _both(other, symbol)
    return tuple(found[name] for name in sorted(found))


def check_symbols(
    spec: MegakernelSpec, instances: Iterable[Instance], findings: Findings
) -> tuple[str, ...]:
    """The sorted names; PL0075 where no value suits all components."""
    instances = list(instances)
    symbols = unify_symbols(instances)
    for symbol in symbols:
        first = -(-symbol.minimum // symbol.multiple_of) * symbol.multiple_of
        if first <= symbol.maximum:
            continue
        asked = [
            (own.span, f"`{instance.name}` asks for {_range(own)}")
            for instance in instances
            for own in instance.variant.contract.symbols
            if own.name == symbol.name and _narrows(own)
        ]
        findings.add(
            "PL0075",
            f"no value of `{symbol.name}` suits all components",
            spec.span,
            *asked,
            expected=f"a value in {_range(symbol)}",
            found="none",
            helps=("symbols of one name are one number: rename one of them if they differ",),
            subject=symbol.name,
        )
    return tuple(symbol.name for symbol in symbols)


def _both(a: Symbol, b: Symbol) -> Symbol:
    return Symbol(
        a.name,
        max(a.minimum, b.minimum),
        min(a.maximum, b.maximum),
        math.lcm(a.multiple_of, b.multiple_of),
        a.span,
    )


def _narrows(symbol: Symbol) -> bool:
    open_ = Symbol(symbol.name)
    return symbol.minimum > 1 or symbol.maximum < open_.maximum or symbol.multiple_of > 1


def _range(symbol: Symbol) -> str:
    step = f", a multiple of {symbol.multiple_of}" if symbol.multiple_of > 1 else ""
    return f"{symbol.minimum}..{symbol.maximum}{step}"
