"""A local cache of finished files that never hands out a damaged one.

A blob is a header with the sha256 of what follows.  It is checked before it is used, so a
truncated or altered blob is a miss, and is deleted.  Least recently used blobs go first once the
cache is full.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import SCons.CacheDir

from pipelink_rules.files.atomic import write_bytes

_MAGIC = b"pipelink-cache-1 "
_HEADER = len(_MAGIC) + 64 + 1  # magic, hex digest, newline
LIMIT = 4 << 30  # bytes


def pack(data: bytes) -> bytes:
    """A blob of the cache."""
    return _MAGIC + hashlib.sha256(data).hexdigest().encode() + b"\n" + data


def digest_of(blob: bytes) -> str:
    """The digest of a sound blob's content; "" where the blob is damaged."""
    digest = blob[len(_MAGIC) : _HEADER - 1]
    sound = blob.startswith(_MAGIC) and blob[_HEADER - 1 : _HEADER] == b"\n"
    sound = sound and hashlib.sha256(blob[_HEADER:]).hexdigest().encode() == digest
    return digest.decode() if sound else ""


class VerifiedCache(SCons.CacheDir.CacheDir):  # type: ignore[misc]
    """SCons' CacheDir with checked blobs.  Called from worker threads."""

    begin: Any = staticmethod(lambda names: None)  # told which files are about to be written
    pushed = 0

    @classmethod
    def copy_to_cache(cls, env: Any, src: str, dst: str) -> str:
        write_bytes(dst, pack(Path(src).read_bytes()))
        cls.pushed += 1
        return dst

    @classmethod
    def copy_from_cache(cls, env: Any, src: str, dst: str) -> str:
        cls.begin([dst])
        write_bytes(dst, Path(src).read_bytes()[_HEADER:])
        return dst

    def retrieve(self, node: Any) -> bool:
        _, path = self.cachepath(node)
        if path is not None and os.path.exists(path) and not digest_of(Path(path).read_bytes()):
            Path(path).unlink(missing_ok=True)
        return bool(super().retrieve(node))

    def get_cachedir_csig(self, node: Any) -> str | None:
        _, path = self.cachepath(node)
        if path and os.path.exists(path):
            return digest_of(Path(path).read_bytes()) or None
        return None


def prune(folder: Path, limit: int = LIMIT) -> int:
    """Deletes the blobs used longest ago until the rest fits; the number deleted."""
    blobs = []
    for path in folder.glob("*/*"):
        try:
            info = path.stat()
        except OSError:
            continue  # another build pruned it
        if path.is_file():
            blobs.append((info.st_mtime, info.st_size, path))
    total = sum(size for _, size, _ in blobs)
    gone = 0
    for _, size, path in sorted(blobs):
        if total <= limit:
            break
        path.unlink(missing_ok=True)
        total -= size
        gone += 1
    return gone
