"""Random delays of warps: the launcher's side of runtime `jitter`."""

import random
import struct
from array import array
from typing import Any

from pipelink_rules.launch.driver import Driver
from pipelink_rules.launch.errors import refuse

CYCLES = 2048  # longest usual delay before an operation


class Jitter:
    """One random generator for every warp of a full grid, in every context of the kernel."""

    def __init__(self, driver: Driver, ctas: int, warps: int):
        self._driver, self._ctas, self._warps = driver, ctas, warps
        self._states: list[tuple[Any, int]] = []  # (library, pointer) of each context
        self.start(0)

    def attach(self, library: Any) -> None:
        """Allocate the generators of the current context."""
        pointer = int(self._driver.call("cuMemAlloc", 4 * self._ctas * self._warps))
        self._states.append((library, pointer))
        self._write(library, pointer)

    def start(self, seed: int, cycles: int = CYCLES) -> None:
        """Restart the generators; equal seeds yield equal delays.  Wait for the GPU."""
        if cycles < 1 or cycles & (cycles - 1):
            raise refuse(
                "PL1411",
                "cycles",
                f"invalid value {cycles} for `cycles`",
                expected="a power of two",
                found=str(cycles),
            )
        draw = random.Random(seed)
        words = (draw.getrandbits(32) or 1 for _ in range(self._ctas * self._warps))
        self._cycles, self._words = cycles, array("I", words).tobytes()
        for library, pointer in self._states:
            self._write(library, pointer)

    def _write(self, library: Any, pointer: int) -> None:
        self._driver.call("cuCtxSynchronize")
        self._driver.write(pointer, self._words)
        words = struct.pack("<QII", pointer, self._ctas, self._cycles)
        self._driver.write_global(library, "pl_jitter", words)
