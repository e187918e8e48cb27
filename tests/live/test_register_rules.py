"""The register rules of the placement, compared with the compiler.

ptxas derives the registers at kernel entry from the launch bounds as soon as the kernel moves
registers (setmaxnreg); `ptxas -v` prints them.  It rejects a wgmma whose accumulator does not fit
into them (C7602), whatever setmaxnreg requests before.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pipelink_rules.model.placement import entry_registers
from pipelink_rules.model.target import TARGETS

pytestmark = pytest.mark.live

TARGET = TARGETS["sm_90a"]
HEAD = ".version 8.8\n.target sm_90a\n.address_size 64\n"

MOVES_REGISTERS = """
.visible .entry k{threads}_{ctas}(.param .u64 out)
.maxntid {threads}, 1, 1
.minnctapersm {ctas}
{{
    .reg .pred %p<2>; .reg .b32 %r<2>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 128;
    @%p1 bra FIRST;
    setmaxnreg.dec.sync.aligned.u32 24;
    st.global.u32 [%rd2], %r1;
    ret;
FIRST:
    setmaxnreg.dec.sync.aligned.u32 24;
    st.global.u32 [%rd2+4], %r1;
    ret;
}}
"""


def ptxas(toolkit: Any, folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    source = folder / "kernels.ptx"
    source.write_text(HEAD + text, encoding="utf-8")
    command = [
        toolkit.ptxas,
        "-arch=sm_90a",
        "-v",
        str(source),
        "-o",
        str(folder / "kernels.cubin"),
    ]
    return subprocess.run(command, capture_output=True, text=True)


def used(log: str) -> dict[str, int]:
    """Return entry -> registers, from the log of `ptxas -v`."""
    pairs = re.findall(r"entry function '(\w+)'.*?Used (\d+) registers", log, re.DOTALL)
    return {name: int(registers) for name, registers in pairs}


def test_entry_registers_for_every_thread_count_and_occupancy(toolkit: Any, tmp_path: Path) -> None:
    launches = [
        (32 * warps, ctas)
        for ctas in (1, 2, 3, 4, 5, 8)
        for warps in range(1, TARGET.warps_cta + 1)
        if warps * ctas <= TARGET.warps_sm
    ]
    text = "".join(MOVES_REGISTERS.format(threads=t, ctas=c) for t, c in launches)
    result = ptxas(toolkit, tmp_path, text)
    assert result.returncode == 0, result.stderr
    expected = {f"k{t}_{c}": entry_registers(TARGET, t // 32, c) for t, c in launches}
    assert used(result.stdout + result.stderr) == expected


def crowded(threads: int, ctas: int, count: int = 250) -> str:
    """Return an entry with more live values than any launch has registers, without setmaxnreg."""
    load = "".join(f"    ld.volatile.global.f32 %f{i}, [%rd2+{4 * i}];\n" for i in range(count))
    store = "".join(
        f"    st.volatile.global.f32 [%rd2+{4 * i}], %f{i * 7 % count};\n" for i in range(count)
    )
    return f"""
.visible .entry h{threads}_{ctas}(.param .u64 out)
.maxntid {threads}, 1, 1
.minnctapersm {ctas}
{{
    .reg .b64 %rd<3>; .reg .f32 %f<{count}>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd2, %rd1;
{load}    bar.sync 0;
{store}    ret;
}}
"""


def test_kernels_without_setmaxnreg_are_capped_at_the_same_count(
    toolkit: Any, tmp_path: Path
) -> None:
    launches = [(32 * warps, ctas) for ctas in (1, 2, 3) for warps in (4, 5, 8, 9, 13, 16, 20)]
    result = ptxas(toolkit, tmp_path, "".join(crowded(*launch) for launch in launches))
    assert result.returncode == 0, result.stderr
    expected = {f"h{t}_{c}": entry_registers(TARGET, t // 32, c) for t, c in launches}
    assert used(result.stdout + result.stderr) == expected


def multiply(threads: int, columns: int) -> str:
    """Return an entry whose second warpgroup has 240 registers and runs one wgmma m64nNk16."""
    count = columns // 2
    fragment = ", ".join(f"%f{index}" for index in range(count))
    clear = "".join(f"    mov.f32 %f{index}, 0f00000000;\n" for index in range(count))
    store = "".join(f"    st.global.f32 [%rd6+{4 * i}], %f{i};\n" for i in range(count))
    return f"""
.visible .entry w{threads}_{columns}(
    .param .u64 out, .param .u64 a, .param .u64 b, .param .u32 accumulate)
.maxntid {threads}, 1, 1
.minnctapersm 1
{{
    .reg .pred %p<3>; .reg .b32 %r<3>; .reg .b64 %rd<7>; .reg .f32 %f<{count}>;
    ld.param.u64 %rd1, [out];
    ld.param.u64 %rd3, [a];
    ld.param.u64 %rd4, [b];
    ld.param.u32 %r2, [accumulate];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 128;
    @%p1 bra MULTIPLY;
    setmaxnreg.dec.sync.aligned.u32 24;
    ret;
MULTIPLY:
    setmaxnreg.inc.sync.aligned.u32 240;
{clear}    setp.ne.u32 %p2, %r2, 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.bf16.bf16
        {{{fragment}}}, %rd3, %rd4, %p2, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    mul.wide.u32 %rd5, %r1, {4 * count};
    add.u64 %rd6, %rd2, %rd5;
{store}    ret;
}}
"""


@pytest.mark.parametrize(("threads", "columns"), [(512, 208), (640, 144), (640, 256), (768, 112)])
def test_a_wgmma_beyond_the_entry_registers_is_refused(
    toolkit: Any, tmp_path: Path, threads: int, columns: int
) -> None:
    entry, floor = entry_registers(TARGET, threads // 32), columns // 2 + 26
    assert entry < floor
    result = ptxas(toolkit, tmp_path, multiply(threads, columns))
    assert result.returncode != 0
    assert "(C7602)" in result.stderr
    assert f"Insufficient registers ({entry})" in result.stderr
    assert f"register target of {floor} or higher" in result.stderr


def test_the_largest_wgmma_of_each_launch_compiles(toolkit: Any, tmp_path: Path) -> None:
    largest = {384: 256, 512: 200, 640: 136, 768: 104}
    for threads, columns in largest.items():
        assert columns // 2 + 26 <= entry_registers(TARGET, threads // 32)
    text = "".join(multiply(threads, columns) for threads, columns in largest.items())
    result = ptxas(toolkit, tmp_path, text)
    assert result.returncode == 0, result.stderr
    log = used(result.stdout + result.stderr)
    assert log == {
        f"w{threads}_{columns}": entry_registers(TARGET, threads // 32)
        for threads, columns in largest.items()
    }
