"""Packing of checked arguments into the parameters of the entry.

One block of memory holds every parameter in order (tensor maps aligned to 128 bytes), one array
holds their addresses for cuLaunchKernel.  Both live as long as the packed call is cached.
"""

import ctypes
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pipelink_rules.launch.arrays import View
from pipelink_rules.launch.driver import TENSOR_MAP_BYTES, Driver
from pipelink_rules.launch.errors import LaunchError, refuse
from pipelink_rules.model.contract import DTYPES
from pipelink_rules.model.linked_kernel import KernelParameter

_MAP_DTYPES = {"u8": 0, "u32": 2, "i32": 3, "f16": 6, "f32": 7, "bf16": 9}  # CUtensorMapDataType
_MAP_SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # CUtensorMapSwizzle
_L2_256 = 3  # CU_TENSOR_MAP_L2_PROMOTION_L2_256B: what TMA-fed kernels ask for
_SIZES = {"tensor_map": TENSOR_MAP_BYTES, "pointer": 8, "scratch": 8, "counters": 8}
_SCALARS: dict[str, Any] = {"i32": ctypes.c_int32, "u32": ctypes.c_uint32, "f32": ctypes.c_float}


@dataclass(frozen=True)
class Packed:
    """The arguments of one call, ready for the driver."""

    block: Any  # owns the values
    pointers: Any  # void*[]: owns the array
    address: int  # of `pointers`


def pack(
    parameters: tuple[KernelParameter, ...],
    views: Mapping[str, View | int],
    numbers: Mapping[str, int | float],
    driver: Driver,
) -> Packed:
    """Pack all parameters; encode the tensor maps (on the host, without synchronization)."""
    offsets, size = _offsets(parameters)
    block = ctypes.create_string_buffer(size + TENSOR_MAP_BYTES)
    base = -(-ctypes.addressof(block) // TENSOR_MAP_BYTES) * TENSOR_MAP_BYTES
    pointers = (ctypes.c_void_p * max(1, len(parameters)))()
    for position, (parameter, offset) in enumerate(zip(parameters, offsets, strict=True)):
        slot = base + offset
        pointers[position] = slot
        view = views.get(parameter.name)
        if isinstance(view, int):  # a piece of the workspace
            ctypes.c_uint64.from_address(slot).value = view
        elif view is not None and parameter.kind == "tensor_map":
            encode(parameter, view, slot, driver)
        elif view is not None:
            ctypes.c_uint64.from_address(slot).value = view.pointer
        else:
            _SCALARS[parameter.kind].from_address(slot).value = numbers[parameter.name]
    return Packed(block, pointers, ctypes.addressof(pointers))


def encode(parameter: KernelParameter, view: View, slot: int, driver: Driver) -> None:
    """Write the tensor map of a row-major array to `slot`; raise PL1415 if it is not encodable."""
    size = DTYPES[parameter.dtype][0]
    rank = len(view.shape)
    _check(parameter, view, size)
    extents = (ctypes.c_uint64 * rank)(*reversed(view.shape))
    steps = [math.prod(view.shape[axis:]) * size for axis in range(rank - 1, 0, -1)]
    strides = (ctypes.c_uint64 * max(1, rank - 1))(*steps)
    box = (ctypes.c_uint32 * rank)(*reversed(parameter.box))
    ones = (ctypes.c_uint32 * rank)(*[1] * rank)
    result = driver.encode_tiled(
        slot,
        _MAP_DTYPES[parameter.dtype],
        rank,
        view.pointer,
        extents,
        strides,
        box,
        ones,
        0,  # no interleave
        _MAP_SWIZZLES[parameter.swizzle],
        _L2_256,
        0,  # out-of-bounds elements read as zero
    )
    if result:
        raise _refused(parameter, view, f"cuTensorMapEncodeTiled returned CUresult {result}")


def _offsets(parameters: tuple[KernelParameter, ...]) -> tuple[list[int], int]:
    offsets, end = [], 0
    for parameter in parameters:
        size = _SIZES.get(parameter.kind, 4)
        end = -(-end // size) * size
        offsets.append(end)
        end += size
    return offsets, end


def _check(parameter: KernelParameter, view: View, size: int) -> None:
    """Raise PL1415 if a shape or a pointer violates the rules for tiled maps."""
    if len(view.shape) > 1 and view.shape[-1] * size % 16:
        raise _refused(parameter, view, f"a row is {view.shape[-1] * size} bytes")
    if view.pointer % 16:
        raise _refused(parameter, view, f"the base address is {view.pointer:#x}")
    if any(not 1 <= extent <= 2**32 for extent in view.shape):
        raise _refused(parameter, view, f"an extent is outside 1..2**32: {list(view.shape)}")


def _refused(parameter: KernelParameter, view: View, found: str) -> LaunchError:
    return refuse(
        "PL1415",
        parameter.name,
        f"cannot encode a tensor map for `{parameter.name}` {list(view.shape)}",
        expected="rows of a multiple of 16 bytes, a base address aligned to 16 bytes, "
        f"a box of at most 256 elements per dimension (here {list(parameter.box)})",
        found=found,
        suggestions=(f"pad the last extent of `{parameter.name}` to a multiple of 16 bytes",),
    )


class PreparedCall:
    """The result of `Kernel.bind`: call it to launch on the stream it was bound to.

    It keeps the arrays alive; do not resize them or change their storage.
    """

    def __init__(self, launch: Callable[[], None], call: Any, arrays: Mapping[str, Any]):
        self._launch, self.call, self._arrays = launch, call, arrays

    def __call__(self) -> None:
        self._launch()
