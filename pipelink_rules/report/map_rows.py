"""Rows about a linked megakernel: columns of the map and tables of the page."""

import math
from functools import cache

from pipelink_rules.check.protocol.initiation_interval import interval
from pipelink_rules.check.protocol.protocol_index import ProtocolIndex
from pipelink_rules.diagnostics.wording import plural
from pipelink_rules.glue.parameters import kernel_parameters
from pipelink_rules.model.contract import Port
from pipelink_rules.model.linked_kernel import Audit, BarrierSite
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import (
    COUNTER,
    FUSED,
    HANDOVER,
    MULTICAST,
    RING,
    SCRATCH,
    TENSOR_MEMORY,
    Program,
    ProgramRole,
)
from pipelink_rules.model.target import TARGETS
from pipelink_rules.report.memory_map import Rows

BEYOND = 2  # stage counts above the chosen one that are looked at


def warp_rows(program: Program, placement: Placement, audit: Audit | None) -> Rows:
    """Return every program role: warps, registers assigned, used and declared, entries."""
    first = dict(placement.warps)
    highest = dict(audit.region_registers) if audit else {}
    rows: list[tuple[object, ...]] = []
    for role in sorted(program.roles, key=lambda item: first[item.name]):
        start = first[role.name]
        warps = f"{start}..{start + role.warps - 1}" if role.warps > 1 else str(start)
        budget = placement.registers(role.name)
        declared = (role.minimum, role.want, role.entry, _probed(program, role))
        members = ", ".join(".".join(member) for member in role.members)
        calls = f" x{role.calls}" if role.calls > 1 else ""
        used = highest.get(role.name, "-")
        rows.append((warps, role.name, budget, used, *declared, members + calls))
    heading = ("warps", "role", "given", "used", "min", "want", "entry", "probe", "entries")
    return heading, rows


def pool_text(placement: Placement) -> str:
    """Return threads, and the registers they enter with and share."""
    entry = f"{placement.threads} threads enter with {placement.entry_registers} registers"
    if not placement.setmaxnreg:
        return f"{entry}, no setmaxnreg"
    pool = placement.entry_registers * placement.threads
    used = sum(128 * group.registers for group in placement.warpgroups)
    return f"{entry}, by setmaxnreg; {used:,} of a pool of {pool:,}"


def _probed(program: Program, role: ProgramRole) -> str:
    """Return the largest probe result of the members of a role: registers/entry."""
    found = [
        measured
        for instance, name in role.members
        for probed, measured in program.instance(instance).variant.measured
        if probed == name
    ]
    if not found:
        return "-"
    return f"{max(m.registers for m in found)}/{max(m.entry for m in found)}"


def ring_rows(program: Program, placement: Placement) -> Rows:
    """Return every ring with its stages and its barriers."""
    stages, barriers = dict(placement.stages), dict(placement.barriers)
    return ("ring", "stages", "bytes", "mbarriers at", "full", "empty", "asked"), [
        (
            channel.name,
            stages[channel.name],
            f"{channel.columns} columns" if channel.columns else channel.stage_bytes,
            barriers[channel.name],
            f"{channel.shares} x " * (channel.shares > 1) + f"{channel.full_arrivals}",
            channel.empty_arrivals,
            f"{channel.minimum}..{channel.maximum}",
        )
        for channel in program.channels
    ]


def mbarrier_count(program: Program, placement: Placement) -> int:
    """Return full and empty barriers of all stages."""
    stages = dict(placement.stages)
    return sum(2 * channel.shares * stages[channel.name] for channel in program.channels)


def named_rows(program: Program, placement: Placement) -> Rows:
    """Return every named barrier by its id."""
    counts = {
        f"{instance.name}.{barrier.name}": barrier.count.text
        for instance in program.instances
        for barrier in instance.variant.contract.named_barriers
    }
    rows = [(number, name, counts.get(name, "-")) for name, number in placement.named]
    return ("id", "barrier", "threads"), sorted(rows)


_TRANSFERS = {
    RING: "same memory, full/empty mbarriers; no code",
    MULTICAST: "a ring; CTAs of the cluster load for each other",
    TENSOR_MEMORY: "same columns of tensor memory, full/empty mbarriers",
    FUSED: "by reference in the same warps; no code",
    HANDOVER: "through a shared ring that the linker made",
    SCRATCH: "memory of the launcher; no code",
    COUNTER: "counters of the launcher: release and acquire",
}


def connection_rows(program: Program) -> Rows:
    """Return connections with their transfers, then what the caller passes."""

    def carried(end: tuple[str, str]) -> str:
        port = program.port(end)
        return f"u32 [{port.count}]" if port.space == "counter" else " + ".join(tile_texts(port))

    rows: list[tuple[object, ...]] = [
        (item.name, carried(item.producer), item.transfer, _TRANSFERS.get(item.transfer, ""))
        for item in program.connections
    ]
    for kind, bound in (("global", program.tensors), ("scalar", program.scalars)):
        for keyword, places in bound:
            for place in places:
                port, ends = program.port(place), [keyword, ".".join(place)]
                if port.direction == "out":
                    ends.reverse()
                what = port.type or tile_texts(port)[0]
                rows.append((" -> ".join(ends), what, kind, ""))
    return ("connection", "carries", "transfer", "how"), rows


def tile_texts(port: Port) -> list[str]:
    """Return `bf16 [M, K]` for every member of a port."""
    return [
        f"{member.dtype} [{', '.join(extent.text for extent in member.shape)}]"
        for member in port.members
    ]


def instance_rows(program: Program) -> Rows:
    """Return every instance with the variant it is of."""
    return ("instance", "component", "variant", "parameters", "flags"), [
        (
            item.name,
            item.label,
            item.variant.digest,
            " ".join(f"{name}={value}" for name, value in item.variant.arguments),
            " ".join(item.variant.flags),
        )
        for item in program.instances
    ]


def parameter_rows(program: Program) -> Rows:
    """Return parameters of the entry, in order."""
    return ("#", "kind", "name", "dtype", "box", "serves"), [
        (
            number,
            item.kind,
            item.name,
            item.dtype,
            f"{list(item.box)} swizzle {item.swizzle}" if item.box else "",
            ", ".join(item.ports),
        )
        for number, item in enumerate(kernel_parameters(program))
    ]


def _site(site: BarrierSite) -> str:
    number = "in a register" if site.id < 0 else str(site.id)
    threads = f" of {site.threads}" if site.threads > 0 else ""
    return f"{number}: {site.kind}{threads} at {plural(site.sites, 'site')}"


def code_rows(audit: Audit) -> Rows:
    """Return the results of the audit of the machine code."""
    ids = ", ".join(map(_site, audit.barrier_sites))
    return ("of", "found"), [
        ("entry", audit.entry),
        ("instructions", f"{audit.instructions:,}"),
        ("registers", str(audit.registers)),
        ("stack", f"{audit.stack_bytes} bytes"),
        ("spills", f"{audit.spill_stores} bytes stored, {audit.spill_loads} loaded"),
        ("static shared", f"{audit.static_shared_bytes} bytes"),
        ("setmaxnreg", ", ".join(map(str, audit.setmaxnreg)) or "none"),
        ("named barriers", ids or "none"),
        ("calls", ", ".join(audit.calls) or "none"),
        ("machine code", f"sha256 {audit.text_sha256}"),
    ]


def verdict_rows(audit: Audit) -> Rows:
    """Return what the audit says of each role's code."""
    return ("component", "role", "verdict", "why not proved"), [
        (one.component, one.role, one.verdict, one.reason or "-") for one in audit.verdicts
    ]


def cluster_rows(program: Program) -> Rows:
    """Return every multicast member of a ring."""
    return ("member", "shared by", "each copies"), [
        (
            f"{channel.name}.{shared.member}",
            f"{shared.size} CTAs along {' and '.join(shared.axes)}",
            f"{shared.rows} of {shared.rows * shared.size} rows, {shared.bytes:,} bytes",
        )
        for channel in program.channels
        for shared in channel.multicast
    ]


def cluster_text(program: Program) -> str:
    """The shape of the cluster, and what a CTA reads per item; "" where a cluster is one CTA."""
    if math.prod(program.cluster) == 1:
        return ""
    shape = " x ".join(map(str, program.cluster))
    said = [f"clusters of {shape} CTAs"]
    for channel in program.channels:
        saved = sum(shared.bytes * (shared.size - 1) for shared in channel.multicast)
        if saved:
            sent = program.port(channel.producer).tx_bytes
            if sent and (whole := sent.literal):
                said.append(f"{channel.name}: each reads {whole - saved:,} of {whole:,} bytes")
            said.append(f"a stage is free when {len(channel.reach(0))} CTAs have released it")
    return "; ".join(said)


def tensor_rows(program: Program, placement: Placement) -> Rows:
    """Return every channel in tensor memory by its columns, and what the allocation leaves free."""
    channels = {channel.name: channel for channel in program.channels}
    rows: list[tuple[object, ...]] = []
    top, last = 0, placement.tensor_columns
    for name, first in sorted(placement.columns, key=lambda item: item[1]):
        columns, stages = channels[name].columns, placement.stage_count(name)
        end = first + stages * columns
        if first > top:
            rows.append((top, first, first - top, "(free)", ""))
        rows.append((first, end, end - first, name, f"{stages} x {columns}"))
        top = max(top, end)
    if top < last:
        rows.append((top, last, last - top, "(free)", ""))
    return ("start", "end", "columns", "channel", "stages"), rows


def tensor_text(program: Program, placement: Placement) -> str:
    """Return the allocated and the available columns; "" without an allocation."""
    if not placement.tensor_columns:
        return ""
    columns, ctas = placement.tensor_columns, placement.occupancy
    total = f"{columns * ctas} of {TARGETS[program.target].tmem_columns} on the SM"
    total += f" for {ctas} CTAs" if ctas > 1 else ""
    return f"{columns} columns of 128 lanes allocated per CTA; {total}"


@cache
def steady_text(program: Program, placement: Placement) -> str:
    """`1,024 cycles per loop trip, bound by the tensor cores (mma.mma)`; "" where nothing waits."""
    found = interval(ProtocolIndex(program), dict(placement.stages))
    if found is None:
        return ""
    return f"{found.cycles:,.0f} cycles per {found.period}, bound by {found.bottleneck}"


@cache
def steady_rows(program: Program, placement: Placement) -> Rows:
    """For each ring that copies fill: stage counts with their interval, equal ones together."""
    blueprint, chosen = ProtocolIndex(program), dict(placement.stages)
    rows: list[tuple[object, ...]] = []
    for channel in program.channels:
        if channel.kind != RING:
            continue
        given = chosen[channel.name]
        last = min(channel.maximum, given + BEYOND)
        groups: list[tuple[list[int], str, str]] = []
        for stages in range(channel.minimum, last + 1):
            found = interval(blueprint, {**chosen, channel.name: stages})
            cycles, bound = (f"{found.cycles:,.0f}", found.bottleneck) if found else ("-", "-")
            if groups and groups[-1][1:] == (cycles, bound):
                groups[-1][0].append(stages)
            else:
                groups.append(([stages], cycles, bound))
        for counts, cycles, bound in groups:
            shown = f"{counts[0]}..{counts[-1]}" if len(counts) > 1 else str(counts[0])
            rows.append((channel.name, shown, cycles, bound, "chosen" if given in counts else ""))
    known = any(row[2] != "-" for row in rows)
    return ("ring", "stages", "cycles", "bound by", ""), rows if known else []
