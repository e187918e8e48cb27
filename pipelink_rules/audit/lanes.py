"""Values that differ between the threads of an interpreted group: `Lanes`, and operations on them.

A group is one or more whole warps that follow the same control flow.  Only what depends on the
thread is computed once per thread; everything else stays a single number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

Value = int | None  # of one thread; None = unknown data
_KNOWN = 4096  # results that a lifted function keeps


class Lanes:
    """One value for each thread of a group, not all equal."""

    __slots__ = ("_hash", "values")

    def __init__(self, values: tuple[Value, ...]) -> None:
        self.values = values
        self._hash = hash(values)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Lanes) and self.values == other.values)


Cell = Value | Lanes  # a register or a word of memory
Registers = dict[str, Cell]
Columns = Callable[[Sequence[Sequence[int]]], Iterable[int]]


class VariesError(Exception):
    """A value that must be the same for all threads of a group differs between them."""


class DivergedError(Exception):
    """A part of a warp executes what the whole warp, or all lanes of a mask, must execute."""

    def __init__(self, code: str, what: str, lanes: Sequence[int]) -> None:
        super().__init__(what)
        self.code, self.what, self.lanes = code, what, lanes


class WarpsDifferError(Exception):
    """The warps of a group do not run alike; `parts`: positions of the warps that do."""

    def __init__(self, parts: Collection[tuple[int, ...]]) -> None:
        super().__init__("warps differ")
        self.parts = parts


def cell_of(values: Iterable[Value]) -> Cell:
    """Return one value for each thread as a cell: a single number if they are equal."""
    found = tuple(values)
    return found[0] if found.count(found[0]) == len(found) else Lanes(found)


def at(cell: Cell, position: int) -> Value:
    """Return the value of one thread."""
    return cell.values[position] if isinstance(cell, Lanes) else cell


def uniform(cell: Cell) -> Value:
    """Return the value of all threads; VariesError if they differ."""
    if isinstance(cell, Lanes):
        raise VariesError
    return cell


def lift(
    function: Callable[..., Value],
    columns: Columns | None = None,
) -> Callable[..., Cell]:
    """Return the function of cells that applies a function of known values to each thread.

    columns: the same function of all threads at once; TypeError where a value is unknown.
    """
    known: dict[tuple[Cell, ...], Cell] = {}  # loops repeat the same values

    def lifted(*cells: Cell) -> Cell:
        if not any(isinstance(cell, Lanes) for cell in cells):
            return None if None in cells else function(*cells)
        if cells not in known:
            if len(known) >= _KNOWN:
                known.clear()
            known[cells] = _for_each(function, columns, cells)
        return known[cells]

    return lifted


def _for_each(
    function: Callable[..., Value],
    fast: Columns | None,
    cells: tuple[Cell, ...],
) -> Cell:
    """Apply a function of known values to those of each thread."""
    size = next(len(cell.values) for cell in cells if isinstance(cell, Lanes))
    columns = [c.values if isinstance(c, Lanes) else (c,) * size for c in cells]
    if fast is not None:
        with suppress(TypeError):
            return cell_of(fast(columns))  # type: ignore[arg-type]
    return cell_of([None if None in row else function(*row) for row in zip(*columns, strict=True)])


def combine(inside: Cell, outside: Cell, positions: Collection[int], size: int) -> Cell:
    """Return `inside` for the threads at some positions, `outside` for the others."""
    if inside is outside or inside == outside:
        return inside
    return cell_of(
        at(inside if position in positions else outside, position) for position in range(size)
    )
