"""Arrays on the GPU without a framework, for `pipelink run` and the GPU tests."""

from __future__ import annotations

import array
import math
import os

from pipelink_rules.launch.arrays import FRAMEWORK_DTYPES
from pipelink_rules.launch.driver import Driver
from pipelink_rules.model.contract import DTYPES

# Random bits -> numbers of magnitude 0.5 .. 2: (bits kept, bits set), little endian per element.
_SHAPED = {"bf16": (0x80FF, 0x3F00), "f16": (0x87FF, 0x3800), "f32": (0x80FFFFFF, 0x3F000000)}
_BLOCK = 1 << 20


class DeviceArray:
    """A row-major array in device memory with the interface of a torch.Tensor that is needed."""

    is_cuda = True

    def __init__(self, driver: Driver, shape: tuple[int, ...], dtype: str, device: int = 0):
        self.shape = shape
        self.dtype = FRAMEWORK_DTYPES.get(dtype, dtype)
        self.nbytes = math.prod(shape) * DTYPES[dtype][0]
        self._driver, self._device, self._name = driver, device, dtype
        self._pointer = int(driver.call("cuMemAlloc", max(self.nbytes, 16)))

    def data_ptr(self) -> int:
        """Return the device address."""
        return self._pointer

    def stride(self) -> tuple[int, ...]:
        """Return elements from one entry of each axis to the next."""
        return tuple(math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape)))

    def get_device(self) -> int:
        """Return the ordinal of the device."""
        return self._device

    def fill_random(self) -> None:
        """Numbers of magnitude 0.5 to 2 with random signs; small ones for integers."""
        size = DTYPES[self._name][0]
        keep, put = _SHAPED.get(self._name, (0x7F, 0))
        count = min(_BLOCK, -(-self.nbytes // size) * size)

        def repeated(word: int) -> int:
            return int.from_bytes(word.to_bytes(size, "little") * (count // size), "little")

        bits = int.from_bytes(os.urandom(count), "little") & repeated(keep) | repeated(put)
        block = bits.to_bytes(count, "little")
        self.write((block * -(-self.nbytes // count))[: self.nbytes])

    def write(self, data: bytes) -> None:
        """Copy host bytes to the array."""
        if len(data) != self.nbytes:
            raise ValueError(f"{len(data)} bytes for an array of {self.nbytes}")
        self._driver.write(self._pointer, data)

    def read(self) -> bytes:
        """Return the bytes of the array, on the host."""
        return self._driver.read(self._pointer, self.nbytes)

    def poison(self) -> None:
        """Set all bits: a NaN, or -1."""
        self.write(b"\xff" * self.nbytes)

    def left_poisoned(self) -> int:
        """Return elements whose bits are still all set."""
        size = DTYPES[self._name][0]
        found = array.array({1: "B", 2: "H", 4: "I"}[size], self.read())
        return found.count(2 ** (8 * size) - 1)

    def free(self) -> None:
        """Free the memory."""
        self._driver.call("cuMemFree", self._pointer)


class Timer:
    """Microseconds on the GPU between two events of a stream."""

    def __init__(self, driver: Driver, stream: int = 0):
        self._driver, self._stream = driver, stream
        self._start, self._end = (driver.call("cuEventCreate", 0) for _ in range(2))

    def __enter__(self) -> Timer:
        self._driver.call("cuEventRecord", self._start, self._stream)
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.call("cuEventRecord", self._end, self._stream)

    def microseconds(self) -> float:
        """Wait for the second event; return the time between both."""
        self._driver.call("cuEventSynchronize", self._end)
        answer = self._driver.api.cuEventElapsedTime(self._start, self._end)
        if answer[0]:
            raise self._driver.failure("cuEventElapsedTime", answer[0])
        return float(answer[1]) * 1000
