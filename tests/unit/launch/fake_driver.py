"""A CUDA driver that only remembers: the calls of `cuda.bindings.driver` that a launch makes."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

u32, void = ctypes.c_uint32, ctypes.c_void_p
ENCODE = ctypes.CFUNCTYPE(
    ctypes.c_int, void, u32, u32, void, void, void, void, void, u32, u32, u32, u32
)


@dataclass(frozen=True)
class Encoded:
    """One cuTensorMapEncodeTiled."""

    dtype: int
    address: int
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


@dataclass(frozen=True)
class Launched:
    """One launch: the words at each parameter address are read when it happens."""

    grid: int
    threads: int
    shared: int
    stream: int
    words: tuple[int, ...]
    cluster: tuple[int, int, int] = (1, 1, 1)
    cooperative: bool = False


@dataclass
class FakeDriver:
    """Stands in for the module; `context` 0 means that no context is current."""

    capability: tuple[int, int] = (9, 0)
    name: str = "NVIDIA H200"
    sms: int = 132
    clusters: int = 66  # that run at a time
    context: int = 0x100
    parameters: int = 0  # how many parameter words a launch reads
    encoded: list[Encoded] = field(default_factory=list)
    launched: list[Launched] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    init_result: int = 0
    launch_result: int = 0
    encode_result: int = 0
    owners: dict[int, int] = field(default_factory=dict)  # pointer -> device
    resident: int = 1  # CTAs that a multiprocessor holds
    capture: int = 0  # number of the capture that streams are part of
    allocated: list[tuple[int, int]] = field(default_factory=list)  # address, bytes
    cleared: list[tuple[int, int, int]] = field(default_factory=list)  # address, words, stream

    def __post_init__(self) -> None:
        self.CUdevice_attribute = SimpleNamespace(
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR=75,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR=76,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT=16,
            CU_DEVICE_ATTRIBUTE_CLOCK_RATE=13,
        )
        self.CUfunction_attribute = SimpleNamespace(
            CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8,
            CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED=14,
        )
        self.CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL=9)
        self.CUlaunchAttributeID = SimpleNamespace(
            CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION=4, CU_LAUNCH_ATTRIBUTE_COOPERATIVE=2
        )
        self.CUstreamCaptureMode = int
        self._encode = ENCODE(self._remember)
        self.globals: dict[int, int] = {}

    def _remember(self, slot: int, dtype: int, rank: int, address: int, *rest: Any) -> int:
        extents, strides, box, _, _, swizzle, _, _ = rest

        def read(kind: Any, pointer: int, count: int) -> tuple[int, ...]:
            return tuple((kind * count).from_address(pointer)) if count else ()

        self.encoded.append(
            Encoded(
                dtype,
                address,
                read(ctypes.c_uint64, extents, rank),
                read(ctypes.c_uint64, strides, rank - 1),
                read(u32, box, rank),
                swizzle,
            )
        )
        assert slot % 64 == 0, "the driver wants tensor maps aligned to 64 bytes"
        u32.from_address(slot).value = 0xAA00 + len(self.encoded)
        return self.encode_result

    def cuInit(self, flags: int) -> tuple[int]:
        return (self.init_result,)

    def cuGetProcAddress(self, symbol: bytes, version: int, flags: int) -> tuple[int, int, int]:
        assert symbol == b"cuTensorMapEncodeTiled"
        return 0, ctypes.cast(self._encode, void).value or 0, 0

    def cuCtxGetCurrent(self) -> tuple[int, int]:
        return 0, self.context

    def cuCtxSetCurrent(self, context: int) -> tuple[int]:
        self.context = context
        return (0,)

    def cuCtxGetDevice(self) -> tuple[int, int]:
        return 0, self.context - 0x100

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[int, int]:
        return 0, 0x100 + device

    def cuDeviceGet(self, ordinal: int) -> tuple[int, int]:
        return 0, ordinal

    def cuDeviceGetName(self, length: int, device: int) -> tuple[int, bytes]:
        return 0, self.name.encode().ljust(length, b"\0")

    def cuDeviceGetAttribute(self, attribute: int, device: int) -> tuple[int, int]:
        return 0, self.attributes()[attribute]

    def attributes(self) -> dict[int, int]:
        """What a device says of itself, by number."""
        return {75: self.capability[0], 76: self.capability[1], 16: self.sms, 13: 1_980_000}

    def cuPointerGetAttribute(self, attribute: int, pointer: int) -> tuple[int, int]:
        if pointer not in self.owners:
            return 1, 0
        return 0, self.owners[pointer]

    def cuThreadExchangeStreamCaptureMode(self, mode: int) -> tuple[int, int]:
        self.calls.append(f"capture mode {mode}")
        return 0, 0

    def cuLibraryLoadData(self, code: bytes, *options: Any) -> tuple[int, str]:
        self.calls.append("load")
        return 0, "library"

    def cuLibraryGetKernel(self, library: str, name: bytes) -> tuple[int, str]:
        return 0, name.decode()

    def cuKernelGetFunction(self, kernel: str) -> tuple[int, str]:
        return 0, f"{kernel}@{self.context:#x}"

    def cuFuncSetAttribute(self, function: str, attribute: int, value: int) -> tuple[int]:
        self.calls.append(f"attribute {attribute} = {value}")
        return (0,)

    def cuLibraryGetGlobal(self, library: str, name: bytes) -> tuple[int, int, int]:
        places = {b"pl_watchdog_report": 0x7000, b"pl_watchdog_limit": 0x7008}
        return 0, places[name], 8

    def cuMemHostAlloc(self, size: int, flags: int) -> tuple[int, int]:
        self._report = ctypes.create_string_buffer(size)
        return 0, ctypes.addressof(self._report)

    def cuMemHostGetDevicePointer(self, host: int, flags: int) -> tuple[int, int]:
        return 0, 0xD000

    def cuMemcpyHtoD(self, target: int, source: int, size: int) -> tuple[int]:
        assert size == 8
        self.globals[target] = ctypes.c_uint64.from_address(source).value
        return (0,)

    def report(self, *words: int) -> None:
        """What the watchdog runtime would write."""
        (u32 * len(words)).from_buffer(self._report)[:] = words

    def cuLaunchKernel(self, function: str, *rest: Any) -> tuple[int]:
        x, y, z, threads, by, bz, shared, stream, pointers, extra = rest
        assert (y, z, by, bz, extra) == (1, 1, 1, 1, 0)
        self.launched.append(Launched(x, threads, shared, stream, self._words(pointers)))
        return (self.launch_result,)

    def cuLaunchKernelEx(self, config: Any, function: str, pointers: int, extra: int) -> tuple[int]:
        values = {attribute.id: attribute.value for attribute in config.attrs}
        size = values[4].clusterDim if 4 in values else SimpleNamespace(x=1, y=1, z=1)
        self.launched.append(
            Launched(
                config.gridDimX,
                config.blockDimX,
                config.sharedMemBytes,
                config.hStream,
                self._words(pointers),
                (size.x, size.y, size.z),
                2 in values and bool(values[2].cooperative),
            )
        )
        return (self.launch_result,)

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, function: str, threads: int, shared: int
    ) -> tuple[int, int]:
        return 0, self.resident

    def cuStreamGetCaptureInfo(self, stream: int) -> tuple[int, int, int]:
        return 0, int(self.capture > 0), self.capture

    def cuMemAlloc(self, size: int) -> tuple[int, int]:
        address = 0x100000 * (len(self.allocated) + 1)
        self.allocated.append((address, size))
        self.calls.append("allocate")
        return 0, address

    def cuMemsetD32Async(self, pointer: int, value: int, words: int, stream: int) -> tuple[int]:
        assert value == 0
        self.cleared.append((pointer, words, stream))
        self.calls.append("clear")
        return (0,)

    def cuOccupancyMaxActiveClusters(self, function: str, config: Any) -> tuple[int, int]:
        size = config.attrs[0].value.clusterDim
        assert config.gridDimX % size.x == 0 and (size.y, size.z) == (1, 1)
        self.calls.append(f"clusters of {size.x}")
        return 0, self.clusters

    def CUlaunchConfig(self) -> Any:
        return SimpleNamespace()

    def CUlaunchAttribute(self) -> Any:
        return SimpleNamespace(value=SimpleNamespace(clusterDim=SimpleNamespace()))

    def _words(self, pointers: int) -> tuple[int, ...]:
        """The first word of every parameter (of a pointer: the low 32 bits)."""
        addresses = (ctypes.c_uint64 * self.parameters).from_address(pointers)
        return tuple(u32.from_address(address).value for address in addresses)

    def cuCtxSynchronize(self) -> tuple[int]:
        return (self.launch_result,)

    def cuStreamSynchronize(self, stream: int) -> tuple[int]:
        self.calls.append(f"synchronize {stream}")
        return (self.launch_result,)

    def cuGetErrorName(self, result: int) -> tuple[int, bytes]:
        return 0, {719: b"CUDA_ERROR_LAUNCH_FAILED", 100: b"CUDA_ERROR_NO_DEVICE"}.get(
            result, b"CUDA_ERROR_OTHER"
        )

    def cuGetErrorString(self, result: int) -> tuple[int, bytes]:
        return 0, {719: b"unspecified launch failure", 100: b"no CUDA-capable device"}.get(
            result, b"other"
        )
