"""What does a JSON text say, and where?  Strict: no duplicate keys, no NaN, nothing without end."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn

LARGEST_FILE = 4 << 20  # bytes; the largest file of a stage has about 200 KiB
LARGEST_NUMBER = 2**63  # numbers are sizes, offsets and counts; all stay below
_NEXT = re.compile(r'[ \t\r\n]*("(?:[^"\\]|\\.)*"|[^\s,:{}\[\]"]+|[,:{}\[\]])', re.S)

Path_ = tuple[str | int, ...]  # keys and indices, from the root


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a regular file; OSError or ValueError where there is none that can be read."""
    place = Path(path)
    if place.exists() and not place.is_file():
        raise ValueError("it is no regular file")
    with open(place, "rb") as stream:
        data = stream.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise ValueError(f"it is larger than {LARGEST_FILE} bytes")
    return data


def parse(text: str) -> Any:
    """The value of a text; ValueError (JSONDecodeError where a place is known), RecursionError."""
    return json.loads(
        text,
        object_pairs_hook=_object,
        parse_constant=_no_constant,
        parse_int=_integer,
        parse_float=_float,
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r:.80} is there twice")
    return found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number here")


def _integer(text: str) -> int:
    value = int(text) if len(text) < 21 else LARGEST_NUMBER
    if not -LARGEST_NUMBER <= value < LARGEST_NUMBER:
        raise ValueError(f"the number {text[:30]} is too large")
    return value


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:30]} is too large")
    return value


def location_of(text: str, path: Path_) -> tuple[int, int]:
    """Line and column of a value in a valid JSON text; of the value around it where it is not."""
    at = best = 0
    stack: list[list[Any]] = []  # [opening, key or index, waiting for a key]
    depth = 0  # steps of the path that lead to where we are
    while found := _NEXT.match(text, at):
        token, start, at = found[1], found.start(1), found.end()
        if token in ":,":
            if token == "," and stack and stack[-1][0] == "[":
                stack[-1][1] += 1
            elif stack:
                stack[-1][2] = token == ","
            continue
        if token in "}]":
            stack.pop()
            if len(stack) < depth:
                break
            continue
        if stack and stack[-1][2]:
            stack[-1][1] = json.loads(token)
            continue
        matches = len(stack) == depth and all(
            level[1] == step for level, step in zip(stack, path, strict=False)
        )
        if matches:
            best = start
            if depth == len(path):
                break
        if token in "{[":
            depth += matches
            stack.append([token, 0 if token == "[" else None, token == "{"])
    before = text[:best]
    return before.count("\n") + 1, best - (before.rfind("\n") + 1) + 1
