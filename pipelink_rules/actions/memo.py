"""What did the last run make of the same texts?  A noun, kept under a digest of all that went in.

A file that is missing, damaged or of another digest is as if it had never been there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

from pipelink_rules.files.atomic import write_text
from pipelink_rules.files.codec import decode, encode

Noun = TypeVar("Noun")


def key_of(parts: Iterable[str | bytes]) -> str:
    """The digest of everything that a result depends on."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def lookup(path: Path, key: str, kind: type[Noun]) -> Noun | None:
    """What was kept under the key; None where nothing was."""
    try:
        head, _, body = path.read_text(encoding="utf-8").partition("\n")
        return decode(kind, json.loads(body)) if head == _head(key, body) else None
    except (OSError, ValueError):
        return None


def store(path: Path, key: str, noun: object) -> None:
    """Keeps a noun; what was there goes."""
    body = json.dumps(encode(noun), sort_keys=True)
    write_text(path, f"{_head(key, body)}\n{body}")


def _head(key: str, body: str) -> str:
    return f"{key} {hashlib.sha256(body.encode()).hexdigest()}"
