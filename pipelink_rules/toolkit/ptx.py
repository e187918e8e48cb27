"""Parser of PTX: text -> functions with their statements, and variables (PTX ISA, syntax).

Reads the output of nvcc (without line information); a statement is a label, a declaration, an
instruction or a brace.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pipelink_rules.diagnostics.diagnostic import PipelinkError, error

_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.S)
_LINKAGE = re.compile(r"\.(visible|weak|extern|common)\b")
_SPACE = re.compile(r"\.(global|const|shared|local)\b")
_DECLARATIONS = (".local", ".shared", ".global", ".const")
_HEADER = re.compile(r"^[ \t]*\.(version|target|address_size|file|loc)\b.*$", re.M)
_LABEL = re.compile(r"([A-Za-z_$%][\w$]*)\s*:(?!:)")


@dataclass(frozen=True)
class Statement:
    """One statement of a function body."""

    text: str  # without the semicolon, with white space collapsed
    guard: str  # "@%p1", "@!%p1" or ""
    opcode: str  # "bar.sync"; ".reg" for a declaration; "label", "{" or "}"
    operands: str

    @cached_property
    def base(self) -> str:
        """The instruction's name without its modifiers: `bar`."""
        return self.opcode.split(".", 1)[0]

    def arguments(self) -> list[str]:
        """Return the operands, split at the commas outside of brackets."""
        return list(self._arguments)

    @cached_property
    def _arguments(self) -> tuple[str, ...]:
        parts, depth, start = [], 0, 0
        for position, char in enumerate(self.operands):
            if char in "[{(":
                depth += 1
            elif char in "]})":
                depth -= 1
            elif char == "," and depth == 0:
                parts.append(self.operands[start:position].strip())
                start = position + 1
        parts.append(self.operands[start:].strip())
        return tuple(part for part in parts if part)


@dataclass(frozen=True)
class Function:
    """A function with a body."""

    name: str
    linkage: str  # "visible", "weak" or "" (internal)
    entry: bool  # a kernel
    header: str
    body: str

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The body, in order."""
        return tuple(map(_statement, _statement_texts(self.body)))


@dataclass(frozen=True)
class Variable:
    """A variable at module level or inside a function."""

    name: str
    linkage: str
    space: str  # global, const, shared, local
    text: str  # the whole declaration, with "=" if it has an initial value


@dataclass(frozen=True)
class Module:
    """A parsed PTX text."""

    functions: tuple[Function, ...]
    variables: tuple[Variable, ...]
    externs: tuple[str, ...]  # functions declared `.extern`

    def function(self, name: str) -> Function | None:
        """Return the function of that name if it is defined here."""
        return next((item for item in self.functions if item.name == name), None)


def without_comments(text: str) -> str:
    """Return the text with every comment replaced by a space."""
    return _COMMENT.sub(lambda hit: hit[0] if hit[0].startswith('"') else " ", text)


def read_ptx(text: str) -> Module:
    """Parse a PTX text."""
    functions: list[Function] = []
    variables: list[Variable] = []
    externs: list[str] = []
    for head, block in _items(_HEADER.sub("", without_comments(text))):
        if re.search(r"\.(func|entry)\b", head):
            name, linkage = _function_name(head), _linkage(head)
            if block is None:
                externs += [name] if linkage == "extern" else []
                continue
            entry = re.search(r"\.entry\b", head) is not None
            functions.append(Function(name, linkage, entry, head, block))
            statements = functions[-1].statements
            variables += [_variable(s.text) for s in statements if s.opcode in _DECLARATIONS]
        elif _SPACE.search(head):
            variables.append(_variable(head + (f" {{{block}}}" if block else "")))
    return Module(tuple(functions), tuple(variables), tuple(externs))


def _items(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield top-level items: (head, body without braces or None)."""
    start, position, length = 0, 0, len(text)
    while position < length:
        char = text[position]
        if char == ";":
            head = " ".join(text[start:position].split())
            if head:
                yield head, None
            start = position + 1
        elif char == "{":
            end = closing_brace(text, position)
            head = " ".join(text[start:position].split())
            if "=" in head:  # an initializer: the item ends at its semicolon
                end = text.find(";", end)
                if end < 0:
                    raise _malformed(text, position, "an initializer without an end")
                yield " ".join(text[start:end].split()), None
            else:
                yield head, text[position + 1 : end]
            start, position = end + 1, end
        position += 1


def closing_brace(text: str, opening: int) -> int:
    """Return the position of the brace that matches the one at `opening`."""
    depth = 0
    for hit in re.compile(r"[{}]").finditer(text, opening):
        depth += 1 if hit[0] == "{" else -1
        if depth == 0:
            return hit.start()
    raise _malformed(text, opening, "an unmatched brace")


def _malformed(text: str, position: int, what: str) -> PipelinkError:
    line = text.count("\n", 0, position) + 1
    found = " ".join(text[position : position + 200].split())
    return malformed_ptx(what, found, (f"in line {line}",))


def malformed_ptx(what: str, found: str = "", notes: tuple[str, ...] = ()) -> PipelinkError:
    """Return PL0904 for a text that nvcc did not write."""
    return error(
        "PL0904",
        f"malformed PTX in an object: {what}",
        expected="PTX as nvcc writes it",
        found=found,
        notes=notes,
        suggestions=("rebuild the component",),
        subject="ptx",
    )


def _linkage(head: str) -> str:
    found = _LINKAGE.search(head)
    return found[1] if found else ""


def _function_name(head: str) -> str:
    # .visible .func (.param .b32 r) name (params)   /   .visible .entry name (params)
    rest = re.split(r"\.(?:func|entry)\b", head, maxsplit=1)[1].strip()
    rest = re.sub(r"^\(.*?\)\s*", "", rest)
    found = re.match(r"[\w$%.]+", rest)
    return found[0] if found else ""


def _variable(text: str) -> Variable:
    declared = text.split("=", 1)[0]
    names = re.findall(r"(?<![\w.$%])[A-Za-z_$%][\w$]*(?=\s*(?:\[|,|$))", declared)
    space = _SPACE.search(text)
    return Variable(names[0] if names else "", _linkage(text), space[1] if space else "", text)


def _statement_texts(body: str) -> Iterator[str]:
    """Split at semicolons, labels and the braces of scopes (not those of operand vectors)."""
    current = ""
    for part in re.split(r"(;|\{|\}|\n)", body):
        stripped = part.strip()
        if part == "\n":
            current += " "
            label = _LABEL.match(current.strip())
            if label and not current.strip()[label.end() :].strip():
                yield current.strip()
                current = ""
        elif stripped == ";":
            yield from _with_labels(current)
            current = ""
        elif stripped in ("{", "}") and part == stripped and not current.strip():
            yield stripped
        else:
            current += part
    if current.strip():
        yield from _with_labels(current)


def _with_labels(text: str) -> Iterator[str]:
    rest = text.strip()
    label = _LABEL.match(rest)
    while label and rest[label.end() :].strip() and not rest.startswith("."):
        yield rest[: label.end()]
        rest = rest[label.end() :].strip()
        label = _LABEL.match(rest)
    if rest:
        yield " ".join(rest.split())


def _statement(text: str) -> Statement:
    if text in ("{", "}"):
        return Statement(text, "", text, "")
    if _LABEL.fullmatch(text):
        return Statement(text, "", "label", text.rstrip(": "))
    found = re.match(r"@!?[%\w]+\s*", text)
    guard = found[0] if found else ""
    opcode, _, operands = text[len(guard) :].partition(" ")
    return Statement(text, guard.strip(), opcode, operands.strip())
