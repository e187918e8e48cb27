"""The lock and the journal of a build directory.

The lock allows one build at a time; a second one waits or reports the holder.  The journal lists
the files that a build is about to write and is deleted when the build ends.  A journal at startup
was left by a killed build: the files it lists may be newer than their recorded signatures, so they
are deleted and built again.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from filelock import FileLock, Timeout

from pipelink_rules.diagnostics.diagnostic import error

_STAGED = ".staged."  # temporaries of files.atomic


class BuildLock:
    """An advisory lock of a build directory; the operating system drops it with the process."""

    def __init__(self, build: Path):
        self._lock = FileLock(build / ".lock")
        self._owner = build / ".lock.owner"

    def acquire(self, wait: bool, say: Callable[[str], None]) -> None:
        """Acquire the lock; raise PL1305 if it is held and `wait` is off."""
        self._owner.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            holder = self._holder()
            if not wait:
                raise error(
                    "PL1305",
                    f"{self._owner.parent} is locked by another build",
                    expected="no other build in this directory",
                    found=holder,
                    suggestions=("remove `wait=0` to wait for the other build",),
                    subject="lock",
                ) from None
            say(f"pipelink: waiting for another build in {self._owner.parent}: {holder}")
            self._lock.acquire(poll_interval=0.1)
        command, since = " ".join(sys.argv), time.strftime("%H:%M:%S")
        record = {"pid": os.getpid(), "command": command, "since": since}
        self._owner.write_text(json.dumps(record), encoding="utf-8")

    @property
    def held(self) -> bool:
        """Whether this process holds the lock."""
        return self._lock.is_locked

    def release(self) -> None:
        """Release the lock."""
        if self.held:
            self._owner.unlink(missing_ok=True)
            self._lock.release()

    def _holder(self) -> str:
        try:
            record = json.loads(self._owner.read_text(encoding="utf-8"))
            return f"pid {record['pid']} since {record['since']} (`{record['command']}`)"
        except (OSError, ValueError, KeyError):
            return "a process that has just started"


class Journal:
    """The files that this build writes, recorded before each is written."""

    def __init__(self, build: Path, top: Path):
        self._path = build / ".journal"
        self._top = top
        self._guard = threading.Lock()
        self._known: set[str] = set()

    def recover(self) -> tuple[str, ...]:
        """Delete what a killed build may have left behind; return the names of those files."""
        try:
            names = self._path.read_text(encoding="utf-8").splitlines()
        except OSError:
            return ()
        gone = []
        for name in sorted(set(names)):
            path = self._top / name
            if path.is_file():
                path.unlink()
                gone.append(name)
            for staged in path.parent.glob(f"*{_STAGED}*") if path.parent.is_dir() else ():
                staged.unlink(missing_ok=True)
        self._path.unlink(missing_ok=True)
        return tuple(gone)

    def begin(self, names: Iterable[str]) -> None:
        """Record files before they are written (paths relative to the top)."""
        with self._guard:
            new = [name for name in names if name not in self._known]
            if not new:
                return
            self._known.update(new)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with open(self._path, "a", encoding="utf-8") as stream:
                stream.write("".join(f"{name}\n" for name in new))

    def end(self) -> None:
        """Delete the journal after SCons has stored its signatures."""
        with self._guard:
            self._known.clear()
            self._path.unlink(missing_ok=True)
