"""What do the other CTAs of a cluster do?  The same as the first, to what stands where they are.

Seen from a CTA, another one stands so many steps along both axes, round the cluster.  Everybody's
copies and releases go to CTAs that stand the same steps away, so the actions of the first CTA are
those of all, with other names.
"""

from __future__ import annotations

import re

from pipelink_rules.check.protocol.model import Action, Composition, Process
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex, in_cta, ring_names

_OBJECT = re.compile(r"[^ \[]*")  # of `store.staging warpgroup 1[0]`: what is there once a CTA


class Names(dict[str, str]):
    """The names of the first CTA's objects, and of those it reaches, as another CTA has them."""

    def __init__(self, blueprint: ProtocolIndex, cta: int):
        self.cta = cta
        along, across, _ = blueprint.program.cluster
        for channel in blueprint.program.channels:
            for share in range(channel.shares):
                for place in range(blueprint.ctas):
                    x = (place % along + cta % along) % along
                    y = (place // along + cta // along) % across
                    there = ring_names(channel, share, x + along * y)
                    self.update(zip(ring_names(channel, share, place), there, strict=True))

    def __missing__(self, name: str) -> str:
        """A buffer, a named barrier or a role; what has no dot is in no CTA's shared memory."""
        if "." not in name:
            return self.setdefault(name, name)
        found = _OBJECT.match(name)
        stem = found.group() if found else name
        return self.setdefault(name, in_cta(stem, self.cta) + name[len(stem) :])


def in_all_ctas(blueprint: ProtocolIndex, first: Composition) -> Composition:
    """The composition of a whole cluster, from that of its first CTA."""
    barriers, memories, named = dict(first.barriers), dict(first.memories), dict(first.named)
    processes = list(first.processes)
    for cta in range(1, blueprint.ctas):
        names = blueprint.names_in.get(cta)
        if names is None:
            names = blueprint.names_in[cta] = Names(blueprint, cta)
        barriers |= {names[name]: barrier for name, barrier in first.barriers.items()}
        memories |= {names[name]: memory for name, memory in first.memories.items()}
        named |= {names[name]: barrier for name, barrier in first.named.items()}
        processes += [
            Process(
                in_cta(process.name, cta),
                _moved(process.period, names),
                _moved(process.prologue, names),
                _moved(process.epilogue, names),
            )
            for process in first.processes
        ]
    return Composition(barriers, memories, named, tuple(processes))


def _moved(actions: tuple[Action, ...], names: dict[str, str]) -> tuple[Action, ...]:
    return tuple(
        Action(kind, names[target], item, amount, size, names[barrier], origin)
        for kind, target, item, amount, size, barrier, origin in actions
    )
