"""Build keys: digests of stage data, of the tool and of all inputs, which decide what is stale.

Stage data has two digests: complete, and without source locations and prose.  Glue and link depend
on the second.  A comment, a moved line or a new summary in a contract or a declaration therefore
updates messages, manifest and map without compiling or linking.

SCons does not track the Python code of an action, so each stage has a version: a digest of its
sources.  An edit of the placement rebuilds placements and what depends on them, but no object.
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TypeVar

import pipelink_rules
from pipelink_rules.files.atomic import write_text
from pipelink_rules.files.codec import decode, encode

Noun = TypeVar("Noun")
# field name -> what it is without places and prose
_BLANK: dict[str, object] = {"span": None, "spans": (), "summary": "", "file": "", "prebuilt": ""}


def strip_locations(noun: Noun) -> Noun:
    """Return a program or variant without spans, summaries, file names and origins."""
    if isinstance(noun, tuple):
        return type(noun)(strip_locations(item) for item in noun)
    if not dataclasses.is_dataclass(noun) or isinstance(noun, type):
        return noun
    changes = {}
    for item in dataclasses.fields(noun):
        value = getattr(noun, item.name)
        if item.name in _BLANK:
            changes[item.name] = _BLANK[item.name]
        elif isinstance(value, tuple) or dataclasses.is_dataclass(value):
            changes[item.name] = strip_locations(value)
    return dataclasses.replace(noun, **changes)


class Signatures:
    """Digests of stage data, each computed once."""

    def __init__(self) -> None:
        # The noun is kept with its digest, so that no other one gets its id.
        self._known: dict[tuple[int, bool], tuple[object, str]] = {}

    def of(self, noun: object, *, code: bool = False) -> str:
        """Return sha256 over the text of a frozen noun; `code`: without locations and prose."""
        kept = self._known.get((id(noun), code))
        if kept is None:
            # `repr` names every field and value, and is several times faster than JSON.
            text = repr(strip_locations(noun) if code else noun)
            kept = (noun, hashlib.sha256(text.encode()).hexdigest())
            self._known[id(noun), code] = kept
        return kept[1]


def key_of(parts: Iterable[str | bytes]) -> str:
    """Return the digest of everything that a result depends on."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def lookup(path: Path, key: str, kind: type[Noun]) -> Noun | None:
    """Return what the last run stored under the key, or None.

    A file that is missing, damaged or of another key counts as absent.
    """
    try:
        head, _, body = path.read_text(encoding="utf-8").partition("\n")
        return decode(kind, json.loads(body)) if head == _head(key, body) else None
    except (OSError, ValueError):
        return None


def store(path: Path, key: str, noun: object) -> None:
    """Store stage data, replacing what was there."""
    body = json.dumps(encode(noun), sort_keys=True)
    write_text(path, f"{_head(key, body)}\n{body}")


def _head(key: str, body: str) -> str:
    return f"{key} {hashlib.sha256(body.encode()).hexdigest()}"


_NOUNS = ("__init__.py", "model", "files", "expression", "contract", "actions")

# stage -> the parts of the package whose edit may change what the stage writes.
STAGES: dict[str, tuple[str, ...]] = {
    "spec": (*_NOUNS, "program"),
    "check": (*_NOUNS, "solver", "program", "check"),
    "header": _NOUNS,
    "compile": (*_NOUNS, "solver", "toolkit", "compile", "audit"),
    "collect": (*_NOUNS, "program"),
    "place": (*_NOUNS, "program", "place", "solver"),
    "glue": (*_NOUNS, "program", "glue"),
    "object": (*_NOUNS, "solver", "toolkit", "compile", "audit"),
    "link": (*_NOUNS, "program", "toolkit", "compile", "glue", "link"),
    "describe": (*_NOUNS, "program", "check", "solver", "place", "glue", "report"),
    "twin": (*_NOUNS, "program", "toolkit", "compile", "glue", "link"),
}

SALT = ""  # a project may add what its own rules do; part of every version


@cache
def tool_version(stage: str) -> str:
    """`<package version>+<digest of the stage's sources>`; equal in every place it is installed."""
    root = Path(pipelink_rules.__file__).parent
    digest = hashlib.sha256(SALT.encode())
    for part in STAGES[stage]:
        digest.update(_digest(root, part).encode())
    return f"{pipelink_rules.__version__}+{digest.hexdigest()[:16]}"


@cache
def _digest(root: Path, part: str) -> str:
    path = root / part
    sources = (file for file in path.rglob("*") if file.suffix in (".py", ".css"))
    files = [path] if path.is_file() else sorted(sources)
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(root).as_posix()}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
