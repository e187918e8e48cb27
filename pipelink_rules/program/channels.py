"""Which rings does the megakernel have?  Connections -> channels.

A ring port makes one channel for all its consumers, in shared or in tensor memory.  A hand-over
makes one channel between two register ports; a stage holds the fragments of all warpgroups of one
work item.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipelink_rules.contract.item_layout import ItemLayout, item_layout, tensor_columns
from pipelink_rules.diagnostics.suggest import similar_name_help
from pipelink_rules.model.contract import DTYPES, Contract, Port
from pipelink_rules.model.program import (
    HANDOVER,
    MULTICAST,
    RING,
    TENSOR_MEMORY,
    Channel,
    Connection,
    MegakernelSpec,
)
from pipelink_rules.program.findings import Findings
from pipelink_rules.program.link_constants import constant_value
from pipelink_rules.program.multicast import MulticastAnalysis

HANDOVER_STAGES = (1, 2)  # one to hide the copy behind, or two; more costs what rings need
HANDOVER_ALIGN = 16  # bytes, one vector access of a thread
FRAGMENT_ROWS = 64  # of one warpgroup
WARPS_OF_SHARE = 4  # one elected lane of each arrives


def channels_of(
    spec: MegakernelSpec,
    contracts: Mapping[str, Contract],
    connections: list[Connection],
    sharing: MulticastAnalysis,
    findings: Findings,
) -> list[Channel]:
    """The channels, sorted by name (PL0073)."""
    builder = _Channels(spec, contracts, sharing, findings)
    rings: dict[tuple[str, str], list[Connection]] = {}
    found = []
    for connection in connections:
        if connection.transfer in (RING, MULTICAST, TENSOR_MEMORY):
            rings.setdefault(connection.producer, []).append(connection)
        elif connection.transfer == HANDOVER:
            found.append(builder.handover(connection))
    found += [builder.ring(producer, joined) for producer, joined in rings.items()]
    builder.unused({".".join(channel.producer) for channel in found})
    return sorted(found, key=lambda channel: channel.name)


class _Channels:
    """Builds channels and answers requests for stages."""

    def __init__(
        self,
        spec: MegakernelSpec,
        contracts: Mapping[str, Contract],
        sharing: MulticastAnalysis,
        findings: Findings,
    ):
        self.spec, self.contracts, self.sharing = spec, contracts, sharing
        self.findings = findings
        self.requests = dict(spec.stages)

    def ring(self, producer: tuple[str, str], joined: list[Connection]) -> Channel:
        name = ".".join(producer)
        port = self._port(producer)
        tensor = port.space == "tensor_memory"
        layout = ItemLayout((), 0, 0, 16) if tensor else item_layout(port)
        consumers = tuple(sorted(connection.consumer for connection in joined))
        minimum, maximum = self._stages(name, port.stages.minimum, port.stages.maximum, port)
        releasing = sum(constant_value(self._port(end).arrivals) for end in consumers)
        channel = Channel(
            name=name,
            kind=TENSOR_MEMORY if tensor else RING,
            producer=producer,
            consumers=consumers,
            stage_bytes=layout.stage_bytes,
            align=layout.align,
            minimum=minimum,
            maximum=maximum,
            full_arrivals=constant_value(port.arrivals),
            empty_arrivals=releasing,
            member_offsets=layout.offsets,
            columns=tensor_columns(port) if tensor else 0,
            span=joined[0].span,
        )
        if joined[0].transfer != MULTICAST:
            return channel
        shared = self.sharing.of(producer, list(consumers)).members
        channel = replace(channel, multicast=shared)
        return replace(channel, empty_arrivals=releasing * len(channel.reach(0)))

    def handover(self, connection: Connection) -> Channel:
        (instance, out), name = connection.producer, ".".join(connection.producer)
        contract = self.contracts[instance]
        port = contract.port(out)
        member = port.members[0]
        shares = constant_value(contract.role(port.role).warps) // WARPS_OF_SHARE
        share_bytes = FRAGMENT_ROWS * constant_value(member.shape[-1]) * DTYPES[member.dtype][0]
        minimum, maximum = self._stages(name, *HANDOVER_STAGES, port)
        return Channel(
            name=f"{name}>{'.'.join(connection.consumer)}",
            kind=HANDOVER,
            producer=connection.producer,
            consumers=(connection.consumer,),
            stage_bytes=shares * share_bytes,
            align=HANDOVER_ALIGN,
            minimum=minimum,
            maximum=maximum,
            full_arrivals=WARPS_OF_SHARE,
            empty_arrivals=WARPS_OF_SHARE,
            shares=shares,
            span=connection.span,
        )

    def unused(self, producers: set[str]) -> None:
        """Requests for stages of something that is no channel."""
        consumers = {entry.consumer: entry.producer for entry in self.spec.connect}
        for end in sorted(set(self.requests) - producers):
            producer = consumers.get(end)
            help_ = (f"stages belong to the producer: `{producer}`",)
            self.findings.add(
                "PL0073",
                f"`{end}` feeds no channel",
                self.spec.where("stages", end),
                expected="the producer's port of a ring or a hand-over",
                helps=help_ if producer in producers else similar_name_help(end, producers),
                subject=end,
            )

    def _port(self, end: tuple[str, str]) -> Port:
        return self.contracts[end[0]].port(end[1])

    def _stages(self, name: str, low: int, high: int, port: Port) -> tuple[int, int]:
        request = self.requests.get(name)
        if request is None:
            return low, high
        if low <= request <= high:
            return request, request
        self.findings.add(
            "PL0073",
            f"`{name}` cannot have {request} stages",
            self.spec.where("stages", name),
            (port.where("stages"), f"{low} to {high} stages"),
            expected=f"{low} to {high}",
            found=str(request),
            helps=(f"ask for {min(max(request, low), high)}, or let the placement choose",),
            subject=name,
        )
        return low, high
