"""Dataclass <-> canonical JSON, driven by the type hints of the dataclass.

Canonical: sorted keys, two-space indent, a final newline, no defaults left out.  Spans are kept,
so that a stage entered from its file can still name file, line and column.  Reading is strict: no
duplicate keys, no NaN, no numbers or files without a limit.
"""

import dataclasses
import json
import math
import re
import types
import typing
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from pipelink_rules.diagnostics.diagnostic import PipelinkError, error
from pipelink_rules.files.atomic import write_text
from pipelink_rules.model.source_span import JsonPath, Span

LARGEST_FILE = 4 << 20  # bytes; the largest file of a stage has about 200 KiB
LARGEST_NUMBER = 2**63  # numbers are sizes, offsets and counts; all stay below
_NEXT = re.compile(r'[ \t\r\n]*("(?:[^"\\]|\\.)*"|[^\s,:{}\[\]"]+|[,:{}\[\]])', re.S)

FORMAT_VERSION = 2  # of every form; raised when a key is renamed, removed or changes its meaning
_BUILD_AGAIN = "delete the file and run scons again"
_REWRITE = {"recording": "record the launch again with `Kernel.record` or `Kernel.trace`"}


def read_bytes(path: str | Path) -> bytes:
    """The bytes of a regular file; OSError or ValueError where there is none that can be read."""
    place = Path(path)
    if place.exists() and not place.is_file():
        raise ValueError("it is not a regular file")
    with open(place, "rb") as stream:
        data = stream.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        raise ValueError(f"it is larger than {LARGEST_FILE} bytes")
    return data


def parse_json(text: str) -> Any:
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


def location_of(text: str, path: JsonPath) -> tuple[int, int]:
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


Noun = TypeVar("Noun")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")


class _FileError(ValueError):
    """A value that cannot be where it is in a file, at `path`."""

    def __init__(
        self,
        path: JsonPath,
        reason: str,
        verdict: str = "is not a {form} file",
        expected: str = "",
        found: str = "",
    ):
        super().__init__(reason)
        self.path, self.verdict, self.expected, self.found = path, verdict, expected, found


def _wrong(where: str, reason: str) -> _FileError:
    """A value that is not of its kind; `where` leads to it: `Program.roles[3].warps`."""
    path = tuple(int(index) if index else key for key, index in _STEP.findall(where))
    return _FileError(path, f"{where}: {reason}")


def encode(value: Any) -> Any:
    """Return a dataclass, tuple or scalar as JSON-ready data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: encode(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    return value


def decode(kind: type[Noun], data: Any) -> Noun:
    """Return the noun of JSON-ready data; ValueError where the data is not of that kind."""
    return typing.cast(Noun, _decode(kind, data, kind.__name__))


def to_json(value: Any, form: str = "") -> str:
    """Return the canonical text of a noun's file, with its `format` key."""
    data = {"format": format_key(form or value.FORMATS[0]), **encode(value)}
    return json.dumps(data, indent=2, sort_keys=True) + "\n"


def format_key(form: str) -> str:
    """Return `pipelink/program/2`: what every file of that form says it is."""
    return f"pipelink/{form}/{FORMAT_VERSION}"


def write_json(path: str | Path, value: Any, form: str = "") -> Path:
    """Write a noun to its file.  form: one of its FORMATS where it is not the first."""
    return write_text(path, to_json(value, form))


def read_data(path: str | Path) -> Any:
    """Return the data of any stage's file; PL0010 and PL0011 as `read_json`."""
    return _read(path, "stage", lambda data: data)


def read_json(path: str | Path, kind: type[Noun]) -> Noun:
    """Read a noun from its file.

    PL0010 where there is none, PL0011 where it is another form of file, where another version of
    PipeLink wrote it, and where it is not what its stage wrote.
    """
    from pipelink_rules.files.validate import faults_in  # a null build reads no file

    forms: tuple[str, ...] = kind.FORMATS  # type: ignore[attr-defined]

    def make(data: Any) -> Noun:
        if isinstance(data, dict):
            _check_format(data.pop("format", None), forms)
        noun = decode(kind, data)
        for path, reason in faults_in(noun):
            places = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
            raise _FileError(path, f"{places.lstrip('.')}: {reason}", "contradicts itself")
        return noun

    return _read(path, forms[0], make)


def _check_format(found: Any, forms: tuple[str, ...]) -> None:
    keys = [format_key(form) for form in forms]
    if found in keys:
        return
    written = f'"format": "{found}"'
    if isinstance(found, str) and re.fullmatch(r"pipelink/[a-z]+/\d{1,9}", found):
        _, form, version = found.split("/")
        reason = f"it is a {form} file"
        if form in forms:
            reason = f"it has version {version} of the format; this PipeLink reads {FORMAT_VERSION}"
    else:
        written = "no `format`" if found is None else f"{str(found)[:80]!r}"
        reason = "it names no known format; version 1 of PipeLink wrote none"
    raise _FileError(("format",), reason, expected=f'"format": "{keys[0]}"', found=written)


def _read(path: str | Path, form: str, make: Callable[[Any], Noun]) -> Noun:
    name, text = str(path), ""
    try:
        text = read_bytes(path).decode("utf-8")
        return make(parse_json(text))
    except FileNotFoundError:
        raise error(
            "PL0010",
            f"{name} does not exist",
            Span(name),
            suggestions=("run `scons megakernels/NAME` to create it",),
        ) from None
    except (ValueError, RecursionError, OSError) as problem:
        raise _damaged(name, form, problem, text) from None


def _damaged(name: str, form: str, problem: Exception, text: str) -> PipelinkError:
    reason, place, verdict = str(problem), Span(name), "is not a {form} file"
    expected, found = f"the JSON that the stage before writes for {form}", ""
    if isinstance(problem, json.JSONDecodeError):
        place = Span(name, problem.lineno, problem.colno)
        reason = f"{problem.msg} at line {problem.lineno}"
    elif isinstance(problem, _FileError):
        place = Span(name, *location_of(text, problem.path))
        verdict, found = problem.verdict, problem.found
        expected = problem.expected or expected
    elif isinstance(problem, UnicodeDecodeError):
        reason = f"byte {problem.start} is not UTF-8"
    elif isinstance(problem, RecursionError):
        reason = "it is nested too deeply"
    return error(
        "PL0011",
        f"{name} {verdict.format(form=form)}: {reason[:300]}",
        place,
        expected=expected,
        found=found or reason[:200],
        suggestions=(_REWRITE.get(form, _BUILD_AGAIN),),
    )


_hints = cache(typing.get_type_hints)


def _decode(hint: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _decode_union(typing.get_args(hint), data, where)
    if origin is tuple:
        return _decode_tuple(typing.get_args(hint), data, where)
    if dataclasses.is_dataclass(hint):
        return _decode_dataclass(typing.cast(type, hint), data, where)
    if hint is Any:
        return data
    if hint is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    if not isinstance(data, hint) or (hint is int and isinstance(data, bool)):
        raise _wrong(where, f"expected {hint.__name__}, found {type(data).__name__}")
    if hint is str and not data.isprintable():
        _check_text(data, where)
    return data


def _check_text(data: str, where: str) -> None:
    if "\0" in data:
        raise _wrong(where, "a text with a null character")
    try:
        data.encode()
    except UnicodeEncodeError:
        raise _wrong(where, "a text that is not Unicode") from None


def _decode_union(options: tuple[Any, ...], data: Any, where: str) -> Any:
    if data is None and type(None) in options:
        return None
    problem: ValueError | None = None
    for option in options:
        if option is type(None):
            continue
        try:
            return _decode(option, data, where)
        except ValueError as failed:
            problem = problem or failed
    raise problem or _wrong(where, "unexpected null")


def _decode_tuple(arguments: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(data, list):
        raise _wrong(where, f"expected a list, found {type(data).__name__}")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_decode(arguments[0], item, f"{where}[{i}]") for i, item in enumerate(data))
    if len(data) != len(arguments):
        raise _wrong(where, f"expected {len(arguments)} entries, found {len(data)}")
    return tuple(
        _decode(kind, item, f"{where}[{i}]")
        for i, (kind, item) in enumerate(zip(arguments, data, strict=True))
    )


def _decode_dataclass(kind: type, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise _wrong(where, f"expected an object, found {type(data).__name__}")
    hints = _hints(kind)
    names = {item.name for item in dataclasses.fields(kind)}
    unknown = sorted(set(data) - names)
    if unknown:
        raise _wrong(where, f"unknown key {unknown[0]!r:.80}")
    required = {
        item.name
        for item in dataclasses.fields(kind)
        if item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
    }
    missing = sorted(required - set(data))
    if missing:
        raise _wrong(where, f"missing key {missing[0]!r}")
    values = {key: _decode(hints[key], item, f"{where}.{key}") for key, item in data.items()}
    try:
        return kind(**values)
    except _FileError:
        raise
    except ValueError as problem:  # of __post_init__
        raise _wrong(where, str(problem)) from None
