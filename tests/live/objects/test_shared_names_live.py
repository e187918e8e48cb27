"""Helpers outside of the namespace of a component: the linker merges them, PipeLink rejects them.

Bug class: two variants of one source share every inline function, template, member and table by
name; the second computes with the first one's parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pipelink_rules.compile.object import compile_object
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.codec import read_json
from pipelink_rules.link.link import link, link_unchecked
from pipelink_rules.link.sass import disassemble
from pipelink_rules.model.variant import WeakTable
from pipelink_rules.toolkit.toolkit import Toolkit

# One helper of each kind; every one of them multiplies by FACTOR.
HELPERS = {
    "inline": ("inline __device__ int plain(int x) { return x * FACTOR; }", "plain(x)"),
    "forceinline": (
        "__device__ __forceinline__ int always(int x) { return x * FACTOR; }",
        "always(x)",
    ),
    "template": (
        "template <int N> __device__ int templated(int x) { return x * FACTOR + N; }",
        "templated<3>(x)",
    ),
    "member": (
        "struct Tile { int side; __device__ int area() const { return side * FACTOR; } };",
        "Tile{x}.area()",
    ),
    "table": (
        "template <typename T> __constant__ T table[2] = {FACTOR, FACTOR + 1};",
        "table<int>[x & 1]",
    ),
    "through a static": (
        "static __device__ int inner(int x) { return x * FACTOR; }\n"
        "inline __device__ int outer(int x) { return inner(x) + 1; }",
        "outer(x)",
    ),
}
GLUE = """
extern "C" __device__ int entry_1000(int x);
extern "C" __device__ int entry_2000(int x);
extern "C" __global__ void demo(int* out, int x) {
  out[0] = entry_1000(x);
  out[1] = entry_2000(x);
}
"""


BACKENDS = pytest.mark.parametrize("backend", ["nvlink", "nvjitlink"])


def variant_text(kinds: Sequence[str], factor: int, namespace: str) -> str:
    helpers = "\n".join(HELPERS[kind][0] for kind in kinds)
    calls = " + ".join(HELPERS[kind][1] for kind in kinds)
    inside = f"namespace {namespace} {{\n{helpers}\n}}" if namespace else helpers
    using = f"using namespace {namespace};" if namespace else ""
    return (
        f"#define FACTOR {factor}\n{inside}\n"
        f'extern "C" __device__ int entry_{factor}(int x) {{ {using} return {calls}; }}\n'
    )


def objects_of(cuda: Callable[..., Path], kinds: Sequence[str], namespaces: bool) -> list[str]:
    made = [
        cuda(f"v{n}", variant_text(kinds, n, f"pl_variant_{n}" if namespaces else ""))
        for n in (1000, 2000)
    ]
    return [str(path) for path in (*made, cuda("glue", GLUE))]


def factors_in(cubin: str, toolkit: Toolkit) -> set[int]:
    code = disassemble(cubin, "demo", toolkit)
    words = [word for i in code.instructions for word in re.findall("0x([0-9a-f]+)", i.operands)]
    return {int(word, 16) for word in words} & {1000, 2000}


def test_every_kind_of_shared_name_with_two_bodies_is_refused(
    cuda: Callable[..., Path], toolkit: Toolkit
) -> None:
    objects = objects_of(cuda, list(HELPERS), namespaces=False)
    with pytest.raises(PipelinkError) as problem:
        link(objects, "demo", "sm_90a", toolkit, "nvlink", "demo.cubin")
    (finding,) = problem.value.diagnostics
    assert finding.code == "PL0903"
    assert "v1000.fatbin" in finding.message and "v2000.fatbin" in finding.message
    for name in ("always", "plain", "templated<3>", "Tile::area", "table<int>", "outer"):
        assert name in finding.found
    assert not Path("demo.cubin").exists()


def test_linker_merges_silently_and_computes_wrong_results(
    cuda: Callable[..., Path], toolkit: Toolkit
) -> None:
    """The reason for the check: even always-inlined helpers are merged."""
    objects = objects_of(cuda, ["forceinline"], namespaces=False)
    log = link_unchecked(objects, "demo", "sm_90a", toolkit, "nvlink", "demo.cubin")
    assert not re.search("warning|error|multiply", log.text)
    assert len(factors_in("demo.cubin", toolkit)) == 1


@BACKENDS
def test_bodies_in_the_namespace_of_the_variant_are_separate(
    cuda: Callable[..., Path], toolkit: Toolkit, backend: str
) -> None:
    objects = objects_of(cuda, ["forceinline"], namespaces=True)
    link(objects, "demo", "sm_90a", toolkit, backend, "demo.cubin")
    assert factors_in("demo.cubin", toolkit) == {1000, 2000}


def test_one_header_in_two_objects_and_two_folders_is_accepted(
    cuda: Callable[..., Path], toolkit: Toolkit, tmp_path: Path
) -> None:
    """The digests of bodies do not depend on paths, nor on other code of the unit."""
    header = "#define FACTOR 7\n" + "\n".join(HELPERS[kind][0] for kind in HELPERS)
    calls = " + ".join(call for _, call in HELPERS.values())
    entry = 'extern "C" __device__ int %s(int x) { return %s; }\n'
    cuda("one", f"{header}\n{entry}" % ("one", calls))
    folder = tmp_path / "deep/er"
    folder.mkdir(parents=True)
    before = "inline __device__ int before(int x) { return x ^ 5; }"
    text = f"{before}\n{header}\n{entry}" % ("two", f"before(x) + {calls}")
    (folder / "two.cu").write_text(text)
    two = compile_object(folder / "two.cu", folder / "two.fatbin", "sm_90a", toolkit)
    one = read_json("one.weak.json", WeakTable).symbols
    assert {symbol.name for symbol in two} > {symbol.name for symbol in one}
    assert set(one) <= set(two)
    assert len(one) == len(HELPERS)
