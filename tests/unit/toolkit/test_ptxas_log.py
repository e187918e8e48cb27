"""The assembler's text, alone and through both linkers, gives the same numbers."""

from __future__ import annotations

import pytest

from pipelink_rules.toolkit.ptxas_log import (
    SETMAXNREG_IGNORED,
    WGMMA_SERIALIZED,
    FunctionLog,
    read_assembler_log,
)

NVLINK = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'demo' for 'sm_90a'
ptxas info    : Function properties for demo
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 168 registers, used 3 barriers, 512 bytes smem, 400 bytes cmem[0]
ptxas info    : Compile time = 14.841 ms
ptxas info    : Function properties for helper
    24 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
"""
NVJITLINK = "INFO: NVVM70 LTOIR Container created (3952 bytes)\n" + NVLINK.replace(
    "    8 bytes", "ptxas         .     8 bytes"
).replace("    24 bytes", "ptxas         .     24 bytes")


@pytest.mark.parametrize("text", [NVLINK, NVJITLINK], ids=["nvlink", "nvJitLink"])
def test_numbers_of_entry_and_function(text: str) -> None:
    log = read_assembler_log(text)
    assert log.function("demo") == FunctionLog("demo", 168, 3, 8, 12, 16, 512)
    assert log.function("helper") == FunctionLog("helper", stack_bytes=24)
    assert log.function("other") is None
    assert log.coded == () and log.register_floor == 0


def test_remarks_are_kept_once_with_their_code() -> None:
    line = (
        "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to"
        " determine register count at entry.\n"
    )
    text = line + line + "ptxas info    : (C7517) wgmma.wait_group is injected in function 'w'\n"
    log = read_assembler_log(text)
    assert [code for code, _ in log.coded] == ["C7508", "C7517"]
    assert "C7508" in SETMAXNREG_IGNORED and "C7517" in WGMMA_SERIALIZED
    assert not SETMAXNREG_IGNORED & WGMMA_SERIALIZED


def test_the_floor_at_entry_is_read() -> None:
    text = (
        "ptxas error   : (C7602) Insufficient registers (24) to compile instruction at line 101 in"
        " function demo. Try to compile with register target of 154 or higher."
    )
    log = read_assembler_log(text)
    assert log.register_floor == 154
    assert log.coded[0][0] == "C7602"
