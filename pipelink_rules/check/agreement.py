"""Checks that all components describe the same problem: tensors, symbols, work tile, cluster.

If they do not, the other checks are skipped: their diagnostics would only be consequences.
"""

import math
from collections.abc import Iterable, Iterator

from pipelink_rules.check.program_index import ProgramIndex, qualified_name
from pipelink_rules.diagnostics.diagnostic import Diagnostic, known_labels, report
from pipelink_rules.diagnostics.wording import list_of
from pipelink_rules.model.contract import Symbol
from pipelink_rules.model.program import Instance
from pipelink_rules.model.source_span import Expr
from pipelink_rules.program.link_constants import constant_or_none


def check_shared_tensors(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0061: ports that share a tensor agree on its dtype and rank."""
    for keyword, ends in index.program.tensors:
        ports = [(qualified_name(end), index.port(end)) for end in ends]
        first, first_port = ports[0]
        for end, port in ports[1:]:
            mine, theirs = (
                f"{item.members[0].dtype} of rank {len(item.members[0].shape)}"
                for item in (port, first_port)
            )
            if mine == theirs:
                continue
            ranks = len(port.members[0].shape), len(first_port.members[0].shape)
            yield report(
                "PL0061",
                f"tensor `{keyword}` is bound to ports of different dtype or rank",
                (index.program.spec.where("tensors", keyword, end), ""),
                (port.span, f"{end} is {mine}"),
                (first_port.span, f"{first} is {theirs}"),
                expected=theirs,
                found=mine,
                suggestions=("bind each port to a separate keyword",)
                if ranks[0] != ranks[1]
                else (
                    f"declare dtype {port.members[0].dtype} on `{first}`",
                    "or bind each port to a separate keyword",
                ),
                subject=f"{keyword}: {end}",
            )


def unify_symbols(instances: Iterable[Instance]) -> tuple[Symbol, ...]:
    """Return one symbol per name, sorted: ranges are intersected, multiples combined."""
    found: dict[str, Symbol] = {}
    for instance in instances:
        for symbol in instance.variant.contract.symbols:
            found[symbol.name] = both(found.get(symbol.name, symbol), symbol)
    return tuple(found[name] for name in sorted(found))


def both(a: Symbol, b: Symbol) -> Symbol:
    """Return what both allow."""
    low, high = max(a.minimum, b.minimum), min(a.maximum, b.maximum)
    return Symbol(a.name, low, high, math.lcm(a.multiple_of, b.multiple_of), a.span)


def check_symbols(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0075: every symbol has a value that all components allow."""
    instances = index.program.instances
    for symbol in unify_symbols(instances):
        first = -(-symbol.minimum // symbol.multiple_of) * symbol.multiple_of
        if first <= symbol.maximum:
            continue
        narrowed = [
            (other.span, f"`{instance.name}` requires {_range(other)}")
            for instance in instances
            for other in instance.variant.contract.symbols
            if other.name == symbol.name and _narrows(other)
        ]
        yield Diagnostic(
            "PL0075",
            f"no value of symbol `{symbol.name}` satisfies all components",
            tuple(known_labels([index.program.spec.span, *narrowed])),
            expected=f"a value in {_range(symbol)}",
            found="none",
            suggestions=(
                f"rename `{symbol.name}` in one component if the two are different numbers",
            ),
            subject=symbol.name,
        )


def _narrows(symbol: Symbol) -> bool:
    unlimited = Symbol(symbol.name)
    return symbol.minimum > 1 or symbol.maximum < unlimited.maximum or symbol.multiple_of > 1


def _range(symbol: Symbol) -> str:
    step = f", a multiple of {symbol.multiple_of}" if symbol.multiple_of > 1 else ""
    return f"{symbol.minimum}..{symbol.maximum}{step}"


def check_work_tiles(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0068: all components of a work kind use the same tile."""
    scheduler = index.program.scheduler[0]
    works = {name: contract.work for name, contract in index.contracts.items() if contract.work}
    given = works.get(scheduler)
    if given is None:
        return
    wanted = _tile(given.tile)
    others: dict[str, list[str]] = {}
    for instance in sorted(works):
        tile = _tile(works[instance].tile)
        if works[instance].kind == given.kind and tile != wanted:
            others.setdefault(tile, []).append(instance)
    where = index.program.spec.where
    for tile, instances in others.items():
        names = list_of(instances)
        verb = "process" if len(instances) > 1 else "processes"
        assigned = (given.span, f"`{scheduler}` assigns {wanted}")
        processed = [(works[name].span, f"`{name}` processes {tile}") for name in instances]
        yield Diagnostic(
            "PL0068",
            f"`{scheduler}` assigns tiles of {wanted}, but {names} {verb} {tile}",
            tuple(known_labels([where("instances", scheduler), assigned, *processed])),
            expected=wanted,
            found=tile,
            at_run_time="parts of the result are computed twice or not at all: always wrong "
            "results",
            suggestions=(
                f"set the tile once, to {wanted}, and remove it elsewhere: it is inferred",
            ),
            subject=tile,
        )


def check_cluster(index: ProgramIndex) -> Iterator[Diagnostic]:
    """PL0806: the tile scheduler supports the declared cluster shape."""
    program, scheduler = index.program, index.program.scheduler[0]
    work = index.contracts[scheduler].work
    if work is None:
        return
    served = (*([constant_or_none(extent) for extent in work.cluster] or [1, 1]), 1)
    if served == program.cluster:
        return
    found, declared = _product(served), _product(program.cluster)
    location = next((extent.span for extent in work.cluster), work.span)
    yield report(
        "PL0806",
        f"tile scheduler `{scheduler}` does not support clusters of {declared}",
        (program.spec.where("cluster"), "declared here"),
        (program.spec.where("instances", scheduler), f"`{scheduler}` is the tile scheduler"),
        (location, f"assigns tiles to clusters of {found}"),
        expected=f"a tile scheduler for clusters of {declared}",
        found=f"clusters of {found}",
        at_run_time="the CTAs of a cluster process unrelated tiles: always wrong results",
        suggestions=(
            f"set `cluster={served}`",
            f"or use a tile scheduler for clusters of {declared}",
        )
        if None not in served
        else (f"use a tile scheduler for clusters of {declared}",),
        subject=program.name,
    )


def _tile(extents: tuple[Expr, ...]) -> str:
    return _product([constant_or_none(extent) for extent in extents])


def _product(sizes: Iterable[int | None]) -> str:
    """`128 x 256`, with `?` for an unknown size."""
    return " x ".join("?" if size is None else str(size) for size in sizes) or "no"


CHECKS = (check_shared_tensors, check_work_tiles, check_cluster, check_symbols)
