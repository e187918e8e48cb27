"""Where can a role wait, and which number does the watchdog give that place?

Numbers are written here once: the glue passes them to the runtime, the manifest explains them.
"""

from __future__ import annotations

from pipelink_rules.model.linked_kernel import Site
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import COUNTER, Program


def watchdog_sites(program: Program, placement: Placement | None = None) -> tuple[Site, ...]:
    """Every end of a channel or of counters and every named barrier of a role, numbered from 1.

    Instances by name, their ports in contract order, then their named barriers per role.  Without
    a placement the stages are left 0 (numbers do not depend on it).
    """
    stages = dict(placement.stages) if placement else {}
    ends = program.channel_ends()
    found: list[Site] = []
    counters = {
        end: ".".join(item.producer)
        for item in program.connections
        if item.transfer == COUNTER
        for end in (item.producer, item.consumer)
    }
    for instance in sorted(program.instances, key=lambda item: item.name):
        contract = instance.variant.contract
        for port in contract.ports:
            channel = ends.get((instance.name, port.name))
            if channel is not None:
                found.append(
                    Site(
                        len(found) + 1,
                        instance.name,
                        port.role,
                        port.name,
                        channel.name,
                        stages.get(channel.name, 0),
                        channel.full_arrivals,
                        channel.empty_arrivals,
                    )
                )
            elif (instance.name, port.name) in counters:
                name = counters[instance.name, port.name]
                found.append(Site(len(found) + 1, instance.name, port.role, port.name, name))
        for barrier in contract.named_barriers:
            threads = barrier.count.literal or 0
            for role in barrier.roles:
                found.append(
                    Site(len(found) + 1, instance.name, role, barrier.name, empty_arrivals=threads)
                )
    return tuple(found)


def site_numbers(program: Program) -> dict[tuple[str, str, str], int]:
    """(instance, role, port or named barrier) -> site number, for the glue."""
    return {(site.instance, site.role, site.port): site.number for site in watchdog_sites(program)}
