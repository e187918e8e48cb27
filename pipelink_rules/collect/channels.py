"""Which shared-memory rings does the megakernel have?  Connections -> channels.

A ring port makes one channel for all its consumers.  A hand-over makes one channel between two
register ports; a stage holds the fragments of all warpgroups of one work item.
"""

from __future__ import annotations

from collections.abc import Mapping

from pipelink_rules.collect.findings import Findings
from pipelink_rules.collect.values import known
from pipelink_rules.contract.item import item_layout
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.suggest import did_you_mean
from pipelink_rules.model.contract import DTYPES, Contract, Port
from pipelink_rules.model.program import HANDOVER, RING, Channel, Connection, MegakernelSpec
from pipelink_rules.model.source import Expr

HANDOVER_STAGES = (1, 2)  # one to hide the copy behind, or two; more costs what rings need
HANDOVER_ALIGN = 16  # bytes, one vector access of a thread
FRAGMENT_ROWS = 64  # of one warpgroup
WARPS_OF_SHARE = 4  # one elected lane of each arrives


def channels_of(
    spec: MegakernelSpec,
    contracts: Mapping[str, Contract],
    connections: list[Connection],
    findings: Findings,
) -> list[Channel]:
    """The channels, sorted by name (PL0073, PL0076)."""
    builder = _Channels(spec, contracts, findings)
    rings: dict[tuple[str, str], list[Connection]] = {}
    found = []
    for connection in connections:
        if connection.transfer == RING:
            rings.setdefault(connection.producer, []).append(connection)
        elif connection.transfer == HANDOVER:
            found.append(builder.handover(connection))
    found += [builder.ring(producer, joined) for producer, joined in rings.items()]
    builder.unused({".".join(channel.producer) for channel in found})
    return sorted(found, key=lambda channel: channel.name)


class _Channels:
    """Builds channels; what is not known at link time becomes a finding and the value 1."""

    def __init__(self, spec: MegakernelSpec, contracts: Mapping[str, Contract], findings: Findings):
        self.spec, self.contracts, self.findings = spec, contracts, findings
        self.requests = dict(spec.stages)

    def ring(self, producer: tuple[str, str], joined: list[Connection]) -> Channel:
        name = ".".join(producer)
        port = self.contracts[producer[0]].port(producer[1])
        offsets, stage_bytes, align = self._item(name, port)
        consumers = tuple(sorted(connection.consumer for connection in joined))
        minimum, maximum = self._stages(name, port.stages.minimum, port.stages.maximum, port)
        return Channel(
            name=name,
            kind=RING,
            producer=producer,
            consumers=consumers,
            stage_bytes=stage_bytes,
            align=align,
            minimum=minimum,
            maximum=maximum,
            full_arrivals=self._arrivals(producer),
            empty_arrivals=sum(self._arrivals(consumer) for consumer in consumers),
            member_offsets=offsets,
            span=joined[0].span,
        )

    def handover(self, connection: Connection) -> Channel:
        (instance, out), name = connection.producer, ".".join(connection.producer)
        contract = self.contracts[instance]
        port = contract.port(out)
        member = port.members[0]
        columns = self._known(name, "shape", member.shape[-1])
        warps = self._known(name, "warps", contract.role(port.role).warps)
        shares = max(warps // WARPS_OF_SHARE, 1)
        share_bytes = FRAGMENT_ROWS * columns * DTYPES.get(member.dtype, (4, ""))[0]
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
                helps=help_ if producer in producers else did_you_mean(end, producers),
                subject=end,
            )

    def _item(self, name: str, port: Port) -> tuple[tuple[tuple[str, int], ...], int, int]:
        extents = [extent for member in port.members for extent in member.shape]
        if all(known(extent) is not None for extent in extents):
            try:
                layout = item_layout(port)
                return layout.offsets, layout.stage_bytes, layout.align
            except (PipelinkError, KeyError):
                pass  # a dtype or extent that the contract stage reports
        for extent in extents:
            self._known(name, "shape", extent)
        return tuple((member.name, 0) for member in port.members), 1, HANDOVER_ALIGN

    def _arrivals(self, end: tuple[str, str]) -> int:
        port = self.contracts[end[0]].port(end[1])
        return self._known(".".join(end), "arrivals", port.arrivals)

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

    def _known(self, name: str, clause: str, expr: Expr) -> int:
        value = known(expr)
        if value is not None:
            return value
        instance, _, port = name.partition(".")
        self.findings.add(
            "PL0076",
            f"`{clause}` of `{name}` is not known at link time",
            expr.span or self.contracts[instance].port(port).where(clause),
            expected="an expression over parameters",
            found=expr.text,
            helps=("make what it depends on a parameter",),
            subject=f"{name}: {clause}",
        )
        return 1
