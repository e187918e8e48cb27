"""Parser of YAML files: bytes -> scalar, sequence and mapping nodes with spans.

It accepts a strict part of YAML: one document of mappings, lists and scalars.  Aliases, anchors,
tags and deep nesting are errors: contracts do not need them, and aliases can expand without bound.
Scalars stay text, because only the parser of a clause knows whether it requires a number or a word:
`no`, `1.0` and `0x10` are not converted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import yaml  # type: ignore[import-untyped]

from pipelink_rules.diagnostics.diagnostic import Details, PipelinkError, error
from pipelink_rules.model.source_span import Span

LARGEST_FILE = 1 << 20  # bytes
DEEPEST = 16  # nested collections
MOST_NODES = 20_000
LINE_BREAKS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # those that YAML counts


@dataclass(frozen=True)
class ScalarNode:
    """A word, number or text."""

    text: str
    plain: bool  # written without quotes
    span: Span
    derived: bool = False  # not written: it follows from other clauses


@dataclass(frozen=True)
class SequenceNode:
    """A list."""

    items: tuple[Node, ...]
    span: Span


@dataclass(frozen=True)
class MappingNode:
    """A mapping; a duplicate key has two entries."""

    entries: tuple[tuple[ScalarNode, Node], ...]
    span: Span


Node = ScalarNode | SequenceNode | MappingNode


def kind_of(node: Node) -> str:
    """Return the node as messages describe it."""
    if isinstance(node, ScalarNode):
        return f"`{node.text[:40]}`" if node.text else "nothing"
    return "a list" if isinstance(node, SequenceNode) else "a mapping"


def describe(path: str | Path) -> str:
    """Return the path relative to the working directory where it is below it, else unchanged."""
    try:
        return Path(path).resolve().relative_to(Path.cwd().resolve()).as_posix()
    except (ValueError, OSError, RuntimeError):  # the last one: a link to itself
        return str(path)


def _error(code: str, message: str, span: Span, **clauses: Unpack[Details]) -> PipelinkError:
    """A diagnostic whose subject is the file."""
    return error(code, message, span, subject=span.file, **clauses)


def read_text(path: str | Path, file: str) -> str:
    """Return the text of a file; raise PL0001 where it is missing, too large or not UTF-8."""
    try:
        require_content(path)
        with open(path, "rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise _error(
            "PL0001", f"{file} does not exist", Span(file), suggestions=_neighbors(Path(path))
        ) from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise _error("PL0001", f"cannot read {file}: {reason}", Span(file)) from None
    if len(data) > LARGEST_FILE:
        raise _error(
            "PL0001",
            f"{file} is larger than {LARGEST_FILE:,} bytes",
            Span(file),
            expected="the contract of one component",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        before = data[: problem.start]
        line = before.count(b"\n") + 1
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
        raise _error(
            "PL0001",
            f"{file} is not valid UTF-8: byte 0x{data[problem.start]:02x}",
            Span(file, line, column),
            suggestions=("save the file as UTF-8",),
        ) from None


def require_content(path: str | Path) -> None:
    """Raise ValueError for pipes and devices, from which reading may never end."""
    file = Path(path)
    if file.exists() and not file.is_file() and not file.is_dir():
        raise ValueError("it is not a regular file")


def _neighbors(path: Path) -> tuple[str, ...]:
    try:
        found = sorted(item.name for item in path.parent.glob("*.contract.yaml"))
    except OSError:
        return ()
    return (f"contracts in this folder: {', '.join(found[:8])}",) if found else ()


def parse_yaml(text: str, file: str) -> Node:
    """Return the document of a text; raise PL0002 for invalid and PL0003 for unsupported YAML."""
    builder = _Builder(text, file)
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            builder.take(event)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        place = builder.place(mark, mark) if mark else Span(file)
        reason = problem.problem or problem.context or "it cannot be parsed"
        raise _error(
            "PL0002",
            f"invalid YAML: {reason}",
            place,
            notes=(problem.context,) if problem.context and problem.problem else (),
            suggestions=_yaml_help(reason),
        ) from None
    except yaml.reader.ReaderError as problem:
        before = text[: problem.position]
        lines = LINE_BREAKS.split(before)
        raise _error(
            "PL0002",
            f"invalid YAML: the character U+{ord(text[problem.position]):04X} is not allowed",
            Span(file, len(lines), len(lines[-1]) + 1),
        ) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as problem:
        reason = " ".join(str(problem).split())[:200]
        raise _error("PL0002", f"invalid YAML: {reason}", Span(file)) from None
    return builder.root if builder.root is not None else MappingNode((), Span(file, 1, 1))


def _yaml_help(reason: str) -> tuple[str, ...]:
    if "\\t" in reason:
        return ("indent with spaces",)
    if "mapping values are not allowed" in reason:
        return ("quote the text that contains `: `",)
    if "cannot start any token" in reason:
        return ("quote the text",)
    if "',' or" in reason:
        return ("close every [ with ] and every { with }",)
    return ()


class _Builder:
    """Events to nodes, on a stack of open collections instead of recursion."""

    def __init__(self, text: str, file: str):
        self.file = file
        self.lines = LINE_BREAKS.split(text)
        self.root: Node | None = None
        self.open: list[tuple[str, yaml.Mark, list[Node]]] = []
        self.count = 0
        self.documents = 0

    def take(self, event: yaml.Event) -> None:
        start = event.start_mark
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise self.refuse(
                event, "anchors and aliases are not supported in contracts", "repeat the text"
            )
        if getattr(event, "tag", None) is not None:
            raise self.refuse(event, "tags are not supported in contracts", "remove the tag")
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise self.refuse(event, "second document in one file", "write one file each")
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            if len(self.open) >= DEEPEST:
                raise self.refuse(event, f"nesting is deeper than {DEEPEST} levels", "")
            kind = "table" if isinstance(event, yaml.MappingStartEvent) else "items"
            self.open.append((kind, start, []))
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            kind, begin, children = self.open.pop()
            span = self.place(begin, event.end_mark)
            if kind == "items":
                self.add(SequenceNode(tuple(children), span))
            else:
                pairs = zip(children[::2], children[1::2], strict=True)
                self.add(MappingNode(tuple((self.key(k), value) for k, value in pairs), span))
        elif isinstance(event, yaml.ScalarEvent):
            self.add(
                ScalarNode(event.value, event.style is None, self.place(start, event.end_mark))
            )

    def add(self, node: Node) -> None:
        self.count += 1
        if self.count > MOST_NODES:
            raise _error("PL0003", f"more than {MOST_NODES:,} values", node.span)
        if self.open:
            self.open[-1][2].append(node)
        else:
            self.root = node

    def key(self, node: Node) -> ScalarNode:
        if isinstance(node, ScalarNode):
            return node
        raise _error("PL0003", "a key must be a word", node.span)

    def refuse(self, event: yaml.Event, reason: str, fix: str) -> PipelinkError:
        span = self.place(event.start_mark, event.end_mark)
        return _error("PL0003", reason, span, suggestions=(fix,) if fix else ())

    def place(self, start: yaml.Mark, end: yaml.Mark) -> Span:
        """Return the span between two marks, cut at the end of the first line."""
        line = self.lines[start.line] if start.line < len(self.lines) else ""
        stop = end.column if end.line == start.line else _before_comment(line)
        return Span(self.file, start.line + 1, start.column + 1, max(1, stop - start.column))


def _before_comment(line: str) -> int:
    return len(line.split(" #")[0].rstrip())
