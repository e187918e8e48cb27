"""Which values of two instances have to be equal?  Links, work tiles, tensors -> ties.

A tie joins one expression (or dtype) of one instance with one of another.  Where one side is a
bare parameter and the other side's value is known, the parameter follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pipelink_rules.model.contract import DTYPES, Contract, Member, Port
from pipelink_rules.model.program import MegakernelSpec
from pipelink_rules.model.source_span import Expr, Span
from pipelink_rules.program.connections import Link, parse_endpoint


@dataclass(frozen=True)
class Term:
    """One value of an instance: an expression over its parameters, or a dtype."""

    instance: str
    value: Expr | str  # a str is a dtype, or a parameter of type dtype
    span: Span | None
    parameter: str = ""  # set where the value is a bare parameter


@dataclass(frozen=True)
class Equality:
    """Two sides that have to be equal, and why."""

    sides: tuple[Term, Term]
    reason: str  # "load.ab -> mma.ab", "the work tile", "tensor `x`"


def equalities(
    spec: MegakernelSpec, contracts: Mapping[str, Contract], links: list[Link]
) -> tuple[Equality, ...]:
    """All ties of a megakernel, in a fixed order."""
    found: list[Equality] = []
    for link in links:
        ends = ((link.producer[0], link.source), (link.consumer[0], link.sink))
        for members in pair_members(link.source, link.sink):
            found += _of_members(contracts, ends, members, link.name)
    found += _of_tiles(contracts)
    for keyword, texts in spec.tensors:
        found += _of_tensor(contracts, keyword, [parse_endpoint(text) for text in texts])
    return tuple(found)


def pair_members(source: Port, sink: Port) -> list[tuple[Member, Member]]:
    """Members of the same name; by position where the names differ."""
    names = {member.name: member for member in sink.members}
    if set(names) == {member.name for member in source.members}:
        return [(member, names[member.name]) for member in source.members]
    return list(zip(source.members, sink.members, strict=False))


def _side(
    contracts: Mapping[str, Contract], instance: str, value: Expr | str, span: Span | None
) -> Term:
    text = value.text.strip() if isinstance(value, Expr) else value
    bare = any(param.name == text for param in contracts[instance].params)
    place = value.span if isinstance(value, Expr) else None
    return Term(instance, value, place or span, text if bare else "")


def _of_members(
    contracts: Mapping[str, Contract],
    ends: tuple[tuple[str, Port], tuple[str, Port]],
    members: tuple[Member, Member],
    reason: str,
) -> Iterator[Equality]:
    (a, port_a), (b, port_b) = ends
    places = [
        member.span or port.span for member, port in zip(members, (port_a, port_b), strict=True)
    ]
    first, second = members
    if first.dtype and second.dtype:
        yield Equality(
            (
                _side(contracts, a, first.dtype, places[0]),
                _side(contracts, b, second.dtype, places[1]),
            ),
            reason,
        )
    for one, two in zip(first.shape, second.shape, strict=False):
        yield Equality(
            (_side(contracts, a, one, places[0]), _side(contracts, b, two, places[1])), reason
        )


def _of_tiles(contracts: Mapping[str, Contract]) -> Iterator[Equality]:
    works = [(name, contracts[name].work) for name in sorted(contracts)]
    for at, (a, one) in enumerate(works):
        for b, two in works[at + 1 :]:
            if one is None or two is None or one.kind != two.kind or len(one.tile) != len(two.tile):
                continue
            for left, right in zip(one.tile, two.tile, strict=True):
                sides = (
                    _side(contracts, a, left, one.span),
                    _side(contracts, b, right, two.span),
                )
                yield Equality(sides, f"the work tile of `{a}` and `{b}`")


def _of_tensor(
    contracts: Mapping[str, Contract], keyword: str, ends: list[tuple[str, str]]
) -> Iterator[Equality]:
    ports = []
    for instance, name in ends:
        contract = contracts.get(instance)
        port = {item.name: item for item in contract.ports}.get(name) if contract else None
        if port is not None and port.members:
            ports.append((instance, port))
    for first, second in pairwise(ports):
        members = (first[1].members[0], second[1].members[0])
        yield from _of_members(contracts, (first, second), members, f"tensor `{keyword}`")


def is_dtype(value: Expr | str) -> bool:
    """Whether a side names a dtype itself."""
    return isinstance(value, str) and value in DTYPES
