"""Where in an SConscript is an entry of a declaration?  Text, line of the call, keys -> place.

The SConscript is parsed as Python, never run.  An entry that is computed (a loop, a comprehension)
has no place of its own; the caller then falls back to the closest entry around it.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple


class Place(NamedTuple):
    """Characters in one line of a text; line and column count from 1."""

    line: int
    column: int
    length: int


def locate(text: str, call_line: int, *path: str) -> Place | None:
    """The place of an entry of the call at `call_line`.

    path: keyword of the call, then keys: ("instances", "load", "TM"), ("tensors", "x", "load.X").
    The last key may also be a string of a list.  A first key that is no keyword of the call is
    searched among all strings of the call.  None where it is not written there.
    """
    call = _call_at(text, call_line, path[0] if path else "")
    if call is None:
        return None
    if not path:
        return _place(text, call.func)
    node = _argument(text, call, path[0])
    if node is None:
        return _first(text, call, path[-1])
    if len(path) == 1:
        keyword = next((item for item in call.keywords if item.arg == path[0]), None)
        return _place(text, keyword, len(path[0])) if keyword else None
    for key in path[1:-1]:
        inside = _entry(node, key)
        if inside is None:
            return None
        node = inside[1]
    found = _entry(node, path[-1])
    return _place(text, found[0]) if found else _first(text, node, path[-1])


def duplicates(text: str, call_line: int) -> tuple[tuple[tuple[str, ...], Place, Place], ...]:
    """Keys written twice in one dict of the call: (path, first place, second place).

    Python keeps only the last of them without a word.
    """
    call = _call_at(text, call_line, "")
    if call is None:
        return ()
    found = []
    for keyword in call.keywords:
        if keyword.arg is None:
            continue
        node = _argument(text, call, keyword.arg)
        for path, dictionary in _dicts(node, (keyword.arg,)):
            seen: dict[str, ast.expr] = {}
            for key in dictionary.keys:
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    if key.value in seen:
                        first, second = _place(text, seen[key.value]), _place(text, key)
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
    """The innermost call around the line, one that has the keyword before others."""
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


def _argument(text: str, call: ast.Call, name: str) -> ast.expr | None:
    """The value of a keyword argument; a plain name is followed to its last assignment above."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return _follow(text, keyword.value, call.lineno)
    return None


def _follow(text: str, node: ast.expr, before: int) -> ast.expr:
    tree = _parse(text)
    if not isinstance(node, ast.Name) or tree is None:
        return node
    values = [
        item.value
        for item in ast.walk(tree)
        if isinstance(item, ast.Assign)
        and item.lineno < before
        and any(isinstance(target, ast.Name) and target.id == node.id for target in item.targets)
    ]
    return max(values, key=lambda value: value.lineno, default=node)


def _entry(node: ast.expr, key: str) -> tuple[ast.expr, ast.expr] | None:
    """(key, value) of a dict entry, looking through (label, {...}) pairs; the last one counts."""
    found = None
    for dictionary in _shallow(node):
        for name, value in zip(dictionary.keys, dictionary.values, strict=True):
            if isinstance(name, ast.Constant) and name.value == key:
                found = (name, value)
    return found


def _shallow(node: ast.expr) -> Iterator[ast.Dict]:
    if isinstance(node, ast.Dict):
        yield node
    elif isinstance(node, (ast.Tuple, ast.List)):
        for item in node.elts:
            yield from _shallow(item)


def _dicts(
    node: ast.expr | None, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ast.Dict]]:
    for dictionary in _shallow(node) if node is not None else ():
        yield path, dictionary
        for key, value in zip(dictionary.keys, dictionary.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield from _dicts(value, (*path, key.value))


def _first(text: str, node: ast.AST, key: str) -> Place | None:
    strings = [
        item for item in ast.walk(node) if isinstance(item, ast.Constant) and item.value == key
    ]
    strings.sort(key=lambda item: (item.lineno, item.col_offset))
    return _place(text, strings[0]) if strings else None


def _place(text: str, node: ast.expr | ast.keyword, length: int = 0) -> Place:
    """ast counts bytes of UTF-8; people count characters."""
    line = text.splitlines()[node.lineno - 1].encode()
    column = len(line[: node.col_offset].decode(errors="replace"))
    if not length:
        whole = node.end_lineno == node.lineno and node.end_col_offset is not None
        end = node.end_col_offset if whole else len(line)
        length = max(len(line[node.col_offset : end].decode(errors="replace")), 1)
    return Place(node.lineno, column + 1, length)
