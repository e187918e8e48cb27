"""How are the clauses of a contract read without stopping at the first mistake?

`Block` is one mapping of the file with a fixed set of keys.  Its methods return a clause as the
type that is wanted, or the default after a finding; all findings of the file are collected.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Unpack

from pipelink_rules.contract.identifiers import invalid_identifier_reason
from pipelink_rules.contract.yaml_tree import MappingNode, Node, ScalarNode, SequenceNode, kind_of
from pipelink_rules.diagnostics.diagnostic import Clauses, Label, Location, PipelinkError
from pipelink_rules.diagnostics.sink import DiagnosticSink
from pipelink_rules.diagnostics.wording import nearest, similar_name_help
from pipelink_rules.expression import expression
from pipelink_rules.expression.parse import IN_FLOW
from pipelink_rules.model.contract import DTYPES
from pipelink_rules.model.source_span import Expr, Span

INTEGER = re.compile(r"-?(0|[1-9][0-9]*)")
LARGEST = 2**31 - 1


class Block:
    """One mapping: the clauses of a component, port, role, ..."""

    def __init__(
        self,
        sink: ContractSink,
        node: Node,
        what: str,
        span: Span,
        keys: Mapping[str, bool],
    ):
        self.sink, self.what, self.span = sink, what, span
        self.value_spans: dict[str, Span] = {}  # key -> where its value is
        self.keys: dict[str, Span] = {}  # key -> where the key is
        self.nodes: dict[str, Node] = {}
        self.readable = isinstance(node, MappingNode)
        self.misspelled: set[str] = set()  # clauses that are there under a wrong key
        if not isinstance(node, MappingNode):
            self.wrong(node, "a mapping of clauses", what)
            return
        left = set(keys) - {key.text for key, _ in node.entries if not key.derived}
        for key, value in node.entries:
            if key.text in self.nodes:
                sink.add(
                    "PL0008",
                    f"{what} has `{key.text}` twice",
                    key.span,
                    Label(self.keys[key.text], "first here"),
                    suggestions=("keep one of them",),
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
                    f"{what} has no clause `{key.text}`",
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
        """Whether a clause is not written: it follows from others."""
        node = self.nodes.get(key)
        return isinstance(node, ScalarNode) and node.derived

    def wrong(self, node: Node, expected: str, clause: str) -> None:
        """Records a value of the wrong type."""
        message = f"{clause} is not {expected}"
        self.sink.add("PL0007", message, node.span, expected=expected, found=kind_of(node))

    def named(self, key: str) -> str:
        """How messages call a clause."""
        return f"`{key}` of {self.what}" if self.what else f"`{key}`"

    def refuse(self, key: str, reason: str, help_: str = "") -> None:
        """PL0018 where the clause is written although it does not apply."""
        if key in self.nodes:
            self.sink.add(
                "PL0018",
                f"`{key}` does not apply to {self.what}: {reason}",
                self.keys[key],
                suggestions=(help_ or f"leave `{key}` out",),
            )

    def require(self, key: str, reason: str = "", help_: str = "") -> None:
        """PL0006 where the clause is missing although this kind needs it."""
        if self.readable and key not in self.nodes and key not in self.misspelled:
            self.sink.add(
                "PL0006",
                f"{self.what} needs `{key}`" + (f": {reason}" if reason else ""),
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
        self.sink.add(
            "PL0009",
            f"{self.named(key)} cannot be `{node.text}`",
            node.span,
            expected="one of " + ", ".join(choices),
            found=node.text,
            suggestions=similar_name_help(node.text, choices),
        )
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
        """A number between two limits, both included."""
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
            self.sink.add(
                "PL0017",
                f"{clause} cannot be {value}",
                node.span,
                expected=bounds,
                found=str(value),
            )
            return default
        return value

    def choice(self, key: str, choices: tuple[int, ...], default: int) -> int:
        """One of a few numbers."""
        node = self.scalar(key, "an integer")
        if node is None:
            return default
        if node.text in map(str, choices):
            return int(node.text)
        self.sink.add(
            "PL0017",
            f"{self.named(key)} cannot be {node.text}",
            node.span,
            expected="one of " + ", ".join(map(str, choices)),
            found=node.text,
        )
        return default

    def dtype(self, key: str, default: str = "") -> str:
        """A dtype, or a parameter of type dtype."""
        node = self.scalar(key, "a dtype")
        if node is None:
            return default
        allowed = {*DTYPES, *self.sink.dtype_params}
        if node.text in allowed or (self.sink.incomplete and node.text not in DTYPES):
            return node.text
        of_int = self.sink.known.get(node.text) == "param"
        self.sink.add(
            "PL0009",
            f"{self.named(key)} cannot be `{node.text}`"
            + (": this parameter is not of type dtype" if of_int else ""),
            node.span,
            expected="one of " + ", ".join(DTYPES) + " or a parameter of type dtype",
            found=node.text,
            suggestions=similar_name_help(node.text, allowed),
        )
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
            self.sink.take(problem)
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
            self.wrong(node, f"a list with {what} in it", self.named(key))
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
        """A mapping with fixed keys, below this one."""
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
                    f"there are two {kind}s `{name.text}`",
                    name.span,
                    Label(seen[name.text], "first here"),
                )
                continue
            seen[name.text] = name.span
            if reason := invalid_identifier_reason(name.text):
                self.sink.add("PL0012", f"`{name.text}` cannot name a {kind}: {reason}", name.span)
            yield name.text, Block(self.sink, value, f"{kind} `{name.text}`", name.span, keys)


# kind of a name -> how messages call it
NAMED = {
    "param": "a parameter, known at compile time",
    "symbol": "a symbol, known only at launch",
    "field": "a field of the work item, which varies from item to item",
}

_PLURAL = {"param": "parameters", "symbol": "symbols", "field": "work fields"}
LONGEST_MESSAGE = 240  # characters


class ContractSink(DiagnosticSink):
    """What is wrong with one file, and the names that its expressions may use."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, str] = {}  # name -> kind (see NAMED)
        self.dtype_params: set[str] = set()
        self.incomplete = False  # a clause that declares names is unreadable: do not judge names

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

    def check_names(self, expr: Expr, clause: str, scope: Collection[str]) -> None:
        """PL0031 for every name of an expression that is unknown, or of a kind not in `scope`."""
        known = self.known
        for name in () if self.incomplete else sorted(expression.names(expr)):
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
                accepted = " and ".join(_PLURAL[kind] for kind in scope)
                self.add(
                    "PL0031",
                    f"{clause} cannot use `{name}`",
                    place,
                    expected=f"an expression over {accepted}",
                    found=f"`{name}` is {NAMED[known[name]]}",
                )
