"""What is in a DLPack capsule?  Its structures, read with ctypes and nothing else.

Layout: dlpack.h, versions 0.8 ("dltensor") and 1.x ("dltensor_versioned").
"""

from __future__ import annotations

import ctypes
from typing import Any

_CUDA_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged
_DTYPES = {
    (4, 16): "bf16",  # (kDLBfloat, bits)
    (2, 16): "f16",
    (2, 32): "f32",
    (2, 64): "f64",
    (0, 32): "i32",
    (0, 64): "i64",
    (1, 32): "u32",
    (1, 8): "u8",
}


class _DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),  # bit 0: read-only
        ("tensor", _DLTensor),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_named = ctypes.pythonapi.PyCapsule_IsValid
_is_named.restype = ctypes.c_int
_is_named.argtypes = (ctypes.py_object, ctypes.c_char_p)


def read_capsule(
    capsule: Any,
) -> tuple[int, tuple[int, ...], tuple[int, ...] | None, str, int, bool]:
    """(pointer, shape, strides in elements or None, dtype, CUDA device or -1, read-only).

    The capsule is only looked at, not consumed: the caller's array stays the owner of the memory.
    """
    if _is_named(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer_of(capsule, b"dltensor_versioned"))
        tensor, readonly = versioned.tensor, bool(versioned.flags & 1)
    else:
        tensor = _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
        readonly = False
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    known = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    dtype = known or f"dlpack({tensor.code}, {tensor.bits}, {tensor.lanes})"
    device = tensor.device_id if tensor.device_type in _CUDA_DEVICES else -1
    pointer = (tensor.data or 0) + tensor.byte_offset
    return pointer, shape, strides, dtype, device, readonly
