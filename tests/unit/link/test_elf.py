"""Cubins are read without help: sections, symbols, code and resources."""

from __future__ import annotations

from io import BytesIO

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection
from hypothesis import given
from hypothesis import strategies as st
from link_fixtures import cubin

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.link.elf import Elf

CODE = bytes(range(48))


def test_kernels_with_code_registers_and_stack() -> None:
    data = cubin({"demo": CODE, "other": b"\1" * 16}, registers={"demo": 168}, stack={"other": 32})
    elf = Elf(data)
    assert elf.kernels() == ("demo", "other")
    assert elf.code("demo") == CODE
    assert (elf.registers("demo"), elf.registers("other")) == (168, 0)
    assert (elf.stack_bytes("demo"), elf.stack_bytes("other")) == (0, 32)
    assert elf.code("missing") == b""


@pytest.mark.parametrize(
    ("reserved", "size", "expected"), [(True, 1024, 0), (True, 3072, 2048), (False, 1024, 1024)]
)
def test_the_systems_share_of_shared_memory_is_not_the_kernels(
    reserved: bool, size: int, expected: int
) -> None:
    elf = Elf(cubin({"demo": CODE}, shared={"demo": size}, reserved=reserved))
    assert elf.static_shared("demo") == expected


def test_a_symbol_without_code_is_no_kernel() -> None:
    assert Elf(cubin({"demo": b""})).kernels() == ()


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"fatbin", b"\x7fELF\x01" + bytes(100)])
def test_what_is_no_cubin_is_refused(data: bytes) -> None:
    with pytest.raises(PipelinkError) as problem:
        Elf(data)
    assert problem.value.diagnostics[0].code == "PL0904"


@given(st.integers(0, 700), st.integers(0, 255))
def test_a_damaged_cubin_is_refused_or_read_but_never_a_traceback(at: int, value: int) -> None:
    data = bytearray(cubin({"demo": CODE}, registers={"demo": 40}))
    data[at % len(data)] = value
    try:
        elf = Elf(bytes(data))
        elf.kernels(), elf.registers("demo"), elf.static_shared("demo")
    except PipelinkError as problem:
        assert problem.diagnostics[0].code == "PL0904"


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_][a-z0-9_$]{0,20}", fullmatch=True), st.binary(max_size=64)
    ),
    st.booleans(),
)
def test_sections_and_symbols_are_those_of_pyelftools(
    kernels: dict[str, bytes], reserved: bool
) -> None:
    data = cubin(kernels, shared=dict.fromkeys(kernels, 2048), reserved=reserved)
    read, oracle = Elf(data), ELFFile(BytesIO(data))
    assert [(item.name, item.size, item.link) for item in read.sections] == [
        (item.name, item["sh_size"], item["sh_link"]) for item in oracle.iter_sections()
    ]
    assert [item.data for item in read.sections if item.data] == [
        item.data()
        for item in oracle.iter_sections()
        if item["sh_type"] != "SHT_NOBITS" and item.data()
    ]
    table = oracle.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    assert [(item.name, item.is_function) for item in read.symbols] == [
        (item.name, item["st_info"]["type"] == "STT_FUNC") for item in table.iter_symbols()
    ]
