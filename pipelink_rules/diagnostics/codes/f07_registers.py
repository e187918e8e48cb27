"""PL07xx: warps and registers."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL0701",
        "warpgroup-warps",
        "A warpgroup operation of a role that is not made of whole warpgroups is undefined.",
        "PTX ISA, wgmma and setmaxnreg: all 4 warps of a warpgroup execute the instruction, and "
        "the rank of the first is a multiple of 4",
        "place",
    ),
    Code(
        "PL0703",
        "setmaxnreg-value",
        "A role that needs more registers than setmaxnreg can give would spill.",
        "PTX ISA, setmaxnreg: a multiple of 8 from 24 to 256; tuned kernels stay at 240",
        "place",
    ),
    Code(
        "PL0704",
        "register-pool",
        "setmaxnreg.inc waits for registers; where the roles need more than the launch brings, it "
        "waits for ever.",
        "PTX ISA, setmaxnreg: .inc blocks until the per-CTA pool has enough registers; the pool is "
        "entry registers x threads",
        "place",
    ),
    Code(
        "PL0706",
        "entry-registers",
        "Code is compiled against the registers of the kernel entry, whatever setmaxnreg says.",
        "ptxas, C7602: wgmma m64nN with an f32 accumulator needs N/2 + 26; entry registers are "
        "min(255, floor8(16384 / (32 * ceil(warps * CTAs / 4))))",
        "place",
    ),
)
