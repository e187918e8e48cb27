"""Equalities between values of instances, and the solver that infers parameters from them.

An equality relates an expression (or dtype) of one instance to one of another.  If one term is a
bare parameter and the value of the other is known, the parameter is inferred.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from pipelink_rules.contract.parse_params import violated_limit
from pipelink_rules.expression.expression import names
from pipelink_rules.model.contract import DTYPES, Contract, Member, Param, Port
from pipelink_rules.model.program import MegakernelSpec
from pipelink_rules.model.source_span import Expr, Span
from pipelink_rules.program.connections import PortPair, parse_endpoint
from pipelink_rules.program.link_constants import constant_or_none

Key = tuple[str, str]  # (instance, parameter)
Value = int | str
MOST_CANDIDATES = 512  # values of one parameter that `where` clauses are tried on


@dataclass(frozen=True)
class Term:
    """One value of an instance: an expression over its parameters, or a dtype."""

    instance: str
    value: Expr | str  # a str is a dtype, or a parameter of type dtype
    span: Span | None
    parameter: str = ""  # set if the value is a bare parameter


@dataclass(frozen=True)
class Equality:
    """Two terms that must be equal, and why."""

    terms: tuple[Term, Term]
    reason: str  # "load.ab -> mma.ab", "the work tile", "tensor `x`"


def equalities(
    spec: MegakernelSpec, contracts: Mapping[str, Contract], links: list[PortPair]
) -> tuple[Equality, ...]:
    """Return all equalities of a megakernel, in a fixed order."""
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
    """Return pairs of members of the same name, or of the same position if the names differ."""
    names = {member.name: member for member in sink.members}
    if set(names) == {member.name for member in source.members}:
        return [(member, names[member.name]) for member in source.members]
    return list(zip(source.members, sink.members, strict=False))


def _term(
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
    first, second = members
    pairs: list[tuple[Expr | str, Expr | str]] = [*zip(first.shape, second.shape, strict=False)]
    if first.dtype and second.dtype:
        pairs.insert(0, (first.dtype, second.dtype))
    for pair in pairs:
        one, two = (
            _term(contracts, instance, value, member.span or port.span)
            for (instance, port), member, value in zip(ends, members, pair, strict=True)
        )
        yield Equality((one, two), reason)


def _of_tiles(contracts: Mapping[str, Contract]) -> Iterator[Equality]:
    works = [(name, contracts[name].work) for name in sorted(contracts)]
    for at, (a, one) in enumerate(works):
        for b, two in works[at + 1 :]:
            if one is None or two is None or one.kind != two.kind or len(one.tile) != len(two.tile):
                continue
            for left, right in zip(one.tile, two.tile, strict=True):
                terms = (_term(contracts, a, left, one.span), _term(contracts, b, right, two.span))
                yield Equality(terms, f"the work tile of `{a}` and `{b}`")


def _of_tensor(
    contracts: Mapping[str, Contract], keyword: str, ends: list[tuple[str, str]]
) -> Iterator[Equality]:
    ports = []
    for instance, name in ends:
        ports += [
            (instance, port)
            for port in (contracts[instance].ports if instance in contracts else ())
            if port.name == name and port.members
        ]
    for first, second in pairwise(ports):
        members = (first[1].members[0], second[1].members[0])
        yield from _of_members(contracts, (first, second), members, f"tensor `{keyword}`")


@dataclass(frozen=True)
class Fact:
    """A value of a parameter and its derivation."""

    value: Value
    given: bool
    root: str  # "load.TM", or the location of a literal; facts of one root never conflict
    places: tuple[tuple[Span | None, str], ...]  # the root, then the last derivation


class ParameterSolver:
    """The known values of the parameters of all instances."""

    def __init__(self, contracts: Mapping[str, Contract], equalities: tuple[Equality, ...]):
        self.contracts, self.equalities = contracts, equalities
        self.facts: dict[Key, Fact] = {}
        self.conflicts: list[tuple[Key, Fact, Fact]] = []  # two values of one parameter
        self._reported: set[frozenset[str]] = set()

    def assign(self, key: Key, value: Value, span: Span | None) -> None:
        """Record a value of the declaration."""
        place = (span, f"{key[1]} = {value} is set for `{key[0]}`")
        self.facts[key] = Fact(value, True, ".".join(key), (place,))

    def derive(self, key: Key, value: Value, span: Span | None, reason: str) -> None:
        """Record a value that another clause of the declaration implies, unless one is set."""
        said = f"`{key[0]}` has {key[1]} = {value} by {reason}"
        self.facts.setdefault(key, Fact(value, False, reason, ((span, said),)))

    def solve(self) -> None:
        """Infer all values."""
        self._follow_equalities()
        while self._follow_where() or self._follow_defaults():
            self._follow_equalities()

    def unknown(self) -> list[Key]:
        """Return the parameters without a value, sorted."""
        return sorted(
            (instance, param.name)
            for instance, contract in self.contracts.items()
            for param in contract.params
            if (instance, param.name) not in self.facts
        )

    def classes(self) -> list[list[Key]]:
        """Return the unknown parameters, grouped by equalities."""
        group = {key: {key} for key in self.unknown()}
        for equality in self.equalities:
            a, b = ((term.instance, term.parameter) for term in equality.terms)
            if a in group and b in group and group[a] is not group[b]:
                group[a] |= group[b]
                for key in group[b]:
                    group[key] = group[a]
        unique = {id(members): sorted(members) for members in group.values()}
        return sorted(unique.values())

    def environment(self, instance: str) -> dict[str, Value]:
        """Return the known parameters of an instance."""
        return {
            param.name: self.facts[instance, param.name].value
            for param in self.contracts[instance].params
            if (instance, param.name) in self.facts
        }

    def param(self, key: Key) -> Param:
        """Return the parameter."""
        return {item.name: item for item in self.contracts[key[0]].params}[key[1]]

    # -- equalities ---------------------------------------------------------------------------

    def _follow_equalities(self) -> None:
        changed = True
        while changed:
            changed = False
            for equality in self.equalities:
                a, b = equality.terms
                changed |= self._pull(equality, a, b)
                changed |= self._pull(equality, b, a)

    def _pull(self, equality: Equality, source: Term, target: Term) -> bool:
        """Infer the target's parameter from the source; return whether it is new."""
        fact = self._fact(source) if target.parameter else None
        if fact is None:
            return False
        key = (target.instance, target.parameter)
        said = f"`{target.instance}` has {target.parameter} = {fact.value} by {equality.reason}"
        new = Fact(fact.value, False, fact.root, (fact.places[0], (target.span, said)))
        old = self.facts.get(key)
        if old is None:
            self.facts[key] = new
            return True
        if old.value != new.value and not old.given:
            self._conflict(key, old, new)
        return False

    def _fact(self, term: Term) -> Fact | None:
        if term.parameter:
            return self.facts.get((term.instance, term.parameter))
        if isinstance(term.value, str):
            return self._literal(term, term.value) if term.value in DTYPES else None
        number = constant_or_none(term.value, self.environment(term.instance))
        return None if number is None else self._literal(term, number)

    def _literal(self, term: Term, value: Value) -> Fact:
        text = term.value if isinstance(term.value, str) else term.value.text
        named = f"{text} = {value}" if text != str(value) else text
        said = f"`{term.instance}` has {named} here"
        return Fact(value, False, f"{term.instance}: {text} at {term.span}", ((term.span, said),))

    def _conflict(self, key: Key, old: Fact, new: Fact) -> None:
        pair = frozenset((old.root, new.root))
        if pair not in self._reported:
            self._reported.add(pair)
            self.conflicts.append((key, old, new))

    # -- where clauses ------------------------------------------------------------------------

    def _follow_where(self) -> bool:
        """Set the first parameter for which the `where` clauses allow one value."""
        for key in self.unknown():
            instance, name = key
            env = self.environment(instance)
            clauses = [
                clause
                for clause in self.contracts[instance].where
                if name in names(clause) and names(clause) <= {*env, name}
            ]
            candidates = _candidates(self.param(key))
            left = [
                value
                for value in candidates
                if all(constant_or_none(clause, {**env, name: value}) for clause in clauses)
            ]
            if len(left) != 1 or not (clauses or len(candidates) == 1):
                continue
            place = self.param(key).span
            said = f"`{instance}` can only have {name} = {left[0]}"
            if clauses:
                place, said = clauses[0].span, f"{said}: {clauses[0].text}"
            self.facts[key] = Fact(left[0], False, f"{instance}.{name}", ((place, said),))
            return True
        return False

    # -- defaults -----------------------------------------------------------------------------

    def _follow_defaults(self) -> bool:
        """Set the first group of unknown parameters that has a default."""
        for members in self.classes():
            defaults = {
                key: default for key in members if (default := self.param(key).default) is not None
            }
            fitting = [
                key
                for key, default in defaults.items()
                if not any(violated_limit(self.param(other), default) for other in members)
            ]
            chosen = fitting or list(defaults)
            if not chosen:
                continue
            facts = [self._default(key, defaults[key]) for key in chosen]
            self.facts[chosen[0]] = facts[0]
            for other in facts[1:]:
                if other.value != facts[0].value:
                    self._conflict(chosen[0], facts[0], other)
            return True
        return False

    def _default(self, key: Key, value: Value) -> Fact:
        said = f"the default of `{key[0]}` is {key[1]} = {value}"
        return Fact(value, False, ".".join(key), ((self.param(key).span, said),))


def _candidates(param: Param) -> tuple[Value, ...]:
    """Return the values that a parameter may have, if they are few."""
    if param.choices:
        return tuple(value for value in param.choices if not violated_limit(param, value))
    if param.type == "dtype":
        return tuple(DTYPES)
    if param.minimum is None or param.maximum is None:
        return ()
    step = param.multiple_of or 1
    first = -(-param.minimum // step) * step
    if (param.maximum - first) // step >= MOST_CANDIDATES:
        return ()
    return tuple(range(first, param.maximum + 1, step))
