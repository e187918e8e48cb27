"""Clauses and operations as YAML nodes, for the derivation that runs before they are parsed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipelink_rules.contract.yaml_tree import MappingNode, Node, ScalarNode, SequenceNode
from pipelink_rules.model.source_span import Span


@dataclass(frozen=True)
class OperationLine:
    """One operation of a role, with the counts of the repeats around it."""

    role: str
    text: str
    span: Span
    repeats: tuple[str, ...]
    in_body: bool


class ClauseTable:
    """A mapping whose missing clauses are filled in; empty and fixed where the node is not one."""

    def __init__(self, node: Node | None):
        self.whole = isinstance(node, MappingNode)
        self.entries = list(node.entries) if isinstance(node, MappingNode) else []
        self.span = node.span if node is not None else Span("")

    def __contains__(self, key: str) -> bool:
        return any(name.text == key for name, _ in self.entries)

    def get(self, key: str) -> Node | None:
        return next((node for name, node in self.entries if name.text == key), None)

    def text(self, key: str) -> str:
        """Return the text of a scalar clause, "" where it is not written."""
        node = self.get(key)
        return " ".join(node.text.split()) if isinstance(node, ScalarNode) else ""

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the texts of a list of scalars, () where it is not one."""
        node = self.get(key)
        items = node.items if isinstance(node, SequenceNode) else ()
        return tuple(item.text for item in items if isinstance(item, ScalarNode))

    def fill(self, key: str, value: Node | str | None, span: Span | None = None) -> None:
        """Add a clause that is not written, unless its value is empty."""
        if not value or not self.whole or key in self:
            return
        at = span or self.span
        node = ScalarNode(value, True, at, derived=True) if isinstance(value, str) else value
        self.entries.append((ScalarNode(key, True, at, derived=True), node))

    def put(self, key: str, node: Node) -> None:
        """Replace the value of a clause."""
        self.entries = [(name, node if name.text == key else old) for name, old in self.entries]

    def inner(self, key: str, span: Span | None = None) -> ClauseTable:
        """Return the mapping of a clause, empty where it is not written."""
        return ClauseTable(self.get(key) or MappingNode((), span or self.span))

    def store(self, key: str, table: ClauseTable) -> None:
        """Put the mapping of a clause back, or add it where it has entries."""
        if table.whole and key in self:
            self.put(key, table.node())
        elif table.whole and table.entries:
            self.fill(key, table.node())

    def node(self) -> MappingNode:
        return MappingNode(tuple(self.entries), self.span)


def operation_lines(role: str, table: ClauseTable) -> Iterator[OperationLine]:
    for key in ("prologue", "body", "epilogue"):
        node = table.get(key)
        if isinstance(node, SequenceNode):
            yield from _walk(role, node.items, (), key == "body")


def _walk(
    role: str, nodes: tuple[Node, ...], repeats: tuple[str, ...], in_body: bool
) -> Iterator[OperationLine]:
    for node in nodes:
        if isinstance(node, ScalarNode):
            yield OperationLine(role, " ".join(node.text.split()), node.span, repeats, in_body)
        elif isinstance(node, MappingNode):
            table = ClauseTable(node)
            inner = table.get("body")
            if isinstance(inner, SequenceNode):
                yield from _walk(role, inner.items, (*repeats, table.text("repeat")), in_body)
