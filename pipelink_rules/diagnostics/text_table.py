"""Rows of cells as aligned text, and the width that output may have.

A terminal has a width, a file has none: COLUMNS is an environment variable that describes the
terminal PipeLink was started in, and says nothing where the output goes to a file or a program.
"""

import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest

UNBOUNDED = 10_000  # columns; nothing that is printed is as wide
LEAST_COLUMN = 8  # columns; no column is made narrower


def output_width(otherwise: int = UNBOUNDED, least: int = 40) -> int:
    """Columns of the terminal that standard output is, at least `least`; else `otherwise`."""
    if not sys.stdout.isatty():
        return otherwise
    return max(least, shutil.get_terminal_size((otherwise, 24)).columns)


def format_table(
    heading: Sequence[str],
    rows: Iterable[Sequence[object]],
    indent: str = "  ",
    *,
    right: Collection[int] | None = None,
    rule: bool = False,
    width: int = UNBOUNDED,
) -> list[str]:
    """Lines of an aligned table below its heading; no line where there are no rows.

    right: the columns that are set flush right; None = those whose cells are all numbers.
    rule: draw a line below the heading.
    width: cells of all columns but the first are wrapped where the table would be wider.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    if not cells:
        return []
    if right is None:
        right = {i for i in range(len(heading)) if _numeric(row[i] for row in cells)}
    table = [list(heading), *cells]
    widths = [max(len(row[i]) for row in table) for i in range(len(heading))]
    _narrow(widths, width - len(indent))
    lines = []
    for number, row in enumerate(table):
        wrapped = (
            textwrap.wrap(cell, size) if len(cell) > size else [cell]
            for cell, size in zip(row, widths, strict=True)
        )
        for parts in zip_longest(*wrapped, fillvalue=""):
            padded = (
                part.rjust(size) if i in right else part.ljust(size)
                for i, (part, size) in enumerate(zip(parts, widths, strict=True))
            )
            lines.append((indent + "  ".join(padded)).rstrip())
        if rule and number == 0:
            lines.append(indent + "─" * (sum(widths) + 2 * len(widths) - 2))
    return lines


def _narrow(widths: list[int], room: int) -> None:
    """Takes columns from the widest cells until the table fits, or no column can be narrower."""
    while sum(widths) + 2 * (len(widths) - 1) > room:
        widest = max(range(1, len(widths)), key=widths.__getitem__, default=0)
        if not widest or widths[widest] <= LEAST_COLUMN:
            return
        widths[widest] -= 1


def _numeric(cells: Iterable[str]) -> bool:
    found = [cell for cell in cells if cell != "-"]
    return bool(found) and all(cell.replace(",", "").lstrip("+-").isdigit() for cell in found)
