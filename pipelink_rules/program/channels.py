"""Transfers and channels: port pairs -> connections, channels.

A ring port has one channel for all its consumers, in shared or tensor memory.  A handover is a
channel between two register ports; a stage holds the fragments of all warpgroups of a work tile.
"""

from collections.abc import Mapping
from dataclasses import replace

from pipelink_rules.contract.item_layout import ItemLayout, item_layout, tensor_columns
from pipelink_rules.diagnostics.diagnostic import DiagnosticSink
from pipelink_rules.diagnostics.wording import plural, similar_name_help
from pipelink_rules.model.contract import DTYPES, Contract, Port
from pipelink_rules.model.program import (
    COUNTER,
    FUSED,
    HANDOVER,
    MULTICAST,
    RING,
    SCRATCH,
    TENSOR_MEMORY,
    Channel,
    Connection,
    MegakernelSpec,
)
from pipelink_rules.model.source_span import Span
from pipelink_rules.program.connections import PortPair, space_of
from pipelink_rules.program.link_constants import constant_value
from pipelink_rules.program.multicast import MulticastAnalysis

FRAGMENT = "wgmma_m64"  # the fragment that a handover can move: 64 rows per warpgroup
KINDS = {  # space -> transfers, default first
    "tensor_memory": (TENSOR_MEMORY,),
    "ring": (RING, MULTICAST),  # a multicast where members can be
    "registers": (FUSED, HANDOVER),
    "scratch": (SCRATCH,),
    "counter": (COUNTER,),
}
_MEANING = {
    RING: "through a ring in shared memory",
    TENSOR_MEMORY: "through a ring in tensor memory",
    MULTICAST: "the CTAs of a cluster load common tiles for each other",
    FUSED: "both roles run on the same warps",
    HANDOVER: "through a shared-memory ring to other warps",
    SCRATCH: "through global memory",
    COUNTER: "through counters",
}
HANDOVER_STAGES = (1, 2)  # a second one hides the copy; more would use memory that rings need
HANDOVER_ALIGN = 16  # bytes, one vector access of a thread
FRAGMENT_ROWS = 64  # of one warpgroup
WARPS_OF_RING = 4  # of a ring of one warpgroup; one elected lane of each arrives


def choose_transfers(
    spec: MegakernelSpec,
    contracts: Mapping[str, Contract],
    links: list[PortPair],
    analysis: MulticastAnalysis,
    findings: DiagnosticSink,
) -> list[Connection]:
    """Return the connections of the program, sorted; report unavailable transfers (PL0071)."""
    requests = dict(spec.transfers)
    consumers = {".".join(link.consumer) for link in links}
    for end in sorted(set(requests) - consumers):
        findings.add(
            "PL0071",
            f"no connection has the consumer `{end}`",
            (spec.where("transfers", end), f"`{requests[end]}` is requested here"),
            expected="the consumer of an entry of `connect`",
            suggestions=similar_name_help(end, consumers),
            subject=end,
        )
    found = []
    for link in links:
        request = requests.get(".".join(link.consumer), "")
        place = spec.where("transfers", ".".join(link.consumer))
        kind = _kind(link, request, place, findings)
        if kind == HANDOVER:
            kind = _handover(contracts, link, place, findings)
        found.append(Connection(link.producer, link.consumer, kind, link.span))
    return _multicasts(spec, found, analysis, findings)


def _multicasts(
    spec: MegakernelSpec,
    connections: list[Connection],
    analysis: MulticastAnalysis,
    findings: DiagnosticSink,
) -> list[Connection]:
    """Return the connections, as multicasts if CTAs of the cluster need the same members."""
    requests = dict(spec.transfers)
    rings: dict[tuple[str, str], list[Connection]] = {}
    for connection in connections:
        if connection.transfer in (RING, MULTICAST):
            rings.setdefault(connection.producer, []).append(connection)
    kinds: dict[tuple[str, str], str] = {}
    for producer, joined in rings.items():
        requested = {end: requests.get(".".join(end), "") for end in (c.consumer for c in joined)}
        shared = analysis.of(producer, list(requested))
        off = [end for end, request in requested.items() if request == RING]
        kinds[producer] = MULTICAST if shared.members and not off else RING
        for end, request in requested.items():
            if request != MULTICAST or kinds[producer] == MULTICAST:
                continue
            name, other = ".".join(end), ".".join(off[0]) if off else ""
            findings.add(
                "PL0071",
                f"transfer `{MULTICAST}` is not available for `{'.'.join(producer)} -> {name}`",
                spec.where("transfers", name),
                *((spec.where("transfers", other), "disabled here"),) * bool(off),
                expected="a ring member that several CTAs of the cluster need",
                found="; ".join(shared.reasons) if not off else f"`{other}` is a `{RING}`",
                suggestions=("request the same transfer for all consumers of the ring",)
                if off
                else (f"remove `{name}` from `transfers`: the connection is then a `{RING}`",),
                subject=f"{'.'.join(producer)} -> {name}",
            )
    return [replace(item, transfer=kinds.get(item.producer, item.transfer)) for item in connections]


def _kind(link: PortPair, request: str, place: Span | None, findings: DiagnosticSink) -> str:
    possible = KINDS[space_of(link.source)]
    if not request or request in possible:
        return request or possible[0]
    every = sorted({kind for kinds in KINDS.values() for kind in kinds})
    fits, space = request in every, space_of(link.source).replace("_", "-")
    findings.add(
        "PL0071",
        f"transfer `{request}` is not available for {space} connection `{link.name}`"
        if fits
        else f"unknown transfer `{request}`",
        place,
        (link.source.where("space"), f"`{'.'.join(link.producer)}` is a {link.source.space} port"),
        expected="; ".join(f"`{kind}` ({_MEANING[kind]})" for kind in possible),
        found=f"`{request}`",
        suggestions=(f"remove `{'.'.join(link.consumer)}` from `transfers`",)
        if fits
        else similar_name_help(request, possible),
        subject=link.name,
    )
    return possible[0]


def _handover(
    contracts: Mapping[str, Contract], link: PortPair, place: Span | None, findings: DiagnosticSink
) -> str:
    """Return HANDOVER if both ends are warpgroup fragments; else report PL0071, return FUSED."""
    for (instance, name), port in ((link.producer, link.source), (link.consumer, link.sink)):
        role = contracts[instance].role(port.role)
        warps = constant_value(role.warps)
        reason = ""
        if port.fragment != FRAGMENT:
            reason = f"`{instance}.{name}` is a `{port.fragment}` fragment, not `{FRAGMENT}`"
        elif warps % 4:
            reason = f"`{instance}.{port.role}` has {warps} warps, not whole warpgroups"
        if reason:
            findings.add(
                "PL0071",
                f"transfer `handover` is not available for `{link.name}`: {reason}",
                place,
                (port.where("fragment"), "this end"),
                expected=f"`{FRAGMENT}` fragments of whole warpgroups on both ends",
                suggestions=(
                    f"remove `{'.'.join(link.consumer)}` from `transfers`: the roles share warps",
                ),
                subject=link.name,
            )
            return FUSED
    return HANDOVER


def channels_of(
    spec: MegakernelSpec,
    contracts: Mapping[str, Contract],
    connections: list[Connection],
    analysis: MulticastAnalysis,
    findings: DiagnosticSink,
) -> list[Channel]:
    """Return the channels, sorted by name (PL0073)."""
    builder = _Channels(spec, contracts, analysis, findings)
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
    """Builds channels and applies requested stage counts."""

    def __init__(
        self,
        spec: MegakernelSpec,
        contracts: Mapping[str, Contract],
        analysis: MulticastAnalysis,
        findings: DiagnosticSink,
    ):
        self.spec, self.contracts, self.analysis = spec, contracts, analysis
        self.findings, self.requests = findings, dict(spec.stages)

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
        shared = self.analysis.of(producer, list(consumers)).members
        channel = replace(channel, multicast=shared)
        return replace(channel, empty_arrivals=releasing * len(channel.reach(0)))

    def handover(self, connection: Connection) -> Channel:
        (instance, out), name = connection.producer, ".".join(connection.producer)
        contract = self.contracts[instance]
        port = contract.port(out)
        member = port.members[0]
        shares = constant_value(contract.role(port.role).warps) // WARPS_OF_RING
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
            full_arrivals=WARPS_OF_RING,
            empty_arrivals=WARPS_OF_RING,
            shares=shares,
            span=connection.span,
        )

    def unused(self, producers: set[str]) -> None:
        """Report requests for stages of ports that are not the producer of a channel."""
        consumers = {entry.consumer: entry.producer for entry in self.spec.connect}
        for end in sorted(set(self.requests) - producers):
            producer = consumers.get(end)
            help_ = (f"use the producer's port: `{producer}`",)
            self.findings.add(
                "PL0073",
                f"`{end}` is not the producer of a channel",
                self.spec.where("stages", end),
                expected="the producer's port of a ring or a handover",
                suggestions=help_ if producer in producers else similar_name_help(end, producers),
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
            f"{plural(request, 'stage')} requested for `{name}`, which allows {low} to {high}",
            self.spec.where("stages", name),
            (port.where("stages"), f"{low} to {high} stages"),
            expected=f"{low} to {high} stages",
            found=plural(request, "stage"),
            suggestions=(
                f"remove `{name}` from `stages`: the placement then chooses, from {low} to {high}",
            ),
            subject=name,
        )
        return low, high
