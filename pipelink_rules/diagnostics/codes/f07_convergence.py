"""PL0702 and PL0707: who executes an operation together."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL0702",
        "tensor-memory-lanes",
        "A warp reaches a quarter of the lanes of tensor memory, by its place in the warpgroup.",
        "PTX ISA, tcgen05.ld and tcgen05.st: warp w of a warpgroup accesses lanes 32w to 32w + 31",
        "check",
    ),
    Code(
        "PL0707",
        "not-converged",
        "An instruction of a whole warp or warpgroup is undefined where a part of it comes.",
        "PTX ISA, wgmma: .sync.aligned, all threads of the warpgroup; device ABI: the runtime "
        "elects a lane of a whole warp; tcgen05.mma: issued by one thread",
        "check",
    ),
)
