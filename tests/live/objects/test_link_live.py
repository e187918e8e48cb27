"""Links that must fail, and what the audit finds in kernels that differ from their plan."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from link_fixtures import placement_of_demo, program_of_demo

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.link.audit_kernel import inspect
from pipelink_rules.link.elf import Elf
from pipelink_rules.link.link import link, link_unchecked
from pipelink_rules.model.placement import Placement, Warpgroup
from pipelink_rules.toolkit.layout import layout_of, shim_nvvm
from pipelink_rules.toolkit.toolkit import Toolkit

BACKENDS = pytest.mark.parametrize("backend", ["nvlink", "nvjitlink"])
SCALE = 'extern "C" __device__ float pl_scale_apply_0123456789ab(float x) { return x * 3.0f; }\n'
DEMO = """
extern "C" __device__ float pl_scale_apply_0123456789ab(float x);
extern "C" __global__ void demo(float* out) { out[0] = pl_scale_apply_0123456789ab(out[1]); }
"""
Compile = Callable[..., Path]


def code_of(objects: list[Path], toolkit: Toolkit, backend: str, checked: bool = True) -> list[str]:
    """Return the codes that a link reports; it must leave no output."""
    out = Path("demo.cubin")
    step = link if checked else link_unchecked
    with pytest.raises(PipelinkError) as problem:
        step([str(path) for path in objects], "demo", "sm_90a", toolkit, backend, out)
    assert not out.exists()
    assert not [path for path in Path().iterdir() if path.name.startswith(".staged")]
    return [item.code for item in problem.value.diagnostics]


@BACKENDS
def test_an_undefined_entry(cuda: Compile, toolkit: Toolkit, backend: str) -> None:
    assert code_of([cuda("demo", DEMO)], toolkit, backend) == ["PL1210"]


@BACKENDS
def test_a_symbol_in_two_objects(cuda: Compile, toolkit: Toolkit, backend: str) -> None:
    objects = [cuda("demo", DEMO), cuda("scale", SCALE), cuda("again", SCALE)]
    assert code_of(objects, toolkit, backend) == ["PL1211"]


@BACKENDS
def test_mixed_flags(cuda: Compile, toolkit: Toolkit, backend: str) -> None:
    """nvlink rejects mixed flags, nvJitLink depends on the input order: PipeLink rejects both."""
    objects = [cuda("demo", DEMO), cuda("scale", SCALE, flags=("ftz=true",))]
    assert code_of(objects, toolkit, backend) == ["PL1208"]
    if backend == "nvlink":
        assert code_of(objects, toolkit, backend, checked=False) == ["PL1208"]


@BACKENDS
def test_another_architecture(cuda: Compile, toolkit: Toolkit, backend: str) -> None:
    """AMReX PR #4773: every object holds link-time code for the target."""
    objects = [cuda("demo", DEMO), cuda("scale", SCALE, arch="sm_100a")]
    assert code_of(objects, toolkit, backend) == ["PL1207"]
    assert code_of(objects, toolkit, backend, checked=False) == ["PL1207"]


def test_partial_lto_is_rejected(cuda: Compile, toolkit: Toolkit) -> None:
    """AMReX #5631: `doing partial LTO` is an information line of a link that succeeds."""
    demo = cuda("demo", DEMO)
    cuda("scale", SCALE)
    argv = [toolkit.nvcc, "-rdc=true", "--fatbin", "-gencode", "arch=compute_90a,code=sm_90a"]
    argv += ["scale.cu", "-o", "ready.fatbin"]
    subprocess.run(argv, check=True, env=toolkit.environment())
    objects = [demo, Path("ready.fatbin")]
    assert code_of(objects, toolkit, "nvlink") == ["PL1207"]
    assert code_of(objects, toolkit, "nvlink", checked=False) == ["PL1212"]


def test_a_link_without_the_kernel(cuda: Compile, toolkit: Toolkit) -> None:
    other = cuda("other", DEMO.replace("demo", "other"))
    objects = [other, cuda("scale", SCALE)]
    assert code_of(objects, toolkit, "nvlink") == ["PL1213"]


def test_older_linker_is_reported(cuda: Compile, toolkit: Toolkit, tmp_path: Path) -> None:
    """cuda-python #2351, numba #10353: `may need newer version of nvJitLink library`."""
    root = Path("/usr/local/cuda-13.0")
    if not (root / "bin/nvlink").exists():
        pytest.skip("there is no CUDA 13.0")
    layout = layout_of(root, {"PATH": "/usr/bin:/bin"})
    old = replace(
        toolkit,
        nvlink=str(layout.nvlink),
        nvvmpath=str(shim_nvvm(layout, tmp_path)),
        libraries=str(layout.libraries),
        version="13.0.88",
    )
    objects = [cuda("demo", DEMO), cuda("scale", SCALE)]
    assert code_of(objects, old, "nvlink", checked=False) == ["PL1202"]


@BACKENDS
def test_inputs_in_any_order_give_the_same_bytes(
    cuda: Compile, toolkit: Toolkit, backend: str
) -> None:
    objects = [str(cuda("demo", DEMO)), str(cuda("scale", SCALE))]
    link(objects, "demo", "sm_90a", toolkit, backend, "one.cubin")
    link(objects[::-1], "demo", "sm_90a", toolkit, backend, "two.cubin")
    assert Path("one.cubin").read_bytes() == Path("two.cubin").read_bytes()
    assert Elf(Path("one.cubin").read_bytes()).kernels() == ("demo",)


# -- the audit -------------------------------------------------------------------------------------

TURN = (("mma.turn", 1),)
PLAIN = placement_of_demo(
    setmaxnreg=False,
    entry_registers=168,
    warpgroups=(Warpgroup(0, ("load", "mma"), 168),),
    named=(),
)
MOVED = placement_of_demo(
    threads=256,
    named=(),
    entry_registers=255,
    warps=(("load", 0), ("mma", 4)),
    warpgroups=(Warpgroup(0, ("load",), 24), Warpgroup(1, ("mma",), 240)),
)
KERNELS = """
extern "C" __global__ void __launch_bounds__(128, 1) spills(float* p) {
  float v[64];
  for (int i = 0; i < 64; ++i) v[i] = p[i];
  for (int n = 0; n < 9; ++n) p[n] = v[(n * n + int(p[99])) & 63];
}
__device__ __noinline__ float outside(float x) { return x * x + 1.0f; }
extern "C" __global__ void __launch_bounds__(128, 1) calls(float* p) { p[0] = outside(p[1]); }
extern "C" __global__ void __launch_bounds__(128, 1) statics(float* p) {
  __shared__ float tile[512];
  tile[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = tile[threadIdx.x ^ 1];
}
extern "C" __global__ void __launch_bounds__(128, 1) barriers(float* p) {
  asm volatile("barrier.cta.sync.aligned 7, 128;" ::: "memory");
  asm volatile("barrier.cta.sync.aligned %0, 128;" ::"r"(int(p[0])) : "memory");
}
extern "C" __global__ void __launch_bounds__(128, 1) fine(float* p, int n) {
  __syncthreads();
  p[0] = p[1] / n;
}
"""
DROPPED = """
extern "C" __global__ void __launch_bounds__(256) demo(float* p) {
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    p[threadIdx.x] = 1.0f;
  }
}
"""
SERIALISED = """
#include <pipelink/wgmma.cuh>
__device__ __noinline__ void step(float (&acc)[32], uint64_t a) {
  pipelink::Wgmma<64, __nv_bfloat16>::step(acc, a, a, 1);
}
extern "C" __global__ void __launch_bounds__(128, 1) demo(float* p, uint64_t a) {
  float acc[32];
  for (int i = 0; i < 32; ++i) acc[i] = p[i];
  pipelink::wgmma_fence();
  step(acc, a);
  pipelink::wgmma_commit();
  pipelink::wgmma_wait<0>();
  for (int i = 0; i < 32; ++i) p[i * 128 + threadIdx.x] = acc[i];
}
"""


def found_in(
    objects: list[Path], toolkit: Toolkit, kernel: str, placement: Placement, backend: str
) -> set[str]:
    names = [str(path) for path in objects]
    log = link_unchecked(names, kernel, "sm_90a", toolkit, backend, "out.cubin")
    program = replace(program_of_demo(), name=kernel)
    _, findings = inspect("out.cubin", program, placement, log, toolkit)
    return {item.code for item in findings}


def test_difference_from_the_plan_is_reported(cuda: Compile, toolkit: Toolkit) -> None:
    """cuda-oxide #708/#755, nccl #202: spills, calls and ignored registers are errors."""
    objects = [cuda("kernels", KERNELS)]
    expected = {
        "spills": {"PL0921"},
        "calls": {"PL0922"},
        "statics": {"PL0924"},
        "barriers": {"PL0925"},
        "fine": set(),
    }
    for kernel, codes in expected.items():
        assert found_in(objects, toolkit, kernel, PLAIN, "nvlink") == codes, kernel


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ('asm volatile("barrier.cta.sync.aligned 1, 256;");', set()),
        ('asm volatile("barrier.cta.sync.aligned 1, 128;");', {"PL0938"}),
        ('asm volatile("barrier.cta.sync.aligned %0, 256;" :: "r"(n));', {"PL0925", "PL0938"}),
        ('asm volatile("barrier.cta.arrive.aligned 1, 256;");', {"PL0938"}),
        ("", {"PL0938"}),
        (
            'for (int i = 0; i < n; ++i) asm volatile("barrier.cta.sync.aligned 1, 256;");',
            set(),  # however often it is unrolled
        ),
    ],
)
def test_barrier_sites(body: str, codes: set[str], cuda: Compile, toolkit: Toolkit) -> None:
    """`mma.turn` has id 1, is only waited on, and counts 256 threads."""
    head = 'extern "C" __global__ void __launch_bounds__(256, 1) turns(float* p, int n)'
    objects = [cuda("turns", f"{head} {{ {body} p[threadIdx.x] = n; }}")]
    assert found_in(objects, toolkit, "turns", replace(PLAIN, named=TURN), "nvlink") == codes


@BACKENDS
def test_setmaxnreg_that_the_assembler_drops(cuda: Compile, toolkit: Toolkit, backend: str) -> None:
    """cutlass #3406: an information line with exit status 0, also under -Werror."""
    objects = [cuda("dropped", DROPPED)]
    assert "PL0920" in found_in(objects, toolkit, "demo", MOVED, backend)
    kept = cuda("kept", DROPPED.replace("(256)", "(256, 1)"))
    assert found_in([kept], toolkit, "demo", MOVED, backend) == set()


@BACKENDS
def test_wgmma_across_a_call(cuda: Compile, toolkit: Toolkit, backend: str) -> None:
    objects = [cuda("serialised", SERIALISED)]
    assert {"PL0922", "PL0926"} <= found_in(objects, toolkit, "demo", PLAIN, backend)
    inlined = cuda("inlined", SERIALISED.replace("__noinline__", "__forceinline__"))
    assert not {"PL0922", "PL0926"} & found_in([inlined], toolkit, "demo", PLAIN, backend)
