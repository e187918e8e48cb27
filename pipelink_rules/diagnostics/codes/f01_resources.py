"""PL01xx: resources of an SM that the placement gives out."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

_LIMITS = (
    "CUDA programming guide, compute capabilities: shared memory per CTA and per SM, of which "
    "1 KiB is reserved for each resident CTA"
)

CODES: tuple[Code, ...] = (
    Code(
        "PL0101",
        "shared-memory",
        "A phase that keeps more bytes alive than the CTA may have cannot be launched.",
        _LIMITS,
        "place",
    ),
    Code(
        "PL0102",
        "fragmentation",
        "Items whose bytes fit but whose alignments leave gaps have no layout.",
        "a proof by the solver: no assignment of offsets keeps every item aligned and apart",
        "place",
    ),
    Code(
        "PL0103",
        "named-barriers",
        "Two named barriers alive at once under one id would release each other's threads.",
        "PTX ISA, bar/barrier: a CTA has 16 named barriers, 0 to 15; 0 is __syncthreads",
        "place",
    ),
    Code(
        "PL0104",
        "warps",
        "More warps than a CTA or an SM holds cannot be launched.",
        "CUDA programming guide, compute capabilities: 1024 threads per CTA, warps per SM",
        "place",
    ),
    Code(
        "PL0105",
        "budget",
        "A search that ran out of its budget must not pass for a proof.",
        "the solver answers `unknown` beyond its resource limit, the same on every machine",
        "place",
    ),
    Code(
        "PL0106",
        "placement-problem",
        "A problem that contradicts itself has no meaning to place.",
        "the fields of PlacementProblem (pipelink_rules/model/placement.py)",
        "place",
    ),
    Code(
        "PL0107",
        "placement-check",
        "A placement that does not solve its problem would corrupt memory or hang.",
        "the independent checker (pipelink_rules/place/verify.py)",
        "place",
    ),
)
