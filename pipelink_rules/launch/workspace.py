"""Scratch memory and counters of the CTAs of a launch, owned per kernel and stream.

Launches on one stream are ordered and may share scratch memory and counters; launches on two
streams may overlap and may not.  A graph can run at any time, so every capture has a separate
workspace (bind a call inside the capture that it is for).  Nothing is freed or moved during the
lifetime of the kernel, because a graph may still use it; a stream that needs more allocates a
larger slice.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from pipelink_rules.expression.evaluate import value_of
from pipelink_rules.launch.driver import Driver
from pipelink_rules.model.contract import DTYPES
from pipelink_rules.model.linked_kernel import Manifest

ALIGN = 256  # bytes, of every piece


class ZeroedRange(NamedTuple):
    """Memory that must be zero when a launch starts."""

    pointer: int
    words: int  # of 4 bytes


class WorkspacePool:
    """The workspaces of one kernel."""

    def __init__(self, manifest: Manifest, driver: Driver):
        self._pieces = sorted(manifest.workspace, key=lambda piece: not piece.cleared)
        self._driver = driver
        self._owned: dict[tuple[int, int, int], tuple[int, int]] = {}  # -> address, bytes

    def of(
        self, context: int, stream: int, symbols: Mapping[str, int]
    ) -> tuple[dict[str, int], ZeroedRange | None]:
        """Return slice -> address for a launch on the stream, and what to clear before it."""
        if not self._pieces:
            return {}, None
        offsets, size, cleared = {}, 0, 0
        for piece in self._pieces:
            offsets[piece.name] = size
            count = value_of(piece.count, symbols)
            size += -(-count * DTYPES[piece.dtype][0] // ALIGN) * ALIGN
            cleared = size if piece.cleared else cleared
        start = self._allocated((context, stream, capture_of(self._driver.api, stream)), size)
        clear = ZeroedRange(start, math.ceil(cleared / 4)) if cleared else None
        return {name: start + offset for name, offset in offsets.items()}, clear

    def _allocated(self, place: tuple[int, int, int], size: int) -> int:
        address, owned = self._owned.get(place, (0, 0))
        if owned < size:
            with self._driver.relaxed_capture():
                address = int(self._driver.call("cuMemAlloc", size))
            self._owned[place] = address, size
        return address


def capture_of(api: Any, stream: int) -> int:
    """Return the number of the capture that the stream is part of, or 0."""
    answer = api.cuStreamGetCaptureInfo(stream)
    return int(answer[2]) if not answer[0] and int(answer[1]) == 1 else 0
