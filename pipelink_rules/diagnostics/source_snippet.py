"""How is a place in a file shown?  Labels of one file -> the source lines, with carets below."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import Label
from pipelink_rules.model.source_span import Span

LARGEST_FILE = 1 << 20  # bytes; larger files are named but not quoted
MOST = 400  # characters of a line, some of which may have no width
WIDEST = 116  # columns of a quoted line
_BREAKS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")

Lines = Callable[[str], Sequence[str]]


def source_lines(root: Path | None = None) -> Lines:
    """A reader of source files, relative to `root`; files that cannot be read have no lines."""

    @lru_cache(maxsize=64)
    def lines(file: str) -> Sequence[str]:
        try:
            if not ((root or Path()) / file).is_file():  # a pipe would never end
                return ()
            with open((root or Path()) / file, "rb") as stream:
                data = stream.read(LARGEST_FILE + 1)
        except (OSError, ValueError):
            return ()
        if len(data) > LARGEST_FILE:
            return ()
        return _BREAKS.split(data.decode("utf-8-sig", "replace"))

    return lines


def quote(labels: Sequence[tuple[Label, bool]], lines: Sequence[str], gutter: int) -> list[str]:
    """The quoted lines of one file, in order; (label, primary) gives `^` or `-` marks."""
    shown: dict[int, list[tuple[Label, bool]]] = {}
    for label, primary in labels:
        if 0 < label.span.line <= len(lines):
            shown.setdefault(label.span.line, []).append((label, primary))
    if not shown:
        return []
    text = [f"{'':{gutter}} |"]
    previous = 0
    for line in sorted(shown):
        if previous and line > previous + 1:
            text.append("...")
        previous = line
        here = sorted(shown[line], key=lambda item: (-item[0].span.column, item[1]))
        source, offset = _window(lines[line - 1], [item[0].span for item in here])
        text.append(f"{line:>{gutter}} | {source}".rstrip())
        for label, primary in here:
            start, width = _columns(lines[line - 1], label.span)
            start = max(0, start - offset)
            width = max(1, min(width, WIDEST + 2 - start))
            mark = ("^" if primary else "-") * width
            text.append(f"{'':{gutter}} | {' ' * start}{mark} {printable(label.text)}".rstrip())
    return text


def _window(line: str, spans: Sequence[Span]) -> tuple[str, int]:
    """The line, or the part of a long line around the first place; and how much was cut off."""
    text = printable(line)
    if _width(text) <= WIDEST and len(text) <= MOST:
        return text, 0
    start = min(_columns(line, span)[0] for span in spans)
    cut = max(0, start - WIDEST // 3)
    text = _drop(text, cut)
    shown = _drop(text, 0, WIDEST)
    head = "…" if cut else ""
    return head + shown + ("…" if len(shown) < len(text) else ""), cut - len(head)


def _drop(text: str, columns: int, most: int | None = None) -> str:
    """The text without its first columns, and not wider than `most`."""
    first = 0
    while columns > 0 and first < len(text):
        columns -= _width(text[first])
        first += 1
    if most is None:
        return text[first:]
    last, width = first, 0
    while last < len(text) and (width := width + _width(text[last])) <= most:
        if last - first == MOST:
            break
        last += 1
    return text[first:last]


def _columns(line: str, span: Span) -> tuple[int, int]:
    """Screen column and width of a span; a place past the end is just behind the line."""
    start = min(max(span.column, 1) - 1, len(line))
    before, inside = line[:start], line[start : start + max(span.length, 1)]
    return _width(printable(before)), _width(printable(inside, _width(printable(before)))) or 1


def printable(text: str, at: int = 0) -> str:
    """Tabs as spaces, control characters as U+FFFD: a file cannot steer the terminal."""
    if text.isprintable():
        return text
    found = []
    for character in text:
        if character == "\t":
            found.append(" " * (4 - at % 4))
        elif character.isprintable():
            found.append(character)
        else:
            found.append("\ufffd")
        at += _width(found[-1])
    return "".join(found)


def _width(text: str) -> int:
    """Columns on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
