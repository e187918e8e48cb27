"""How does data get from port to port?  Links, requests -> connections with a transfer each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipelink_rules.diagnostics.suggest import similar_name_help
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.program import (
    COUNTER,
    FUSED,
    HANDOVER,
    MULTICAST,
    RING,
    SCRATCH,
    TENSOR_MEMORY,
    Connection,
    MegakernelSpec,
)
from pipelink_rules.model.source_span import Span
from pipelink_rules.program.connections import Link
from pipelink_rules.program.findings import Findings
from pipelink_rules.program.link_constants import constant_value
from pipelink_rules.program.multicast import MulticastAnalysis
from pipelink_rules.program.port_spaces import space_of

FRAGMENT = "wgmma_m64"  # the fragment that a hand-over can move: 64 rows per warpgroup
KINDS = {  # space -> transfers, default first
    "tensor_memory": (TENSOR_MEMORY,),
    "ring": (RING, MULTICAST),  # a multicast where members can be
    "registers": (FUSED, HANDOVER),
    "scratch": (SCRATCH,),
    "counter": (COUNTER,),
}
_MEANING = {
    RING: "both ends use the same shared memory",
    TENSOR_MEMORY: "both ends use the same tensor memory",
    MULTICAST: "CTAs of a cluster load for each other what they need alike",
    FUSED: "both roles run on the same warps",
    HANDOVER: "through a shared ring to other warps",
    SCRATCH: "both ends use the same global memory",
    COUNTER: "both ends use the same counters",
}


def choose_transfers(
    spec: MegakernelSpec,
    contracts: Mapping[str, Contract],
    links: list[Link],
    sharing: MulticastAnalysis,
    findings: Findings,
) -> list[Connection]:
    """The connections of the program, sorted; requests that cannot be met are PL0071."""
    requests = dict(spec.transfers)
    consumers = {".".join(link.consumer) for link in links}
    for end in sorted(set(requests) - consumers):
        findings.add(
            "PL0071",
            f"no connection ends at `{end}`",
            (spec.where("transfers", end), f"`{requests[end]}` is requested here"),
            expected="the consumer's side of an entry of `connect`",
            helps=similar_name_help(end, consumers),
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
    return _multicasts(spec, found, sharing, findings)


def _multicasts(
    spec: MegakernelSpec,
    connections: list[Connection],
    sharing: MulticastAnalysis,
    findings: Findings,
) -> list[Connection]:
    """The connections, with the rings whose members CTAs of the cluster share as multicasts."""
    requests = dict(spec.transfers)
    rings: dict[tuple[str, str], list[Connection]] = {}
    for connection in connections:
        if connection.transfer in (RING, MULTICAST):
            rings.setdefault(connection.producer, []).append(connection)
    kinds: dict[tuple[str, str], str] = {}
    for producer, joined in rings.items():
        asked = {end: requests.get(".".join(end), "") for end in (c.consumer for c in joined)}
        shared = sharing.of(producer, list(asked))
        off = [end for end, request in asked.items() if request == RING]
        kinds[producer] = MULTICAST if shared.members and not off else RING
        for end, request in asked.items():
            if request != MULTICAST or kinds[producer] == MULTICAST:
                continue
            name, other = ".".join(end), ".".join(off[0]) if off else ""
            findings.add(
                "PL0071",
                f"`{'.'.join(producer)} -> {name}` cannot be `{MULTICAST}`",
                spec.where("transfers", name),
                *((spec.where("transfers", other), "turned off here"),) * bool(off),
                expected="a member of the ring that CTAs of the cluster need alike",
                found="; ".join(shared.reasons) if not off else f"`{other}` is a `{RING}`",
                helps=("one ring has one transfer: ask for the same at all its consumers",)
                if off
                else (f"leave the request out: the connection is then a `{RING}`",),
                subject=f"{'.'.join(producer)} -> {name}",
            )
    return [replace(item, transfer=kinds.get(item.producer, item.transfer)) for item in connections]


def _kind(link: Link, request: str, place: Span | None, findings: Findings) -> str:
    possible = KINDS[space_of(link.source)]
    if not request or request in possible:
        return request or possible[0]
    every = sorted({kind for kinds in KINDS.values() for kind in kinds})
    fits = request in every
    findings.add(
        "PL0071",
        f"`{link.name}` cannot be `{request}`"
        if fits
        else f"there is no transfer kind `{request}`",
        place,
        (link.source.where("space"), f"{'.'.join(link.producer)} is a {link.source.space} port"),
        expected="; ".join(f"{kind}: {_MEANING[kind]}" for kind in possible),
        found=request,
        helps=() if fits else similar_name_help(request, possible),
        subject=link.name,
    )
    return possible[0]


def _handover(
    contracts: Mapping[str, Contract], link: Link, place: Span | None, findings: Findings
) -> str:
    """HANDOVER where both ends are warpgroup fragments, else FUSED after a finding."""
    for (instance, name), port in ((link.producer, link.source), (link.consumer, link.sink)):
        role = contracts[instance].role(port.role)
        warps = constant_value(role.warps)
        reason = ""
        if port.fragment != FRAGMENT:
            reason = f"`{instance}.{name}` is a `{port.fragment}` fragment, not `{FRAGMENT}`"
        elif warps % 4:
            reason = f"`{instance}.{port.role}` has {warps} warps, no whole warpgroups"
        if reason:
            findings.add(
                "PL0071",
                f"`{link.name}` cannot be handed over: {reason}",
                place,
                (port.where("fragment"), "this end"),
                expected="fragments of whole warpgroups at both ends",
                helps=("leave the request out: the roles then share their warps",),
                subject=link.name,
            )
            return FUSED
    return HANDOVER
