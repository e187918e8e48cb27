"""Arrays of four kinds, without memory behind them: torch-like, interface, DLPack, host."""

from __future__ import annotations

import ctypes
import math
from typing import Any

from pipelink_rules.launch import arrays as dlpack


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


class TorchLike:
    """The attributes of a torch.Tensor that the launcher reads."""

    def __init__(self, pointer: int, shape: tuple[int, ...], dtype: str = "torch.bfloat16",
                 device: int = 0, strides: tuple[int, ...] | None = None):  # fmt: skip
        self.pointer, self.shape, self.dtype, self.device = pointer, shape, dtype, device
        self.is_cuda = device >= 0
        self._strides = row_major(shape) if strides is None else strides

    def data_ptr(self) -> int:
        return self.pointer

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def get_device(self) -> int:
        return self.device


class Interface:
    """Something with `__cuda_array_interface__`."""

    def __init__(self, pointer: int, shape: tuple[int, ...], typestr: str = "<f4",
                 strides: tuple[int, ...] | None = None, readonly: bool = False):  # fmt: skip
        self.__cuda_array_interface__ = {
            "data": (pointer, readonly),
            "shape": shape,
            "strides": strides,
            "typestr": typestr,
            "version": 3,
        }


class Capsule:
    """Something with DLPack; `device_type` 2 is CUDA, 1 the host."""

    def __init__(self, pointer: int, shape: tuple[int, ...], code: int = 4, bits: int = 16,
                 device: tuple[int, int] = (2, 0), strides: tuple[int, ...] | None = None,
                 versioned: bool = False, readonly: bool = False):  # fmt: skip
        self._shape = (ctypes.c_int64 * len(shape))(*shape)
        self._strides = (ctypes.c_int64 * len(shape))(*strides) if strides else None
        self.device = device
        self.streams: list[Any] = []
        self._block = dlpack._Versioned() if versioned else dlpack._DLTensor()
        tensor = self._block.tensor if versioned else self._block
        tensor.data, tensor.ndim = pointer, len(shape)
        tensor.device_type, tensor.device_id = device
        tensor.code, tensor.bits, tensor.lanes = code, bits, 1
        int64 = ctypes.POINTER(ctypes.c_int64)
        tensor.shape = ctypes.cast(self._shape, int64)
        tensor.strides = ctypes.cast(self._strides, int64) if strides else None
        if versioned:
            self._block.flags = int(readonly)
        self._name = b"dltensor_versioned" if versioned else b"dltensor"

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, stream: Any = None) -> Any:
        self.streams.append(stream)
        new = ctypes.pythonapi.PyCapsule_New
        void = ctypes.c_void_p
        new.restype, new.argtypes = ctypes.py_object, (void, ctypes.c_char_p, void)
        return new(ctypes.addressof(self._block), self._name, None)
