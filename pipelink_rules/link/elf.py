"""Reader of cubins, which are ELF64 files: sections, symbols, kernels, their code and resources.

Written here because damaged files must end in one error within bounded time and memory, no library
reads .nv.info, and every build avoids an import.  The tests compare with pyelftools.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from pipelink_rules.diagnostics.diagnostic import error

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMTAB, _NOBITS = 2, 8  # types of sections
_FUNCTION = 2  # STT_FUNC, a type of symbols
_RESERVED = 1024
_NAMES = 16  # symbols may share a string, but not all of them a long one
_TEXT = ".text."
# Attributes of .nv.info, each with (symbol index, value); names as cuobjdump -elf prints them.
_REGCOUNT, _FRAME_SIZE, _MIN_STACK_SIZE = 0x2F, 0x11, 0x12


class Section(NamedTuple):
    """One section."""

    name: str
    kind: int
    data: bytes  # empty if the file contains none
    size: int
    link: int


class Symbol(NamedTuple):
    """One symbol."""

    name: str
    is_function: bool


class Elf:
    """A cubin in memory; PL0904 if it is not one."""

    def __init__(self, data: bytes):
        if len(data) < _HEADER.size or data[:5] != b"\x7fELF\x02":
            raise error("PL0904", "the linked file is not a 64-bit ELF cubin", found=repr(data[:8]))
        try:
            self.sections = tuple(_sections(data))
            self.symbols = tuple(self._read_symbols())
        except (struct.error, IndexError, OverflowError, ValueError) as problem:
            message = "the linked file is a damaged cubin"
            raise error("PL0904", message, found=str(problem)) from None

    def _read_symbols(self) -> Iterator[Symbol]:
        """Yield the symbols in file order: .nv.info refers to them by index."""
        table = next((item for item in self.sections if item.kind == _SYMTAB), None)
        if table is None:
            return
        names = self.sections[table.link].data
        left = _NAMES * len(names) + 1
        for name, info, *_ in _SYMBOL.iter_unpack(table.data):
            found = _string(names, name)
            left -= len(found)
            if left < 0:
                raise ValueError("its symbols share names that overlap")
            yield Symbol(found, info & 0xF == _FUNCTION)

    def section(self, name: str) -> Section | None:
        """Return the section of that name."""
        return next((item for item in self.sections if item.name == name), None)

    def kernels(self) -> tuple[str, ...]:
        """Return the names of the kernels, sorted: functions with a separate code section."""
        functions = {item.name for item in self.symbols if item.is_function}
        named = {
            item.name.removeprefix(_TEXT)
            for item in self.sections
            if item.data and item.name.startswith(_TEXT)
        }
        return tuple(sorted(functions & named))

    def code(self, kernel: str) -> bytes:
        """Return the machine code of a kernel, encodings included."""
        found = self.section(_TEXT + kernel)
        return found.data if found else b""

    def static_shared(self, kernel: str) -> int:
        """Return the bytes of static shared memory without those reserved by the system."""
        found = self.section(f".nv.shared.{kernel}")
        if found is None:
            return 0
        # Since sm_90 the system reserves the first KiB of every CTA and counts it in this section.
        reserved = _RESERVED if self.section(".nv.shared.reserved.0") else 0
        return max(0, found.size - reserved)

    def registers(self, kernel: str) -> int:
        """Return the registers per thread at launch; 0 if the file does not state them."""
        return self._attribute(_REGCOUNT, kernel)

    def stack_bytes(self, kernel: str) -> int:
        """Return the bytes of stack per thread."""
        return max(self._attribute(_MIN_STACK_SIZE, kernel), self._attribute(_FRAME_SIZE, kernel))

    def _attribute(self, attribute: int, kernel: str) -> int:
        section = self.section(".nv.info")
        if section is None:
            return 0
        for found, payload in _attributes(section.data):
            if found == attribute and len(payload) == 8:
                symbol, value = struct.unpack("<II", payload)
                if symbol < len(self.symbols) and self.symbols[symbol].name == kernel:
                    return int(value)
        return 0


def _sections(data: bytes) -> Iterator[Section]:
    fields = _HEADER.unpack_from(data)
    offset, size, count, names_index = fields[6], fields[11], fields[12], fields[13]
    if size != _SECTION.size:
        raise ValueError(f"its section headers have {size} bytes, not {_SECTION.size}")
    rows = [_SECTION.unpack_from(data, offset + i * size) for i in range(count)]
    _, _, _, _, names_at, names_size, *_ = rows[names_index]
    names = data[names_at : names_at + names_size]
    left = len(data)
    for name, kind, _flags, _address, start, length, link, *_ in rows:
        held = b"" if kind == _NOBITS else data[start : start + length]
        left -= len(held)
        if left < 0:
            raise ValueError("its sections overlap")
        yield Section(_string(names, name), kind, held, length, link)


def _string(table: bytes, offset: int) -> str:
    return table[offset : table.index(b"\0", offset)].decode("utf-8", "replace")


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (attribute, payload): format byte, attribute byte, then 16 bits of size or value."""
    position = 0
    while position + 4 <= len(data):
        form, attribute, value = struct.unpack_from("<BBH", data, position)
        position += 4
        if form == 4:  # sized
            yield attribute, data[position : position + value]
            position += value
        else:
            yield attribute, struct.pack("<H", value)
