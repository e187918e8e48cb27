"""Arrays of the caller: key and view.

`key_of` runs on every call and reads the few attributes that decide whether the arguments packed
for an earlier call still match (pointer, shape, strides, dtype).  `view_of` runs once per new key
and returns everything that is checked.  DLPack capsules are read with ctypes; their layout is that
of dlpack.h, versions 0.8 ("dltensor") and 1.x ("dltensor_versioned").
"""

import ctypes
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

_CUDA_DEVICES = (2, 13)  # kDLCUDA, kDLCUDAManaged
# Our names of element types -> those of torch, numpy and cupy (numpy and cupy have no bf16).
FRAMEWORK_DTYPES = {
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "i32": "int32",
    "u32": "uint32",
    "u8": "uint8",
}
_DTYPE_OF = {name: dtype for dtype, name in FRAMEWORK_DTYPES.items()}
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


class View(NamedTuple):
    """An array as the launcher sees it."""

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # in elements; None = row-major without gaps
    dtype: str  # a name of model.contract.DTYPES, or the framework's own name
    device: int | None  # CUDA ordinal; -1 = host; None = ask the driver
    readonly: bool = False

    @property
    def contiguous(self) -> bool:
        """Row-major without gaps; the stride of an extent of 1 does not matter."""
        if self.strides is None:
            return True
        step = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != step:
                return False
            step *= extent
        return True


class NotAnArray(TypeError):
    """The object offers neither DLPack nor `__cuda_array_interface__`."""


Key = Callable[[Any, int], Hashable]  # (array, stream) -> key
READERS: dict[type, Key] = {}  # type of array -> its `key_of`; grows with the types that are seen

_TYPESTR = {  # "f4" -> "f32"; there is none for bf16
    f"{'iuf'[kind]}{bits // 8}": name for (kind, bits), name in _DTYPES.items() if name != "bf16"
}


def reader_for(array: Any) -> Key:
    """Return the key function for arrays of this type; raise NotAnArray if there is none."""
    kind = type(array)
    found = READERS.get(kind)
    if found is None:
        found = READERS[kind] = _choose(array)
    return found


def key_of(arrays: Iterable[Any], stream: int) -> list[Hashable]:
    """Return what decides whether packed arguments still match; KeyError for a new type."""
    key: list[Hashable] = []
    for array in arrays:
        reader = READERS[type(array)]
        if reader is _torch_key:  # written out: a call costs more than what it reads
            key += (array.data_ptr(), array.shape, array.stride(), array.dtype)
        else:
            key.append(reader(array, stream))
    return key


def view_of(array: Any, stream: int = 0) -> View:
    """Return everything about an array; DLPack producers order their work on `stream`."""
    reader = reader_for(array)
    if reader is _torch_key:
        return _torch_view(array)
    interface = None if reader is _dlpack_view else _interface_of(array)
    if interface is None:
        return _dlpack_view(array, stream)
    pointer, readonly = interface["data"]
    typestr, strides = interface["typestr"], interface.get("strides")
    size = int(typestr[2:])
    return View(
        int(pointer),
        tuple(int(extent) for extent in interface["shape"]),
        None if strides is None else tuple(int(stride) // size for stride in strides),
        _TYPESTR.get(typestr[1:], typestr),
        None,
        bool(readonly),
    )


def _choose(array: Any) -> Key:
    if all(hasattr(array, name) for name in ("data_ptr", "stride", "is_cuda")):
        return _torch_key
    if type(array).__module__.partition(".")[0] == "cupy" and hasattr(array, "data"):
        return _cupy_key
    if _interface_of(array) is not None:
        return _interface_key
    if hasattr(array, "__dlpack__"):
        return _dlpack_view
    raise NotAnArray(type(array).__name__)


def _torch_key(array: Any, stream: int) -> Hashable:
    return (array.data_ptr(), array.shape, array.stride(), array.dtype)


def _cupy_key(array: Any, stream: int) -> Hashable:
    return (array.data.ptr, array.shape, array.strides, array.dtype)


def _interface_key(array: Any, stream: int) -> Hashable:
    interface = _interface_of(array)
    if interface is None:
        return _dlpack_view(array, stream)
    return (*interface["data"], interface["shape"], interface.get("strides"), interface["typestr"])


def _dlpack_view(array: Any, stream: int) -> View:
    """Return what DLPack says about an array, which is its key, too.

    The capsule is read, not consumed: the caller's array keeps the ownership of the memory.
    """
    if array.__dlpack_device__()[0] in (1, 3):  # host memory has no stream
        capsule = array.__dlpack__()
    else:
        capsule = array.__dlpack__(stream=stream or 1)  # 1 = the legacy default stream
    if _is_named(capsule, b"dltensor_versioned"):
        versioned = _Versioned.from_address(_pointer_of(capsule, b"dltensor_versioned"))
        tensor, readonly = versioned.tensor, bool(versioned.flags & 1)
    else:
        tensor, readonly = _DLTensor.from_address(_pointer_of(capsule, b"dltensor")), False
    known = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    return View(
        (tensor.data or 0) + tensor.byte_offset,
        tuple(tensor.shape[i] for i in range(tensor.ndim)),
        tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None,
        known or f"dlpack({tensor.code}, {tensor.bits}, {tensor.lanes})",
        tensor.device_id if tensor.device_type in _CUDA_DEVICES else -1,
        readonly,
    )


def _interface_of(array: Any) -> Any:
    """Return `__cuda_array_interface__`; None if missing or if DLPack carries more.

    jax raises its own errors for arrays in host memory; bf16 has no typestr of its own.
    """
    try:
        interface = array.__cuda_array_interface__
    except Exception:
        return None
    known = interface["typestr"][1:] in _TYPESTR or not hasattr(array, "__dlpack__")
    return interface if known else None


def _torch_view(array: Any) -> View:
    dtype = str(array.dtype).rpartition(".")[2]
    return View(
        int(array.data_ptr()),
        tuple(int(extent) for extent in array.shape),
        tuple(int(stride) for stride in array.stride()),
        _DTYPE_OF.get(dtype, dtype),
        int(array.get_device()) if array.is_cuda else -1,
    )
