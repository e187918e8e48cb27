"""How long do the operations of a protocol take on a target?  Estimates, in cycles of an SM.

They are what a kernel of one CTA per SM meets when its data come from the L2 cache, rounded: meant
for comparing stage counts and for saying what bounds a pipeline, not for predicting seconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Latency:
    """Cycles, and rates per cycle, of one SM."""

    wait: int = 30  # a try_wait that succeeds
    arrive: int = 20
    issue: int = 20  # of a copy, a store or a wgmma group
    copy: int = 700  # from the issue of a bulk or tensor copy to its arrival, besides its bytes
    store: int = 500  # from the issue of a bulk store until its source has been read
    barrier: int = 30  # named barrier
    access: int = 30  # a generic access, whatever is computed with it
    tensor: int = 100  # until tcgen05.mma or .ld begins to deliver, besides what it moves
    column: int = 1  # tcgen05.ld or .st of one column of all 128 lanes
    bytes: int = 64  # between L2 and one SM, per cycle
    products: int = 2048  # 16-bit products of the tensor cores of one SM, per cycle


# Nothing of tensor memory was measured here: 128 lanes of 4 bytes a cycle, and a round latency.
# Products: peak of the data sheets / SMs / clock / 2 (Hopper: 989 TFLOPS, 132 SMs, 1.83 GHz).
LATENCIES: dict[str, Latency] = {
    "sm_90a": Latency(),
    "sm_100a": Latency(products=4096),
}


def latency_of(target: str) -> Latency:
    """The estimates of a target; those of Hopper where there are no others."""
    return LATENCIES.get(target, LATENCIES["sm_90a"])
