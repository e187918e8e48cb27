"""How is a text quoted that somebody else wrote?  Printable, and no longer than a reader wants."""

from __future__ import annotations

LONGEST_LINE = 600  # characters of a message
LONGEST_TEXT = 8000  # of a clause, which may have several lines


def one_line(text: str) -> str:
    """The text in one line: what is not printable is written as an escape."""
    text = _shortened(text)
    return text if text.isprintable() else _shortened("".join(map(_escaped, text)))


def lines(text: str) -> str:
    """The text with its line breaks and tabs, and every other character printable."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[:LONGEST_TEXT]} ..."
    if text.isprintable():
        return text
    return "".join(char if char in "\n\t" else _escaped(char) for char in text)


def _shortened(text: str) -> str:
    if len(text) <= LONGEST_LINE:
        return text
    return f"{text[: LONGEST_LINE // 2]} ... {text[-LONGEST_LINE // 4 :]}"


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    return char.encode("unicode_escape").decode("ascii")
