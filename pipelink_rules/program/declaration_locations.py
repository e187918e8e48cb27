"""Locations of the entries of a declaration: text of an SConscript, line, keys -> location.

The SConscript is parsed as Python, never run.  An entry that is computed (a loop, a comprehension)
has no location; the caller then uses that of the closest entry that encloses it.
"""

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple


class Location(NamedTuple):
    """Characters in one line of a text; line and column count from 1."""

    line: int
    column: int
    length: int


def locate(text: str, call_line: int, *path: str) -> Location | None:
    """Return the location of an entry of the call at `call_line`.

    path: keyword of the call, then keys: ("instances", "load", "TM"), ("tensors", "x", "load.X").
    The last key may also be a string of a list.  If the first key is not a keyword of the
    call, all strings of the call are searched.  The result is None if it is not written there.
    """
    call = _call_at(text, call_line, path[0] if path else "")
    if call is None:
        return None
    if not path:
        return _location(text, call.func)
    names = _names(text, call.lineno)
    keyword = next((item for item in call.keywords if item.arg == path[0]), None)
    if keyword is None:
        return _first(text, call, path[-1])
    if len(path) == 1:
        return _location(text, keyword, len(path[0]))
    node = keyword.value
    for key in path[1:-1]:
        inside = _entry(node, key, names)
        if inside is None:
            return None
        node = inside[1]
    found = _entry(node, path[-1], names)
    return _location(text, found[0]) if found else _first(text, node, path[-1])


def duplicates(text: str, call_line: int) -> tuple[tuple[tuple[str, ...], Location, Location], ...]:
    """Return the duplicate keys of dicts of the call: (path, first location, second location).

    Python silently keeps only the last of them.
    """
    call = _call_at(text, call_line, "")
    if call is None:
        return ()
    names, found = _names(text, call.lineno), []
    for keyword in call.keywords:
        if keyword.arg is None:
            continue
        for path, dictionary in _dicts(keyword.value, (keyword.arg,), names):
            seen: dict[str, ast.expr] = {}
            for key in dictionary.keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    if key.value in seen:
                        first, second = _location(text, seen[key.value]), _location(text, key)
                        found.append(((*path, key.value), first, second))
                    seen[key.value] = key
    return tuple(found)


@lru_cache(maxsize=64)
def _parse(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _call_at(text: str, line: int, keyword: str) -> ast.Call | None:
    """Return the innermost call around the line, preferring one that has the keyword."""
    tree = _parse(text)
    if tree is None:
        return None
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and node.lineno <= line <= (node.end_lineno or 0)
        and node.keywords
    ]
    calls.sort(
        key=lambda node: (
            not any(item.arg == keyword for item in node.keywords),
            not any(item.arg == "instances" for item in node.keywords),
            (node.end_lineno or 0) - node.lineno,
        )
    )
    return calls[0] if calls else None


def _names(text: str, before: int) -> dict[str, ast.expr]:
    """Return plain names -> the value last assigned to them above a line."""
    tree = _parse(text)
    found: dict[str, ast.expr] = {}
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and node.lineno < before:
            for target in node.targets:
                if isinstance(target, ast.Name):
                    old = found.get(target.id)
                    if old is None or old.lineno < node.value.lineno:
                        found[target.id] = node.value
    return found


def _entry(
    node: ast.expr, key: str, names: dict[str, ast.expr]
) -> tuple[ast.expr, ast.expr] | None:
    """Return (key, value) of the last such dict entry, also inside (label, {...}) pairs."""
    found: tuple[ast.expr, ast.expr] | None = None
    for dictionary in _shallow(node, names):
        for name, value in zip(dictionary.keys, dictionary.values, strict=True):
            inside = _entry(value, key, names) if name is None else None
            if isinstance(name, ast.Constant) and name.value == key:
                found = (name, value)
            elif inside is not None:  # {**common, ...}
                found = inside
    return found


def _shallow(node: ast.expr, names: dict[str, ast.expr], depth: int = 0) -> Iterator[ast.Dict]:
    """Yield the dicts of a value: itself, inside a pair, or behind a name."""
    if isinstance(node, ast.Dict):
        yield node
    elif isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from _shallow(item, names, depth)
    elif isinstance(node, ast.Name) and node.id in names and depth < 8:
        yield from _shallow(names[node.id], names, depth + 1)


def _dicts(
    node: ast.expr, path: tuple[str, ...], names: dict[str, ast.expr]
) -> Iterator[tuple[tuple[str, ...], ast.Dict]]:
    for dictionary in _shallow(node, names):
        yield path, dictionary
        for key, value in zip(dictionary.keys, dictionary.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield from _dicts(value, (*path, key.value), names)


def _first(text: str, node: ast.AST, key: str) -> Location | None:
    strings = [
        item for item in ast.walk(node) if isinstance(item, ast.Constant) and item.value == key
    ]
    strings.sort(key=lambda item: (item.lineno, item.col_offset))
    return _location(text, strings[0]) if strings else None


def _location(text: str, node: ast.expr | ast.keyword, length: int = 0) -> Location:
    """Return the location in characters; ast counts bytes of UTF-8."""
    line = text.splitlines()[node.lineno - 1].encode()
    column = len(line[: node.col_offset].decode(errors="replace"))
    if not length:
        whole = node.end_lineno == node.lineno and node.end_col_offset is not None
        end = node.end_col_offset if whole else len(line)
        length = max(len(line[node.col_offset : end].decode(errors="replace")), 1)
    return Location(node.lineno, column + 1, length)
