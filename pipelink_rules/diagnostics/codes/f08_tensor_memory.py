"""PL08xx: tensor memory."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL0801",
        "tensor-memory-columns",
        "More columns of tensor memory than an SM has are never allocated: the kernel hangs.",
        "PTX ISA, tcgen05.alloc: 32, 64, 128, 256 or 512 columns; it blocks until they are free",
        "place",
    ),
    Code(
        "PL0810",
        "no-tensor-memory",
        "Tensor memory exists on some targets only.",
        "PTX ISA, tensor memory: sm_100a and its family; 128 lanes x 512 columns per SM",
        "check",
    ),
    Code(
        "PL0811",
        "commit-across-ctas",
        "A stage that several CTAs fill has to be given back to all of them.",
        "device ABI: pl_mma_commit_empty arrives at the barrier of its own CTA",
        "check",
    ),
)
