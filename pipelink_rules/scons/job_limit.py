"""How many steps may run at once?  As many as there are processors, and as fit into memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GIB = 1 << 30
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def memory_bytes() -> int:
    """Memory of this machine or container."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in _LIMITS:
        try:
            return min(machine, int(Path(name).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such file; "max"
            continue
    return machine


def jobs(processors: int, memory: int) -> int:
    """Steps at once, where -j does not say: 1 GiB is what a compile of a small component needs."""
    return max(1, min(processors, memory // GIB))


class Budget:
    """Memory that running steps share.  A step larger than all of it runs alone."""

    def __init__(self, total: int):
        self._total = total
        self._free = total
        self._changed = threading.Condition()

    @contextmanager
    def reserve(self, amount: int) -> Iterator[None]:
        """Waits until `amount` bytes are free, and holds them."""
        amount = min(amount, self._total)
        with self._changed:
            self._changed.wait_for(lambda: self._free >= amount)
            self._free -= amount
        try:
            yield
        finally:
            with self._changed:
                self._free += amount
                self._changed.notify_all()
