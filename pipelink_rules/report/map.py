"""The link map, for people: who has what of an SM, how it is joined, and what code came out."""

from __future__ import annotations

from collections.abc import Iterable

from pipelink_rules.glue.parameters import kernel_parameters
from pipelink_rules.model.image import Audit, KernelParameter
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import FUSED, HANDOVER, RING, Connection, Program, ProgramRole
from pipelink_rules.report.columns import columns
from pipelink_rules.report.forced import forced_lines, forced_of
from pipelink_rules.report.memory import memory_rows, phase_rows


def render_map(program: Program, placement: Placement, audit: Audit) -> str:
    """The text of `<name>.map.txt`; equal for equal inputs."""
    return _text(
        program,
        (
            ("Forced", _forced(program, placement, audit)),
            ("Shared memory", _memory(program, placement)),
            ("Warps and registers", _warps(program, placement, audit)),
            ("Rings and their barriers", _rings(program, placement)),
            ("Named barriers", _named(program, placement)),
            ("Connections", _connections(program)),
            ("Instances", _instances(program)),
            ("Parameters of the entry", _parameters(program)),
            ("Code", _code(audit)),
            ("Notes", _notes((*placement.notes, *audit.warnings))),
        ),
    )


def placement_text(program: Program, placement: Placement) -> str:
    """The part of the map that is known before the link."""
    return _text(
        program,
        (
            ("Forced", _forced(program, placement, None)),
            ("Shared memory", _memory(program, placement)),
            ("Warps and registers", _warps(program, placement, None)),
            ("Rings and their barriers", _rings(program, placement)),
            ("Named barriers", _named(program, placement)),
            ("Notes", _notes(placement.notes)),
        ),
    )


def _text(program: Program, sections: Iterable[tuple[str, list[str]]]) -> str:
    lines = [f"{program.name} for {program.target}, runtime {program.runtime}"]
    if program.spec.summary:
        lines.append(program.spec.summary)
    for title, body in sections:
        if body:
            lines += ["", title, *body]
    return "\n".join(lines) + "\n"


def _memory(program: Program, placement: Placement) -> list[str]:
    heading = ("start", "end", "bytes", "align", "phase", "item", "what", "overlay")
    rows = [
        tuple(f"{cell:,}" if isinstance(cell, int) else cell for cell in row)
        for row in memory_rows(program, placement)
    ]
    phases = [
        (name, *(f"{cell:,}" for cell in numbers))
        for name, *numbers in phase_rows(program, placement)
    ]
    bound = placement.bound_bytes
    proof = "proved minimal" if bound == placement.shared_bytes else "the bound is lower"
    stages = "proved best" if placement.proved else "not proved best"
    return [
        *columns(heading, rows),
        "",
        *columns(("phase", "bound", "taken", "slack", "limit"), phases),
        f"  launch takes {placement.shared_bytes:,} bytes, bound {bound:,}: {proof}; "
        f"stage counts {stages} ({placement.solver}); {placement.occupancy} CTA per SM"
        + ("; kept from the previous placement" if placement.kept else ""),
    ]


def _warps(program: Program, placement: Placement, audit: Audit | None) -> list[str]:
    first = dict(placement.warps)
    given = {role: group.registers for group in placement.warpgroups for role in group.roles}
    highest = dict(audit.region_registers) if audit else {}
    rows = []
    for role in sorted(program.roles, key=lambda item: first[item.name]):
        start = first[role.name]
        rows.append(
            (
                f"{start}..{start + role.warps - 1}" if role.warps > 1 else str(start),
                role.name,
                given.get(role.name, placement.entry_registers),
                highest.get(role.name, "-"),
                role.minimum,
                role.want,
                role.entry,
                _probed(program, role),
                ", ".join(".".join(member) for member in role.members)
                + (f" x{role.calls}" if role.calls > 1 else ""),
            )
        )
    heading = ("warps", "role", "given", "used", "min", "want", "entry", "probe", "entries")
    moved = "by setmaxnreg" if placement.setmaxnreg else "no setmaxnreg"
    pool = placement.entry_registers * placement.threads
    used = sum(128 * group.registers for group in placement.warpgroups)
    return [
        *columns(heading, rows),
        f"  {placement.threads} threads enter with {placement.entry_registers} registers, {moved}"
        + (f"; {used:,} of a pool of {pool:,}" if placement.setmaxnreg else ""),
    ]


def _probed(program: Program, role: ProgramRole) -> str:
    """The largest probe result of the members of a role: registers/entry."""
    found = [
        measured
        for instance, name in role.members
        for probed, measured in program.instance(instance).variant.measured
        if probed == name
    ]
    if not found:
        return "-"
    return f"{max(m.registers for m in found)}/{max(m.entry for m in found)}"


def _rings(program: Program, placement: Placement) -> list[str]:
    stages, barriers = dict(placement.stages), dict(placement.barriers)
    rows = [
        (
            channel.name,
            stages[channel.name],
            channel.stage_bytes,
            barriers[channel.name],
            f"{channel.shares} x " * (channel.shares > 1) + f"{channel.full_arrivals}",
            channel.empty_arrivals,
            f"{channel.minimum}..{channel.maximum}",
        )
        for channel in program.channels
    ]
    return columns(("ring", "stages", "bytes", "mbarriers at", "full", "empty", "asked"), rows)


def _named(program: Program, placement: Placement) -> list[str]:
    counts = {
        f"{instance.name}.{barrier.name}": barrier.count.text
        for instance in program.instances
        for barrier in instance.variant.contract.named_barriers
    }
    rows = [(number, name, counts.get(name, "-")) for name, number in placement.named]
    return columns(("id", "barrier", "threads"), sorted(rows))


_TRANSFERS = {
    RING: "same memory, full/empty mbarriers; no code",
    FUSED: "by reference in the same warps; no code",
    HANDOVER: "through a shared ring that the linker made",
}


def _connections(program: Program) -> list[str]:
    rows = [
        (item.name, _carried(program, item), item.transfer, _TRANSFERS.get(item.transfer, ""))
        for item in program.connections
    ]
    for kind, bound in (("tensor", program.tensors), ("scalar", program.scalars)):
        for keyword, places in bound:
            for place in places:
                port = program.instance(place[0]).variant.contract.port(place[1])
                name = ".".join(place)
                arrow = (
                    f"{name} -> {keyword}" if port.direction == "out" else f"{keyword} -> {name}"
                )
                what = port.type or port.members[0].dtype
                if port.members:
                    what += f" [{', '.join(extent.text for extent in port.members[0].shape)}]"
                rows.append((arrow, what, "global" if kind == "tensor" else "scalar", ""))
    return columns(("connection", "carries", "transfer", "how"), rows)


def _carried(program: Program, connection: Connection) -> str:
    port = program.instance(connection.producer[0]).variant.contract.port(connection.producer[1])
    return " + ".join(
        f"{member.dtype} [{', '.join(extent.text for extent in member.shape)}]"
        for member in port.members
    )


def _instances(program: Program) -> list[str]:
    rows = [
        (
            item.name,
            item.label,
            item.variant.digest,
            " ".join(f"{name}={value}" for name, value in item.variant.arguments),
            " ".join(item.variant.flags),
        )
        for item in program.instances
    ]
    return columns(("instance", "component", "variant", "parameters", "flags"), rows)


def _parameters(program: Program) -> list[str]:
    rows = [
        (number, item.kind, item.name, item.dtype, _box(item), ", ".join(item.ports))
        for number, item in enumerate(kernel_parameters(program))
    ]
    return columns(("#", "kind", "name", "dtype", "box", "serves"), rows)


def _box(parameter: KernelParameter) -> str:
    if not parameter.box:
        return ""
    return f"{list(parameter.box)} swizzle {parameter.swizzle}"


def _code(audit: Audit) -> list[str]:
    ids = ", ".join(
        f"{'in a register' if number < 0 else number} at {sites} sites"
        for number, sites in audit.barrier_ids
    )
    rows = [
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
    return [f"  {name:<15}{text}" for name, text in rows]


def _forced(program: Program, placement: Placement, audit: Audit | None) -> list[str]:
    return [f"  {line}" for line in forced_lines(forced_of(program, placement, audit))]


def _notes(texts: Iterable[str]) -> list[str]:
    return [f"  {text}" for text in dict.fromkeys(texts)]
