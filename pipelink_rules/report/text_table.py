"""Rows of cells as aligned text: the one table format of maps and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def columns(
    heading: Sequence[str], rows: Iterable[Sequence[object]], indent: str = "  "
) -> list[str]:
    """Lines of an aligned table; columns whose cells are all numbers are set flush right.

    A heading is printed first; no line where there are no rows.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    if not cells:
        return []
    right = [_numeric([row[i] for row in cells]) for i in range(len(heading))]
    table = [list(heading), *cells]
    widths = [max(len(row[i]) for row in table) for i in range(len(heading))]
    lines = []
    for row in table:
        padded = [
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(row, widths, right, strict=True)
        ]
        lines.append((indent + "  ".join(padded)).rstrip())
    return lines


def _numeric(cells: Iterable[str]) -> bool:
    found = [cell for cell in cells if cell != "-"]
    return bool(found) and all(cell.replace(",", "").lstrip("+-").isdigit() for cell in found)
