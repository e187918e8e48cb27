"""What can be wrong with a protocol, before it is put into words."""

from __future__ import annotations

from typing import NamedTuple

from pipelink_rules.check.protocol.model import Action


class Problem(NamedTuple):
    """One defect of a composition.

    kind        code    first, second                                  numbers
    arrivals    PL0201  some arrival, -                                found, wanted, item, items
    bytes       PL0202  the expect or copy, -                          announced, delivered, item
    alias       PL0203  the wait or arrival, -                         -1: too early, 1: lapped
    recycle     PL0303  arrival of a generation, one of the next       -
    threads     PL0302  some use of the named barrier, -               found, wanted
    starved     PL0401  the wait, -                                    found, wanted
    deadlock    PL0401  -, - (cycle: edges as (action or event, reason, distance))
    unordered   PL0501  earlier access, later access                   distance in items
    unfenced    PL0502  generic access, asynchronous access            distance in items
    stale       PL0503  access that must be first, access that is      distance in items
    unwritten   PL0503  the read, -                                    item
    in flight   PL0504  wgmma group, what uses its operands or result  distance or pending groups
    storing     PL0505  store group, overwriting access (or -)         distance or pending groups
    overlapping PL0509  access of tensor memory, what may overlap it   distance in items
    no fence    PL0509  the same, ordered but without tcgen05.fence    distance, 0: before, 1: after
    loading     PL0509  tensor load or store, - (or -, registers)      pending
    not held    PL0209  the use of an item, -                          -
    turns       PL0302  some use of the named barrier, -               found, wanted (per work item)
    rate        PL1002  use by the producer, by the consumer           made, taken
    """

    kind: str
    target: str  # barrier, memory, named barrier, channel
    first: Action | None = None
    second: Action | None = None
    numbers: tuple[int, ...] = ()
    trace: tuple[tuple[int, int, int], ...] = ()  # deadlock: edges of the graph
