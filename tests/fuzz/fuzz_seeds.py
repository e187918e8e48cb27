"""What is broken: good files of every kind, small ones where a tool writes them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import shipped_declarations
from link_fixtures import cubin

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.load import load_contract
from pipelink_rules.contract.sidecar import dump_sidecar
from pipelink_rules.diagnostics.diagnostic import CheckResult, Diagnostic, Label
from pipelink_rules.files.codec import to_json
from pipelink_rules.model.linked_kernel import Audit, Manifest
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import BuildRecord, Measured, Variant, WeakSymbol
from pipelink_rules.program.spec import parse_declaration
from pipelink_rules.report.manifest import manifest_of

MEGAKERNELS = (
    "gemm_bias_gelu",
    "gemm_multicast",
    "gemm_bias_gelu_epilogue_warps",
    "gemm_split_k",
    "gemm_tensor_memory",
    "rms_norm",
)
ENTRY = "gemm_bias_gelu"

PTX = b"""
.version 9.5
.target sm_90a
.address_size 64
\t// .globl\tentry
.extern .func  (.param .b32 func_retval0) pl_runtime
(
\t.param .b32 pl_runtime_param_0
)
;
.weak .global .align 4 .b8 table[16] = {5, 0, 0, 0, 64};   // a comment; with a semicolon {
.extern .shared .align 16 .b8 dynamic[];
.visible .global .u32 counter;
.func inner(.param .b64 inner_param_0)
{
\tst.global.u32 \t[counter], 1;
\tret;
}
.weak .func (.param .b32 func_retval0) _Z6helperi(
\t.param .b32 _Z6helperi_param_0
)
{
\t.reg .b32 \t%r<3>;
\tld.param.b32 \t%r1, [_Z6helperi_param_0];
\tadd.s32 \t%r2, %r1, 1;
\tcall.uni inner, (param0);
\tst.param.b32 \t[func_retval0], %r2;
\tret;
}
.visible .func pl_scale_apply_0123456789ab(
\t.param .b64 entry_param_0
)
{
\t.local .align 8 .b8 \t__local_depot1[16];
\t.shared .align 4 .b8 tile[512];
\t.reg .pred \t%p<2>;
\t// begin inline asm
\t{.reg .pred done;
again: mbarrier.try_wait.parity.shared::cta.b64 done, [%r1], %r2;
@!done bra again;}
\tbar.sync 0, 128;
\tmov.u32 %r1, %tid.x;
\tsetmaxnreg.dec.sync.aligned.u32 40;
\tcall.uni (retval0), _Z6helperi, (param0);
\t@%p1 bra $L__BB0_2;
\tatom.global.gpu.add.u32 %r3, [counter], 1;
$L__BB0_2:
\tret;
}
"""
SASS = b"""
\t.section\t.text.demo,"ax",@progbits
demo:
.text.demo:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0020*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0030*/              @!P0 BRA `(.L_x_0) ;
.L_x_1:
        /*0040*/                   USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8 ;
        /*0050*/              @!P0 BRA `(.L_x_1) ;
        /*0060*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], R24, gsb0 ;
        /*0090*/                   CALL.REL.NOINC `($demo$__internal_0_$__cuda_sm20_div_u32) ;
        /*00a0*/                   BRA `(.L_x_3) ;
.L_x_0:
        /*00b0*/                   USETMAXREG.DEALLOC.CTAPOOL 0x28 ;
        /*00d0*/                   IMAD.WIDE.U32 R38, R5, 0x4, R2 ;
        /*00e0*/                   BAR.SYNC R3, R4 ;
.L_x_3:
        /*00f0*/                   EXIT ;
$demo$__internal_0_$__cuda_sm20_div_u32:
        /*0100*/                   MOV R12, R3 ;
        /*0110*/                   RET.REL.NODEC R2 `(demo) ;
.L_x_9:
        /*0140*/                   BRA `(.L_x_9);
        /*0150*/                   NOP;
\t.section\t.text.other,"ax",@progbits
"""
LOG = b"""nvlink info    : requested LTO but 'a.fatbin' not built for LTO so doing partial LTO
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'demo' for 'sm_90a'
ptxas info    : Function properties for demo
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 168 registers, used 3 barriers, 512 bytes smem, 400 bytes cmem[0]
ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored
ptxas error   : (C7602) Insufficient registers, register target of 154
error   : Undefined reference to 'pl_ring_wait' in 'a.fatbin'
error   : Multiple definition of 'e1' in 'a', first defined in 'b'
nvlink fatal   : Cicc option values for '-ftz' do not match
nvlink error   : SM Arch ('sm_90a') not found in 'v1a.fatbin'
"""
COMPILER = b"""kernels/scale.cu(12): error: identifier "kTN" is undefined
  for (int i = 0; i < kTN; ++i) x *= 2;
kernels/scale.cu:3:10: fatal error: scale.contract.cuh: No such file or directory
kernels/scale.cu(3): error #20011-D: declaration is incompatible with previous "f"
1 error detected in the compilation of "kernels/scale.cu".
"""
LISTING = b"""
Fatbin ptx code:
================
arch = sm_90a
code version = [9,5]
host = linux

Fatbin nvvm code:
=================
arch = sm_90a
code version = [3,1]
nvvmOptions = -arch=compute_90a -ftz=0 -fmad=1 -prec_div=1 -prec_sqrt=1
"""
DEPFILE = b"""unit.fatbin : kernels/scale.cu \\
    build/sm_90a/variants/scale_1/scale.contract.cuh \\
    /usr/include/stdio.h kernels/with\\ space.cuh \\
    components/include/pipelink/abi.cuh
kernels/scale.cuh:
"""


def contracts() -> list[bytes]:
    """All contracts of the repository."""
    folder = shipped_declarations.REPOSITORY / "components"
    return [path.read_bytes() for path in sorted(folder.rglob("*.contract.yaml"))]


def specs() -> list[bytes]:
    """`.spec.json`."""
    made = shipped_declarations.megakernels()
    return [to_json(parse_declaration(**made[name])).encode() for name in MEGAKERNELS]


def programs() -> list[bytes]:
    """`.program.json`."""
    made = shipped_declarations.megakernels()
    return [
        to_json(shipped_declarations.program_of(name, made[name]["archs"][0])).encode()
        for name in MEGAKERNELS
    ]


def placements() -> list[bytes]:
    """`.placement.json` of `ENTRY`."""
    return [to_json(shipped_declarations.placement_of(ENTRY)).encode()]


@cache
def raw_roles() -> tuple[tuple[Variant, bytes], ...]:
    """Components with raw barriers and copies, and what nvcc makes of them."""
    arguments: dict[str, dict[str, int | str]] = {
        "raw_load_ab": {"TM": 128, "TN": 128},
        "raw_store_rows": {"ROWS": 4, "D": 256},
    }
    found = []
    for name, given in arguments.items():
        contract = Path(__file__).parents[1] / f"contract_mismatch/raw/{name}.contract.yaml"
        variant = bind(load_contract(str(contract)), given)
        text = Path(__file__).with_name(f"{name}.ptx").read_text(encoding="utf-8")
        entry = variant.symbol(variant.contract.roles[0].name)
        found.append((variant, text.replace("@entry@", entry).encode()))
    return tuple(found)


def audit() -> Audit:
    """What a link of `ENTRY` is found to be."""
    return Audit(
        ENTRY, 168, 0, 0, 0, 0, 640, (), (40, 232), ((0, 1), (1, 2)), (), "0" * 64, ("C7508: x",)
    )  # fmt: skip


@cache
def elf() -> bytes:
    """A cubin with two kernels."""
    return cubin(
        {ENTRY: bytes(range(256)) * 2, "other": b"\1" * 64},
        registers={ENTRY: 168, "other": 20},
        stack={ENTRY: 0},
        shared={ENTRY: 1024},
    )


def manifest(folder: Path) -> Manifest:
    """The manifest of a cubin that is written to the folder."""
    image = folder / f"{ENTRY}.cubin"
    image.write_bytes(elf())
    return manifest_of(
        shipped_declarations.program_of(ENTRY),
        shipped_declarations.placement_of(ENTRY),
        audit(),
        image,
    )


def built_variants() -> list[Variant]:
    """Variants as they are after the probe."""
    program = shipped_declarations.program_of(ENTRY)
    return [item.variant for item in program.instances]


def record(variant: Variant) -> BuildRecord:
    """How its object was made, if it had been."""
    probe = tuple((role.name, Measured(40, 32, 0, 0)) for role in variant.contract.roles)
    return BuildRecord(
        "13.5.37",
        "f" * 64,
        command=("nvcc", "-c", "a.cu"),
        objects=((f"{variant.contract.component}.fatbin", "0" * 64),),
        probe=probe,
        weak=(WeakSymbol("_Z1fv", "func", "a" * 64),),
    )


def sidecars() -> list[bytes]:
    """The `.contract.yaml` beside an object."""
    return [dump_sidecar(item, record(item)).encode() for item in built_variants()]


def interfaces() -> list[bytes]:
    """`.interface.json`."""
    return [to_json(item).encode() for item in built_variants()]


def recordings() -> list[bytes]:
    """`.trace.json` and `.record.json`: short ones, and the one of docs/examples/."""
    from recorded_gemm import example_trace

    whole = example_trace()
    return [to_json(replace(whole, rows=whole.rows[:6])).encode()]


def findings() -> list[bytes]:
    """`.check.json`."""
    noun = (Diagnostic("PL0202", "a message", (Label(Span("a.yaml", 1, 2), "here"),)),)
    return [to_json(CheckResult(noun)).encode()]
