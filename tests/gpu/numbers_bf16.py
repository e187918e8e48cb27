"""bf16 without a framework: convert numpy arrays to device arrays and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from pipelink_rules.launch.device_array import DeviceArray
from pipelink_rules.launch.driver import Driver


def to_bf16(values: Any) -> Any:
    """Return the 16 bits of bf16, rounded to nearest even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(bits: Any) -> Any:
    """Return the float64 values of bf16 bits."""
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def upload(driver: Driver, values: Any, dtype: str = "bf16") -> tuple[DeviceArray, Any]:
    """Return a device array and the float64 values that it holds exactly."""
    array = DeviceArray(driver, values.shape, dtype)
    if dtype == "bf16":
        bits = to_bf16(values)
        array.write(bits.tobytes())
        return array, from_bf16(bits)
    single = np.ascontiguousarray(values, dtype=np.float32)
    array.write(single.tobytes())
    return array, single.astype(np.float64)


def download(array: DeviceArray) -> Any:
    """Return the float64 values of a bf16 device array."""
    return from_bf16(np.frombuffer(array.read(), np.uint16)).reshape(array.shape)
