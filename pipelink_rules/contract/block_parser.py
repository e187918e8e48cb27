"""Parser of the clauses of one mapping of a contract: nodes -> values, errors -> a sink.

`Block` is a mapping with a fixed set of keys.  Its methods return a clause as the required type, or
the default after an error, so that one pass reports every error of the file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Unpack

from pipelink_rules.contract.identifiers import invalid_identifier_reason
from pipelink_rules.contract.yaml_tree import MappingNode, Node, ScalarNode, SequenceNode, kind_of
from pipelink_rules.diagnostics.diagnostic import (
    Clauses,
    DiagnosticSink,
    Label,
    Location,
    PipelinkError,
)
from pipelink_rules.diagnostics.wording import nearest, plural, similar_name_help
from pipelink_rules.expression import expression
from pipelink_rules.expression.parse import IN_FLOW
from pipelink_rules.model.contract import DTYPES, PLACE_NAMES
from pipelink_rules.model.source_span import Expr, Span

INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
LARGEST = 2**31 - 1


def clauses(words: str) -> dict[str, bool]:
    """Return clause -> whether it is required, from their names; `*` marks a required one."""
    return {word.rstrip("*"): word.endswith("*") for word in words.split()}


class Block:
    """One mapping: the clauses of a component, port, role, ..."""

    def __init__(
        self, sink: ContractSink, node: Node, what: str, span: Span, keys: Mapping[str, bool]
    ):
        self.sink, self.what, self.span = sink, what, span
        self.value_spans: dict[str, Span] = {}
        self.keys: dict[str, Span] = {}  # key -> its span
        self.nodes: dict[str, Node] = {}
        self.readable = isinstance(node, MappingNode)
        self.misspelled: set[str] = set()  # clauses that are written under an unknown key
        if not isinstance(node, MappingNode):
            self.wrong(node, "a mapping of clauses", what)
            return
        left = set(keys) - {key.text for key, _ in node.entries if not key.derived}
        for key, value in node.entries:
            if key.text in self.nodes:
                sink.add(
                    "PL0008",
                    f"duplicate clause `{key.text}` in {what}",
                    key.span,
                    Label(self.keys[key.text], "first written here"),
                    suggestions=("remove one of them",),
                )
                continue
            self.keys[key.text], self.value_spans[key.text] = key.span, value.span
            if key.text in keys:
                self.nodes[key.text] = value
            else:
                self.nodes.setdefault(key.text, value)
                self.misspelled.add(nearest(key.text, left))
                sink.add(
                    "PL0005",
                    f"unknown clause `{key.text}` in {what}",
                    key.span,
                    suggestions=(IN_FLOW,)
                    if key.text.endswith(")")
                    else similar_name_help(key.text, left, "clauses"),
                )
        for name, required in keys.items():
            if required:
                self.require(name)

    def __contains__(self, key: str) -> bool:
        return key in self.nodes

    def is_derived(self, key: str) -> bool:
        """Whether a clause is not written, but follows from others."""
        node = self.nodes.get(key)
        return isinstance(node, ScalarNode) and node.derived

    def wrong(self, node: Node, expected: str, clause: str) -> None:
        """Reports a value of the wrong type."""
        message = f"{clause} must be {expected}"
        self.sink.add("PL0007", message, node.span, expected=expected, found=kind_of(node))

    def unknown_value(
        self,
        node: ScalarNode,
        clause: str,
        expected: str,
        known: Collection[str] = (),
        why: str = "",
    ) -> None:
        """Reports a word that a clause does not accept."""
        self.sink.add(
            "PL0009",
            f"unknown value `{node.text}` for {clause}{why}",
            node.span,
            expected=expected,
            found=node.text,
            suggestions=similar_name_help(node.text, known),
        )

    def invalid(self, span: Span, message: str, expected: str, found: object) -> None:
        """Reports a number, or a number of entries, that a clause does not accept."""
        self.sink.add("PL0017", message, span, expected=expected, found=str(found))

    def empty_range(self, key: str, what: str, least: int, most: int) -> None:
        """Reports the limits `min` and `max` of a clause, between which there is no number."""
        found = f"min {least}, max {most}"
        self.invalid(self.value_spans[key], f"empty range of {what}", "min <= max", found)

    def wrong_extents(self, key: str, extents: Collection[Expr], expected: str) -> None:
        """Reports a list of the wrong length."""
        message = f"wrong number of extents in {self.named(key)}"
        found = plural(len(extents), "extent")
        self.invalid(self.value_spans[key], message, expected, found)

    def named(self, key: str) -> str:
        """The clause as messages name it."""
        return f"`{key}` of {self.what}" if self.what else f"`{key}`"

    def refuse(self, key: str, reason: str, help_: str = "") -> None:
        """Reports PL0018 where the clause is written although it does not apply."""
        if key in self.nodes:
            self.sink.add(
                "PL0018",
                f"`{key}` does not apply to {self.what}: {reason}",
                self.keys[key],
                suggestions=(help_ or f"remove `{key}`",),
            )

    def require(self, key: str, reason: str = "", help_: str = "") -> None:
        """Reports PL0006 where the clause is missing; `reason` is a relative clause."""
        if self.readable and key not in self.nodes and key not in self.misspelled:
            self.sink.add(
                "PL0006",
                f"missing clause `{key}` in {self.what}" + (f", {reason}" if reason else ""),
                self.span,
                suggestions=(help_,) if help_ else (),
                subject=f"{self.what}: {key}",
            )

    # -- scalars ------------------------------------------------------------------------------

    def scalar(self, key: str, expected: str) -> ScalarNode | None:
        """The scalar of a clause, or None."""
        node = self.nodes.get(key)
        if node is None:
            return None
        if isinstance(node, ScalarNode) and node.text.strip():
            return node
        self.wrong(node, expected, self.named(key))
        return None

    def text(self, key: str, default: str = "") -> str:
        """Free text."""
        node = self.scalar(key, "text")
        return node.text if node else default

    def word(self, key: str, choices: Collection[str], default: str) -> str:
        """One of a few words."""
        node = self.scalar(key, "a word")
        if node is None:
            return default
        if node.text in choices:
            return node.text
        self.unknown_value(node, self.named(key), "one of " + ", ".join(choices), choices)
        return default

    def flag(self, key: str, default: bool) -> bool:
        """`true` or `false`."""
        node = self.scalar(key, "`true` or `false`")
        if node is None:
            return default
        if node.text not in ("true", "false"):
            self.wrong(node, "`true` or `false`", self.named(key))
            return default
        return node.text == "true"

    def integer(self, key: str, default: int, least: int, most: int = LARGEST) -> int:
        """An integer between two limits, both included."""
        node = self.scalar(key, "an integer")
        return default if node is None else self.number(node, self.named(key), default, least, most)

    def number(
        self, node: ScalarNode, clause: str, default: int, least: int, most: int = LARGEST
    ) -> int:
        """The integer of a scalar."""
        if not INTEGER.fullmatch(node.text) or not node.plain or len(node.text) > 12:
            self.wrong(node, "an integer", clause)
            return default
        value = int(node.text)
        if not least <= value <= most:
            bounds = f"{least} or more" if most == LARGEST else f"{least} to {most}"
            self.invalid(node.span, f"invalid value {value} for {clause}", bounds, value)
            return default
        return value

    def choice(self, key: str, choices: tuple[int, ...], default: int) -> int:
        """One of a few numbers."""
        node = self.scalar(key, "an integer")
        if node is None:
            return default
        if node.text in map(str, choices):
            return int(node.text)
        message = f"invalid value {node.text} for {self.named(key)}"
        self.invalid(node.span, message, "one of " + ", ".join(map(str, choices)), node.text)
        return default

    def dtype(self, key: str, default: str = "") -> str:
        """A dtype, or a parameter of type dtype."""
        node = self.scalar(key, "a dtype")
        if node is None:
            return default
        allowed = {*DTYPES, *self.sink.dtype_params}
        if node.text in allowed or (self.sink.incomplete and node.text not in DTYPES):
            return node.text
        expected = "one of " + ", ".join(DTYPES) + " or a parameter of type dtype"
        of_int = self.sink.known.get(node.text) == "param"
        why = ", a parameter of type int" if of_int else ""
        self.unknown_value(node, self.named(key), expected, allowed, why)
        return default

    # -- expressions --------------------------------------------------------------------------

    def expr(self, key: str, scope: Collection[str], default: Expr | None = None) -> Expr | None:
        """An expression over the kinds of names in `scope`."""
        node = self.scalar(key, "an expression")
        return default if node is None else self.expression(node, key, scope) or default

    def exprs(
        self, key: str, scope: Collection[str], may_be_empty: bool = False
    ) -> tuple[Expr, ...]:
        """A list of expressions."""
        return tuple(
            expr
            for node in self.items(key, "expressions", may_be_empty)
            if (expr := self.expression(node, key, scope)) is not None
        )

    def expression(self, node: Node, key: str, scope: Collection[str]) -> Expr | None:
        """The expression of a node, its syntax and names checked."""
        if not isinstance(node, ScalarNode):
            self.wrong(node, "an expression", self.named(key))
            return None
        span, text = node.span, node.text
        if not node.plain and span.length == len(text) + 2:  # point inside the quotes
            span = replace(span, column=span.column + 1, length=len(text))
        expr = Expr(" ".join(text.split()) if "\n" in text else text.strip(), span)
        try:
            expression.check_syntax(expr)
        except PipelinkError as problem:
            self.sink.adopt(problem)
            return None
        self.sink.check_names(expr, self.named(key), scope)
        return expr

    # -- collections --------------------------------------------------------------------------

    def items(self, key: str, what: str, may_be_empty: bool = False) -> tuple[Node, ...]:
        """The nodes of a list."""
        node = self.nodes.get(key)
        if node is None:
            return ()
        if not isinstance(node, SequenceNode):
            self.wrong(node, f"a list of {what}", self.named(key))
            return ()
        if not node.items and not may_be_empty:
            self.wrong(node, f"a non-empty list of {what}", self.named(key))
        return node.items

    def words(self, key: str, what: str) -> tuple[ScalarNode, ...]:
        """A list of words."""
        found = []
        for node in self.items(key, what):
            if isinstance(node, ScalarNode) and node.text:
                found.append(node)
            else:
                self.wrong(node, "a word", self.named(key))
        return tuple(found)

    def block(self, key: str, keys: Mapping[str, bool], what: str = "") -> Block | None:
        """A nested mapping with fixed keys."""
        node = self.nodes.get(key)
        if node is None:
            return None
        return Block(self.sink, node, what or self.named(key), self.keys[key], keys)

    def blocks(self, key: str, keys: Mapping[str, bool], kind: str) -> Iterator[tuple[str, Block]]:
        """A mapping of names to mappings with fixed keys; the names are checked."""
        node = self.nodes.get(key)
        if node is None:
            return
        if not isinstance(node, MappingNode):
            self.wrong(node, f"a mapping of names to {kind}s", self.named(key))
            self.sink.incomplete = True
            return
        seen: dict[str, Span] = {}
        for name, value in node.entries:
            if name.text in seen:
                self.sink.add(
                    "PL0013",
                    f"duplicate {kind} `{name.text}`",
                    name.span,
                    Label(seen[name.text], "first declared here"),
                )
                continue
            seen[name.text] = name.span
            self.sink.check_identifier(name, kind)
            yield name.text, Block(self.sink, value, f"{kind} `{name.text}`", name.span, keys)


# kind of a name -> its description in messages
NAMED = {
    "param": "a parameter, known at compile time",
    "symbol": "a symbol, known only at launch",
    "field": "a work field, which varies between work tiles",
}

_PLURAL = {
    "param": "parameters",
    "symbol": "symbols",
    "field": "work fields",
    "place": "`trip` and `warp`",
}
LONGEST_MESSAGE = 240  # characters


class ContractSink(DiagnosticSink):
    """The diagnostics of one contract, and the names that its expressions may use."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, str] = {}  # name -> kind (see NAMED)
        self.dtype_params: set[str] = set()
        self.incomplete = False  # a clause that declares names is unreadable: accept any name

    def add(
        self, code: str, message: str, *locations: Location, **clauses: Unpack[Clauses]
    ) -> None:
        """Adds one diagnostic; names of the file in its message may be of any length and form."""
        message = " ".join(message.split())[:LONGEST_MESSAGE]
        clauses.setdefault("subject", f"{locations[0] if locations else None}: {message}")
        super().add(code, message, *locations, **clauses)

    def adopt(self, problem: PipelinkError) -> None:
        """Adds the diagnostics of an expression, each with its location as part of its subject."""
        for item in problem.diagnostics:
            location = str(item.labels[0].span) if item.labels else ""
            self.items.append(replace(item, subject=f"{location}: {item.subject}"))

    def unknown(
        self, code: str, kind: str, name: str, where: str, span: Span | None, known: Collection[str]
    ) -> None:
        """Reports a name of some kind that is not declared."""
        suggestions = similar_name_help(name, known, f"{kind}s")
        self.add(code, f"unknown {kind} `{name}` in {where}", span, suggestions=suggestions)

    def check_identifier(self, name: ScalarNode, kind: str) -> None:
        """Reports PL0012 for a name that the generated C++ cannot use."""
        if reason := invalid_identifier_reason(name.text):
            self.add("PL0012", f"invalid {kind} name `{name.text}`: {reason}", name.span)

    def check_names(self, expr: Expr, clause: str, scope: Collection[str]) -> None:
        """Reports PL0031 for every name that is unknown, or of a kind that is not in `scope`."""
        known = self.known | (dict.fromkeys(PLACE_NAMES, "place") if "place" in scope else {})
        for name in () if self.incomplete else sorted(expression.names(expr)):
            span = expression.name_span(expr, name)
            if name not in known:
                usable = [other for other, kind in known.items() if kind in scope]
                self.unknown("PL0031", "name", name, clause, span, usable)
            elif known[name] not in scope:
                self.add(
                    "PL0031",
                    f"{clause} cannot depend on `{name}`",
                    span,
                    expected=" and ".join(_PLURAL[kind] for kind in scope),
                    found=NAMED[known[name]],
                )
