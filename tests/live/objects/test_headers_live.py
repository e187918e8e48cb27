"""The compiler lists all headers, and the listing of weak symbols accepts unusual sources.

Bug threads: meson #11969, pytorch PR #108613 (no dependency files), changa #26 (names of
temporaries in them), cccl #9790 (the list stops after a CCCL header).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipelink_rules.actions.header_deps import read_depfile
from pipelink_rules.compile.object import compile_object
from pipelink_rules.files.codec import read_json
from pipelink_rules.model.variant import WeakTable
from pipelink_rules.toolkit.toolkit import Toolkit

SOURCE = """
#include <cuda/std/utility>
#include "outer.cuh"
#define INNER "through_macro.cuh"
#include INNER
#ifdef __CUDA_ARCH__
#include "device_only.cuh"
#endif
extern "C" __device__ int one(int x) { return deep(x) + macro(x) + device_only(x); }
"""
HEADERS = {
    "outer.cuh": '#pragma once\n#include "deep/er.cuh"\n',
    "deep/er.cuh": "inline __device__ int deep(int x) { return x + 1; }\n",
    "through_macro.cuh": "inline __device__ int macro(int x) { return x + 2; }\n",
    "device_only.cuh": "inline __device__ int device_only(int x) { return x + 3; }\n",
}


def test_every_header_is_listed_and_no_temporary(tmp_path: Path, toolkit: Toolkit) -> None:
    (tmp_path / "deep").mkdir()
    for name, text in HEADERS.items():
        (tmp_path / name).write_text(text)
    source = tmp_path / "one.cu"
    source.write_text(SOURCE)
    seen: list[str] = []

    def inspect(name: str, depfile: Path) -> None:
        assert name == str(source)
        seen.extend(read_depfile(depfile))
        assert "tmpxft" not in depfile.read_text().split(":", 1)[1]

    compile_object(source, tmp_path / "one.fatbin", "sm_90a", toolkit, inspect=inspect)
    listed = {str(Path(name).resolve()) for name in seen if not name.startswith("/usr")}
    expected = {str((tmp_path / name).resolve()) for name in (*HEADERS, "one.cu")}
    assert expected <= listed
    others = listed - expected
    roots = tuple(str(Path(root).resolve()) for root in toolkit.includes)
    assert all(str(Path(name).resolve()).startswith(roots) for name in others)


def test_undeclared_header_leaves_no_output(tmp_path: Path, toolkit: Toolkit) -> None:
    source = tmp_path / "one.cu"
    source.write_text('extern "C" __device__ int one(int x) { return x; }\n')

    def inspect(name: str, depfile: Path) -> None:
        raise LookupError(name)

    try:
        compile_object(source, tmp_path / "out/one.fatbin", "sm_90a", toolkit, inspect=inspect)
    except LookupError:
        assert list((tmp_path / "out").iterdir()) == []
    else:
        raise AssertionError("the inspection was not made")


def test_source_that_requires_inlining_is_listed_with_it(cuda: Callable[..., Path]) -> None:
    guard = "#ifdef always_inline\n#error do not redefine attributes\n#endif\n"
    helper = "inline __device__ int plain(int x) { return x + 1; }\n"
    cuda("odd", guard + helper + 'extern "C" __device__ int one(int x) { return plain(x); }\n')
    table = read_json("odd.weak.json", WeakTable).symbols
    assert [symbol.name for symbol in table] == ["_Z5plaini"]


def test_a_cubin_holds_no_path(cuda: Callable[..., Path], toolkit: Toolkit, tmp_path: Path) -> None:
    """rules_cuda #372: absolute paths and names of temporaries in binaries."""
    from pipelink_rules.link.link import link

    text = """
namespace { __device__ int table[4] = {1, 2, 3, 4}; }
extern "C" __global__ void demo(int* p) { p[0] = table[p[1] & 3]; table[p[2] & 3] = 5; }
"""
    link([cuda("demo", text)], "demo", "sm_90a", toolkit, "nvlink", "demo.cubin")
    data = Path("demo.cubin").read_bytes()
    assert str(tmp_path).encode() not in data
    assert b"tmpxft" not in data
