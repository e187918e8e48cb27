"""A driver whose device memory is host memory, and whose launches record given events."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field
from typing import Any

from fake_driver import FakeDriver
from recorded_gemm import encode_events

from pipelink_rules.model.recording import Event

GLOBALS = (b"pl_trace_events", b"pl_record_events", b"pl_jitter", b"pl_watchdog_report")


@dataclass
class NotingDriver(FakeDriver):
    """`does` is what every warp of a launch does: (CTA, warp) -> its events."""

    does: dict[tuple[int, int], list[Event]] = field(default_factory=dict)
    warps: int = 12
    report_words: tuple[int, ...] = ()  # what a watchdog writes; the launch then fails
    allocated: dict[int, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.received = {name: ctypes.create_string_buffer(32) for name in GLOBALS}
        self.lost = False

    def cuLibraryGetGlobal(self, library: str, name: bytes) -> tuple[int, int, int]:
        return 0, ctypes.addressof(self.received[name]), 32

    def cuMemAlloc(self, size: int) -> tuple[int, int]:
        memory = ctypes.create_string_buffer(b"\xee" * size, size)
        self.allocated[ctypes.addressof(memory)] = memory
        return 0, ctypes.addressof(memory)

    def cuMemHostAlloc(self, size: int, flags: int) -> tuple[int, int]:
        if size == 64:
            return super().cuMemHostAlloc(size, flags)
        return self.cuMemAlloc(size)

    def cuMemHostGetDevicePointer(self, host: int, flags: int) -> tuple[int, int]:
        return 0, host

    def cuMemsetD8(self, target: int, value: int, size: int) -> tuple[int]:
        ctypes.memset(target, value, size)
        return (0,)

    def cuMemcpyHtoD(self, target: int, source: int, size: int) -> tuple[int]:
        ctypes.memmove(target, source, size)
        return (0,)

    def cuMemcpyDtoH(self, target: int, source: int, size: int) -> tuple[int]:
        if self.lost:
            return (719,)
        ctypes.memmove(target, source, size)
        return (0,)

    def cuMemFree(self, pointer: int) -> tuple[int]:
        del self.allocated[pointer]
        return (719,) if self.lost else (0,)

    def cuMemFreeHost(self, pointer: int) -> tuple[int]:
        return self.cuMemFree(pointer)

    def cuCtxSynchronize(self) -> tuple[int]:
        return (719,) if self.lost else (0,)

    def cuLaunchKernel(self, function: str, *rest: Any) -> tuple[int]:
        answer = super().cuLaunchKernel(function, *rest)
        for name in (b"pl_trace_events", b"pl_record_events"):
            heads, events, capacity, ctas = struct.unpack_from("<QQII", self.received[name])
            if heads:
                self._note(heads, events, capacity, ctas)
        if self.report_words:
            self.report(*self.report_words)
            self.lost = True
        return answer

    def _note(self, heads: int, events: int, capacity: int, ctas: int) -> None:
        for (cta, warp), line in self.does.items():
            if cta >= ctas:
                continue
            row = cta * self.warps + warp
            head = struct.pack("<4I", len(line), 7, line[0].begin, 1000)
            ctypes.memmove(heads + 16 * row, head, 16)
            data = encode_events(line)[: 16 * capacity]
            ctypes.memmove(events + 16 * row * capacity, data, len(data))

    def jitter(self) -> tuple[tuple[int, ...], int, int]:
        """(states, CTAs, cycles) that the runtime received."""
        pointer, ctas, cycles = struct.unpack_from("<QII", self.received[b"pl_jitter"])
        states = (ctypes.c_uint32 * (ctas * self.warps)).from_address(pointer)
        return tuple(states), ctas, cycles
