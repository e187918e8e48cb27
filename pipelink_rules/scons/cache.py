"""A cache of build outputs that never returns damaged files or a mix of two builds.

All targets of one action are one blob: a header with the sha256 of the rest, an index, the files.
A blob is written atomically and verified before use, so that a truncated or modified one is a miss
and is deleted.  When the cache is full, the least recently used blobs are deleted first.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import SCons.CacheDir

from pipelink_rules.files.atomic import write_bytes

_MAGIC = b"pipelink-cache-1 "
_HEADER = len(_MAGIC) + 64 + 1  # magic, hex digest, newline
LIMIT = 4 << 30  # bytes


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return a blob with these files."""
    sizes = {name: len(files[name]) for name in sorted(files)}
    body = json.dumps(sizes).encode() + b"\n" + b"".join(files[name] for name in sizes)
    return _MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def unpack(blob: bytes) -> dict[str, bytes] | None:
    """Return the files of a blob; None where it is damaged."""
    digest, body = blob[len(_MAGIC) : _HEADER - 1], blob[_HEADER:]
    if not blob.startswith(_MAGIC) or blob[_HEADER - 1 : _HEADER] != b"\n":
        return None
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    index, _, data = body.partition(b"\n")
    files, position = {}, 0
    for name, size in json.loads(index).items():
        files[name] = data[position : position + size]
        position += size
    return files


class VerifiedCache(SCons.CacheDir.CacheDir):  # type: ignore[misc]
    """The CacheDir of SCons with one verified blob per action.  Called from worker threads."""

    begin: Any = staticmethod(lambda names: None)  # told which files are about to be written
    pushed = 0

    def cachepath(self, node: Any) -> tuple[str | None, str | None]:
        """Return the blob of the first target of the node's action."""
        found: tuple[str | None, str | None] = super().cachepath(_targets(node)[0])
        return found

    def push(self, node: Any) -> None:
        """Store all targets of an action with the last of them; a full disk is not an error."""
        targets = _targets(node)
        _, path = self.cachepath(node)
        if path is None or self.is_readonly() or node is not targets[-1] or os.path.exists(path):
            return
        try:
            files = {str(one): Path(one.get_internal_path()).read_bytes() for one in targets}
            write_bytes(path, pack(files))
        except OSError:
            return
        VerifiedCache.pushed += 1

    def retrieve(self, node: Any) -> bool:
        _, path = self.cachepath(node)
        if path is not None and _files(path) is None:
            Path(path).unlink(missing_ok=True)
        return bool(super().retrieve(node))

    @classmethod
    def copy_from_cache(cls, env: Any, src: str, dst: str) -> str:
        cls.begin([dst])
        files = _files(src) or {}
        write_bytes(dst, files[dst])
        return dst

    def get_cachedir_csig(self, node: Any) -> str | None:
        _, path = self.cachepath(node)
        data = (_files(path) or {}).get(str(node)) if path else None
        return None if data is None else hashlib.sha256(data).hexdigest()


def _targets(node: Any) -> list[Any]:
    executor = node.get_executor()
    return list(executor.get_all_targets()) if executor else [node]


def _files(path: str) -> dict[str, bytes] | None:
    try:
        return unpack(Path(path).read_bytes())
    except FileNotFoundError:
        return None


def prune(folder: Path, limit: int = LIMIT) -> int:
    """Delete the least recently used blobs until the rest fits; return the number deleted."""
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
