"""Services of an array's framework: the current stream, and arrays for outputs."""

import sys
from collections.abc import Callable
from typing import Any

from pipelink_rules.launch.arrays import FRAMEWORK_DTYPES
from pipelink_rules.launch.errors import refuse


def stream_handle(stream: Any) -> int:
    """The CUstream of an int, a PyTorch or CuPy stream, or anything with `__cuda_stream__`."""
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        answer = protocol() if callable(protocol) else protocol
        return int(answer[1])  # (protocol version, handle)
    for name in ("cuda_stream", "ptr"):  # torch.cuda.Stream, cupy.cuda.Stream
        handle = getattr(stream, name, None)
        if isinstance(handle, int):
            return handle
    try:
        return int(stream)  # cuda.bindings.driver.CUstream
    except (TypeError, ValueError):
        raise refuse(
            "PL1413",
            "stream",
            "`stream` is not a CUDA stream",
            expected="an integer handle, a torch or cupy stream, or an object with __cuda_stream__",
            found=f"{type(stream).__name__} {stream!r}"[:80],
            suggestions=("remove `stream`", "or pass `torch.cuda.current_stream()`"),
        ) from None


_CURRENT: dict[type, Callable[[Any], int]] = {}  # type of array -> its framework's current stream


def current_stream(array: Any) -> int:
    """The stream that is current in the framework of `array`; 0, the default stream, otherwise."""
    kind = type(array)
    found = _CURRENT.get(kind)
    if found is None:
        found = _CURRENT[kind] = _choose(array)
    return found(array)


def _choose(array: Any) -> Callable[[Any], int]:
    if hasattr(array, "get_device") and hasattr(array, "is_cuda") and "torch" in sys.modules:
        torch = sys.modules["torch"]
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if raw is None:
            return lambda item: int(torch.cuda.current_stream(item.device).cuda_stream)
        # 0.1 us instead of the 2 us of building a Stream object
        return lambda item: raw(item.get_device()) if item.is_cuda else 0
    if type(array).__module__.partition(".")[0] == "cupy":
        current = sys.modules["cupy"].cuda.get_current_stream
        return lambda item: int(current().ptr)
    return lambda item: 0


# allocator(shape, dtype, like) -> array; `like` is the first array of the call
Allocator = Callable[[tuple[int, ...], str, Any], Any]


def allocator_for(like: Any) -> Allocator | None:
    """Return the allocator of the framework of `like`, or None."""
    package = type(like).__module__.partition(".")[0]
    return {"torch": _torch, "cupy": _cupy}.get(package)


def _torch(shape: tuple[int, ...], dtype: str, like: Any) -> Any:
    torch = sys.modules["torch"]
    kind = getattr(torch, FRAMEWORK_DTYPES[dtype])
    return torch.empty(shape, dtype=kind, device=like.device)


def _cupy(shape: tuple[int, ...], dtype: str, like: Any) -> Any:
    if dtype == "bf16":
        return None
    return sys.modules["cupy"].empty(shape, dtype=FRAMEWORK_DTYPES[dtype])
