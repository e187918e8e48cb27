"""The methods of kernels that are linked with an instrumented runtime."""

import base64
import ctypes
import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipelink_rules.files.codec import write_json
from pipelink_rules.launch.cubin_loader import CubinImage
from pipelink_rules.launch.driver import Driver
from pipelink_rules.launch.errors import LaunchError, refuse
from pipelink_rules.launch.jitter import CYCLES
from pipelink_rules.model.linked_kernel import Manifest
from pipelink_rules.model.recording import EVENT_BYTES, Recording, WarpRow, decode_events

HEAD_BYTES = 16


class EventBuffers:
    """The rows of one launch: a head and `capacity` events for every warp of the first CTAs."""

    def __init__(self, driver: Driver, runtime: str, ctas: int, warps: int, capacity: int):
        self._driver, self._ctas, self._warps, self._capacity = driver, ctas, warps, capacity
        self._symbol = f"pl_{runtime}_events"
        self._heads = self._zeroed(ctas * warps * HEAD_BYTES)
        self._bytes = ctas * warps * capacity * EVENT_BYTES
        # A trap loses device memory; a recording shows what happened before it.
        self._host = driver.mapped_memory(self._bytes) if runtime == "record" else 0
        if self._host:
            self._events = int(driver.call("cuMemHostGetDevicePointer", self._host, 0))
        else:
            self._events = self._zeroed(self._bytes)

    def _zeroed(self, size: int) -> int:
        pointer = int(self._driver.call("cuMemAlloc", max(size, 16)))
        self._driver.call("cuMemsetD8", pointer, 0, max(size, 16))
        return pointer

    def attach(self, library: Any) -> None:
        """Let launches record events."""
        self._write(library, self._heads, self._events, self._capacity, self._ctas)

    def detach(self, library: Any) -> None:
        """Stop recording."""
        self._write(library, 0, 0, 0, 0)

    def _write(self, library: Any, *words: int) -> None:
        self._driver.write_global(library, self._symbol, struct.pack("<QQIIQ", *words, 0))

    def rows(self) -> tuple[WarpRow, ...]:
        """Return the recorded events; a trap loses the heads, but not the events."""
        try:
            heads = self._driver.read(self._heads, self._ctas * self._warps * HEAD_BYTES)
        except LaunchError:
            heads = b""
        if self._host:
            events = ctypes.string_at(self._host, self._bytes)
        else:
            events = self._driver.read(self._events, self._bytes)
        step = self._capacity * EVENT_BYTES
        found = []
        for row in range(self._ctas * self._warps):
            data = events[row * step : (row + 1) * step]
            count = sum(1 for _ in decode_events(data))
            head = heads[row * HEAD_BYTES : (row + 1) * HEAD_BYTES]
            made, sm, clock, nanoseconds = struct.unpack("<4I", head) if head else (count, 0, 0, 0)
            if count:
                text = base64.b64encode(data[: count * EVENT_BYTES]).decode()
                place = divmod(row, self._warps)
                found.append(WarpRow(*place, sm, clock, nanoseconds, made, text))
        return tuple(found)

    def free(self) -> None:
        """Free the memory; after a trap the context has already lost it."""
        with suppress(LaunchError):
            self._driver.call("cuMemFree", self._heads)
            if self._host:
                self._driver.call("cuMemFreeHost", self._host)
            else:
                self._driver.call("cuMemFree", self._events)


class Instrumented:
    """The methods of `Kernel` that need a runtime other than `release`."""

    manifest: Manifest

    def trace(
        self,
        *positional: Any,
        ctas: int = 4,
        capacity: int = 4096,
        file: str | os.PathLike[str] | None = None,
        **named: Any,
    ) -> Recording:
        """Launch twice and return start and end of every operation of the second launch.

        ctas: number of CTAs to record, from the first (0 = all).  capacity: operations recorded per
        warp.  file: also write the recording there, for `pipelink trace`.  Raise PL1419 unless
        linked with runtime "trace".
        """
        return self._recording("trace", positional, named, file, ctas, capacity, warm=1)

    def record(
        self,
        *positional: Any,
        ctas: int = 0,
        capacity: int = 2048,
        file: str | os.PathLike[str] | None = None,
        **named: Any,
    ) -> Recording:
        """Launch once and return the operations of every warp, for `launch.compare`.

        A launch that hangs or fails returns a recording too, with the error in `problem`.  file:
        also write the recording there, for `pipelink record`.  Raise PL1419 unless linked with
        runtime "record".
        """
        return self._recording("record", positional, named, file, ctas, capacity, warm=0)

    def seed(self, value: int, *, cycles: int = CYCLES) -> None:
        """Restart the delays of runtime "jitter"; before the first call the seed is 0.

        cycles: longest usual delay before an operation, a power of two; one in 64 is eight times
        as long.  Raise PL1419 unless linked with runtime "jitter".
        """
        self._require("jitter", "seed")
        image = self._ready()
        image.loaded(None)
        assert image.jitter is not None
        image.jitter.start(value, cycles)

    def _require(self, runtime: str, method: str) -> None:
        """Raise PL1419 if the megakernel is linked with another runtime."""
        manifest = self.manifest
        if manifest.runtime != runtime:
            raise refuse(
                "PL1419",
                method,
                f"`Kernel.{method}` requires `{manifest.name}` to be linked with runtime "
                f"`{runtime}`",
                expected=f"runtime {runtime}",
                found=f"runtime {manifest.runtime}",
                suggestions=(
                    f"run `pipelink link build/{manifest.target}/megakernels/{manifest.name} "
                    f"-o build/{runtime}/{manifest.name} --runtime {runtime}`",
                ),
            )

    def _recording(
        self,
        method: str,
        positional: tuple[Any, ...],
        named: dict[str, Any],
        file: str | os.PathLike[str] | None,
        ctas: int,
        capacity: int,
        warm: int,
    ) -> Recording:
        """Launch and read the events; a failure of the launch is part of the recording."""
        self._require(method, method)
        launch = self.bind(*positional, **named)  # type: ignore[attr-defined]
        grid, symbols = launch.call.grid, launch.call.symbols
        image, manifest = self._ready(), self.manifest
        device, driver = image.loaded(None).device, image.driver
        assert manifest.script is not None
        ctas, warps = min(ctas or grid, grid), manifest.threads // 32
        events = EventBuffers(driver, manifest.runtime, ctas, warps, capacity)
        problem = ""
        try:
            for _ in range(warm):  # code and data in the caches, clocks up
                launch()
            driver.call("cuCtxSynchronize")
            events.attach(image.library)
            launch()
            result = driver.api.cuCtxSynchronize()
            if result[0]:
                raise image.failed("cuCtxSynchronize", result[0])
            events.detach(image.library)
        except LaunchError as failed:
            if manifest.runtime != "record":
                events.free()
                raise
            problem = str(failed)
        rows = events.rows()
        events.free()
        recording = Recording(
            megakernel=manifest.name,
            target=manifest.target,
            runtime=manifest.runtime,
            device=device.name,
            grid=grid,
            threads=manifest.threads,
            clock_khz=device.clock_khz,
            symbols=tuple(sorted(symbols.items())),
            sites=manifest.sites,
            script=manifest.script,
            rows=rows,
            problem=problem,
        )
        if file is not None:
            write_json(Path(file), recording)
        return recording

    def _ready(self) -> CubinImage:
        raise NotImplementedError
