"""PL0707: who executes an operation together."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL0707",
        "not-converged",
        "An instruction of a whole warp or warpgroup is undefined where a part of it comes.",
        "PTX ISA, wgmma: .sync.aligned, all threads of the warpgroup; device ABI: the runtime "
        "elects a lane of a whole warp",
        "check",
    ),
)
