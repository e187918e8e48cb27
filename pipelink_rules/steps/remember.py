"""What did the last run make of the same declaration?  Kept, so that a build of nothing is quick.

Reading contracts, inferring parameters and binding variants is pure: the same texts give the same
nouns.  They are kept under a digest of every text that went in and of the rules that read them; a
file that is missing, damaged or of another digest is as if it had never been there.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipelink_rules.files.atomic import write_bytes

_DIGEST = 32


def key_of(parts: Iterable[str | bytes]) -> bytes:
    """The digest of everything that a result depends on."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.digest()


def recall(path: Path, key: bytes) -> Any:
    """What was kept under the key; None where nothing was."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    head, body = data[: 2 * _DIGEST], data[2 * _DIGEST :]
    if head != key + hashlib.sha256(body).digest():
        return None
    return pickle.loads(body)  # written by ourselves, in the build directory


def keep(path: Path, key: bytes, value: Any) -> None:
    """Keeps a value; the one that was there goes."""
    body = pickle.dumps(value)
    write_bytes(path, key + hashlib.sha256(body).digest() + body)
