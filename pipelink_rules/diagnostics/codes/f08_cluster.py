"""PL08xx: clusters."""

from __future__ import annotations

from pipelink_rules.diagnostics.code import Code

CODES: tuple[Code, ...] = (
    Code(
        "PL0804",
        "multicast-receivers",
        "CTAs that get copies of each other take the same items, or one of them waits for ever.",
        "PTX ISA, cp.async.bulk.tensor .multicast::cluster: data and completion reach every CTA of "
        "the mask, whether it waits for them or not",
        "check",
    ),
    Code(
        "PL0806",
        "cluster-not-served",
        "A schedule deals items to clusters of one shape; in others the tiles do not fit together.",
        "contract language: `cluster` of a work item",
        "collect",
    ),
    Code(
        "PL0807",
        "coordinates-vary",
        "What a multicast brings is right only where all receivers would have copied the same box.",
        "contract language: `along` of a tile",
        "compile",
    ),
)
