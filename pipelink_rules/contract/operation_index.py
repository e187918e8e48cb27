"""Which counter, or which piece of scratch memory, does an operation name?  `signal done[tile]`.

The first index is a field of the work item: it tells work items apart that have nothing to do with
each other.  Scratch may have a second one, an expression: which piece of those of that field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipelink_rules.contract.findings import ContractFindings
from pipelink_rules.contract.yaml_tree import ScalarNode
from pipelink_rules.diagnostics.diagnostic import Label, PipelinkError
from pipelink_rules.expression import expression
from pipelink_rules.model.contract import Operation, Port
from pipelink_rules.model.source_span import Expr, Span

PER_ITEM = ("param", "field")
_INDEX = r"([A-Za-z_][A-Za-z0-9_]*) ?\[([^\[\]]*)\]"
_AFTER_VERB = re.compile(rf"(\w+ ){_INDEX}()")
_PLACES = {  # elsewhere than behind the verb, or with more behind it
    "copy": re.compile(rf"(copy ){_INDEX}( ?->.*)"),
    "store": re.compile(rf"(store [^\[\]]*-> ?){_INDEX}()"),
    "wait_until": re.compile(rf"(wait_until ){_INDEX}( .*)"),
}
_WITHOUT = ("await", "fence", "release")


@dataclass(frozen=True)
class Indexed:
    """An operation without its index, and the index."""

    text: str
    name: str = ""  # what is indexed
    parts: tuple[str, ...] = ()


def split_index(text: str) -> Indexed:
    """`read sums[tile, 0]` -> `read sums`, sums, (tile, 0); the text itself where it has none."""
    verb = text.split(" ", 1)[0]
    found = _PLACES.get(verb, _AFTER_VERB).fullmatch(text)
    if found is None or verb in _WITHOUT:
        return Indexed(text)
    before, name, index, after = found.groups()
    return Indexed(f"{before}{name}{after}", name, tuple(part.strip() for part in _at_top(index)))


def _at_top(text: str) -> list[str]:
    """The parts between commas that are in no parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def read_index(
    findings: ContractFindings,
    node: ScalarNode,
    op: Operation,
    indexed: Indexed,
    ports: Mapping[str, Port],
    declared: bool = True,
) -> Operation:
    """The operation with its index and threshold, their names judged."""
    if op.threshold is not None:
        threshold = _expression(findings, node, op.threshold.text, "the threshold")
        op = replace(op, threshold=threshold or Expr("0"))
    name = op.source if op.verb in ("copy", "store") else op.target
    port = ports.get(name)
    counter = port is not None and port.space == "counter"
    wanted = counter or (port is not None and port.scratch)
    if indexed.name and not wanted and declared:
        findings.add(
            "PL0015",
            f"`{indexed.name}` takes no index",
            node.span,
            *((Label(port.span, "declared here"),) if port is not None and port.span else ()),
            expected="an index of a counter or of scratch memory",
            found=f"{indexed.name}[{', '.join(indexed.parts)}]",
        )
        return op
    most = 1 if counter else 2
    if wanted and not 1 <= len(indexed.parts) <= most:
        findings.add(
            "PL0015",
            f"`{op.verb} {name}` does not say which " + ("counter" if counter else "piece"),
            node.span,
            expected=f"{name}[FIELD]" + ("" if counter else f" or {name}[FIELD, PIECE]"),
            found=f"{name}[{', '.join(indexed.parts)}]" if indexed.name else name,
        )
        return op
    if not wanted:
        return op
    parts = [_expression(findings, node, part, "the index") for part in indexed.parts]
    first = indexed.parts[0]
    if parts[0] is not None and findings.known.get(first) != "field" and not findings.blind:
        findings.add(
            "PL0031",
            f"the index of `{name}` cannot be `{first}`",
            _inside(node, first),
            expected="a field of the work item",
            found=first,
        )
    return replace(op, index=tuple(part for part in parts if part is not None))


def _expression(findings: ContractFindings, node: ScalarNode, text: str, what: str) -> Expr | None:
    expr = Expr(text, _inside(node, text))
    try:
        expression.check_syntax(expr)
    except PipelinkError as problem:
        findings.take(problem)
        return None
    findings.judge_names(expr, what, PER_ITEM)
    return expr


def _inside(node: ScalarNode, text: str) -> Span:
    """The place of a part of the operation, from its end: the verb's words may look the same."""
    offset = 0 if node.plain else 1
    at = node.text.rfind(text)
    if at < 0 or node.span.length != len(node.text) + 2 * offset:
        return node.span
    return replace(node.span, column=node.span.column + at + offset, length=max(1, len(text)))
