"""Calls of the CUDA driver, checked; the only importer of cuda.bindings."""

import ctypes
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pipelink_rules.launch.errors import LaunchError, refuse

TENSOR_MAP_BYTES = 128
_MAPPED_PORTABLE = 3  # CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP
_RELAXED = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


def cuda_driver() -> Any:
    """Return the module `cuda.bindings.driver`; raise PL1417 if it or the driver is missing."""
    try:
        # slow (70 ms), so only when a kernel is really launched
        return importlib.import_module("cuda.bindings.driver")
    except ImportError as problem:
        raise refuse(
            "PL1417",
            "driver",
            "the Python bindings of the CUDA driver are not installed",
            found=str(problem),
            suggestions=("pip install 'pipelink[launch]'",),
        ) from None


@dataclass(frozen=True)
class Device:
    """The properties of a GPU that a launch depends on."""

    ordinal: int
    name: str
    capability: tuple[int, int]
    sms: int
    clock_khz: int = 0  # of the SMs, at most; 0 = unknown


class Driver:
    """`cuda.bindings.driver`, or an object with the same calls, with errors as exceptions."""

    def __init__(self, api: Any = None):
        self.api: Any = cuda_driver() if api is None else api
        try:
            self.call("cuInit", 0)
        except LaunchError as problem:
            raise _no_gpu(problem.diagnostics[0].found) from None
        except Exception as problem:  # the bindings' own classes, when libcuda cannot be opened
            missing = "NotFound" in type(problem).__name__
            text = "libcuda.so.1 not found" if missing else str(problem)
            raise _no_gpu(text.split("\n", 1)[0]) from None
        self._encode: Any = None

    def call(self, name: str, *arguments: Any) -> Any:
        """Return the result of one driver call; raise PL1414 with the driver's error text."""
        answer = getattr(self.api, name)(*arguments)
        if answer[0]:
            raise self.failure(name, answer[0])
        return answer[1] if len(answer) == 2 else answer[1:]

    def failure(self, name: str, result: Any) -> LaunchError:
        """Return the exception for an error code of the driver."""
        answers = (self.api.cuGetErrorName(result), self.api.cuGetErrorString(result))
        words = [
            found.decode() if isinstance(found, bytes) else str(found)
            for failed, found in answers
            if not failed
        ]
        text = ": ".join(words) or str(result)
        notes: tuple[str, ...] = ()
        suggestions: tuple[str, ...] = ()
        if int(result) in (700, 715, 716, 717, 718, 719):
            notes = ("an earlier launch may have caused the error; the CUDA context is lost",)
            locate = "link with runtime=watchdog to locate a hang"
            suggestions = (locate, "or run under compute-sanitizer")
        message = f"driver call {name} failed"
        return refuse("PL1414", name, message, found=text, notes=notes, suggestions=suggestions)

    def device(self, ordinal: int) -> Device:
        """Return the properties of one GPU."""
        handle = self.call("cuDeviceGet", ordinal)
        attribute = self.api.CUdevice_attribute

        def number(name: str) -> int:
            item = getattr(attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
            return int(self.call("cuDeviceGetAttribute", item, handle))

        capability = number("COMPUTE_CAPABILITY_MAJOR"), number("COMPUTE_CAPABILITY_MINOR")
        sms = number("MULTIPROCESSOR_COUNT")
        name = self.call("cuDeviceGetName", 128, handle)
        text = name.split(b"\0", 1)[0].decode() if isinstance(name, bytes) else str(name)
        answer = self.api.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE, handle)
        clock = 0 if answer[0] else int(answer[1])
        return Device(ordinal, text, capability, sms, clock)

    def current_context(self) -> int:
        """Return the handle of the thread's current context, 0 where there is none."""
        return int(self.call("cuCtxGetCurrent"))

    def make_current(self, ordinal: int) -> int:
        """Make the primary context of a device current, as the CUDA runtime would."""
        context = self.call("cuDevicePrimaryCtxRetain", self.call("cuDeviceGet", ordinal))
        self.call("cuCtxSetCurrent", context)
        return int(context)

    def device_of(self, pointer: int) -> int:
        """Return the ordinal of the device that a pointer belongs to; -1 for host memory."""
        attribute = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        answer = self.api.cuPointerGetAttribute(attribute, pointer)
        return -1 if answer[0] else int(answer[1])

    @contextmanager
    def relaxed_capture(self) -> Iterator[None]:
        """Let calls that are no stream operations happen while a graph is being captured."""
        mode = self.api.CUstreamCaptureMode(_RELAXED)
        before = self.call("cuThreadExchangeStreamCaptureMode", mode)
        try:
            yield
        finally:
            self.call("cuThreadExchangeStreamCaptureMode", before)

    def mapped_memory(self, size: int) -> int:
        """Return the address of zeroed host memory that every context can access."""
        host = int(self.call("cuMemHostAlloc", size, _MAPPED_PORTABLE))
        ctypes.memset(host, 0, size)
        return host

    def write(self, target: int, data: bytes) -> None:
        """Copy host bytes to device memory."""
        source = ctypes.create_string_buffer(data, len(data))
        self.call("cuMemcpyHtoD", target, ctypes.addressof(source), len(data))

    def write_global(self, library: Any, name: str, data: bytes) -> None:
        """Write a global variable of a loaded library, in the current context."""
        self.write(int(self.call("cuLibraryGetGlobal", library, name.encode())[0]), data)

    def read(self, pointer: int, size: int) -> bytes:
        """Return bytes of device memory."""
        target = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH", ctypes.addressof(target), pointer, size)
        return target.raw

    def encode_tiled(self, destination: int, *arguments: Any) -> int:
        """cuTensorMapEncodeTiled into `destination` (aligned to 64 bytes); the CUresult.

        Called through its address: the CUtensorMap of the bindings lacks the alignment that the
        driver requires, and the map belongs into the argument block anyway.
        """
        if self._encode is None:
            found = self.call("cuGetProcAddress", b"cuTensorMapEncodeTiled", 12000, 0)
            address = int(found[0] if isinstance(found, tuple) else found)
            u32, void = ctypes.c_uint32, ctypes.c_void_p
            kinds = (void, u32, u32, void, void, void, void, void, u32, u32, u32, u32)
            self._encode = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(address)
        return int(self._encode(destination, *arguments))


def _no_gpu(found: str) -> LaunchError:
    return refuse(
        "PL1417",
        "driver",
        "this machine has no usable CUDA driver",
        expected="libcuda.so.1 and a GPU",
        found=found,
        notes=("build, check, place, link and audit require no GPU",),
        suggestions=("run on a machine with an NVIDIA GPU and its driver",),
    )


@dataclass(frozen=True)
class LoadedKernel:
    """The entry in one context."""

    context: int
    device: Device
    function: Any
    clusters: int = 0  # that run at a time; 0 = no clusters
