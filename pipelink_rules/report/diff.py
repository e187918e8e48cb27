"""The differences of two links: placement, registers, instructions, stages, parameters.

Two links -> the differing lines; equal values are omitted.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pipelink_rules.diagnostics.text_table import format_table
from pipelink_rules.glue.parameters import kernel_parameters
from pipelink_rules.model.linked_kernel import AllowedDiagnostics, Audit
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.report.allowed import all_allowed, allowed_lines
from pipelink_rules.report.map_rows import cluster_rows
from pipelink_rules.report.memory_map import pieces_of


@dataclass(frozen=True)
class Link:
    """The stage files of one built megakernel."""

    program: Program
    placement: Placement
    audit: Audit | None  # None where nothing was linked yet
    allowed: tuple[AllowedDiagnostics, ...] = ()  # findings of the check


def diff_links(before: Link, after: Link) -> str:
    """Return the differences by section, or one line if there are none; allowed errors always."""
    allowed = [all_allowed(item.allowed, item.audit) for item in (before, after)]
    lines: list[str] = []
    for title, values in _SECTIONS.items():
        if rows := list(_changed(values(before), values(after))):
            lines += ["", title, *format_table(("", "before", "after", ""), rows)]
    differ = bool(lines)
    names = [
        f"{link.program.name}{' (allowed errors)' if found else ''} for {link.program.target}"
        for link, found in zip((before, after), allowed, strict=True)
    ]
    heading = f"{names[0]} -> {names[1]}" if names[0] != names[1] else names[0]
    if allowed[0] == allowed[1] and allowed[0]:
        lines += ["", "Forced, before and after", *allowed_lines(allowed[0])]
    if not differ:
        same = " and the same machine code" if before.audit and after.audit else ""
        heading = f"{heading}: no difference: the same placement{same}"
    return "\n".join([heading, *lines]) + "\n"


def _changed(
    before: Mapping[str, object], after: Mapping[str, object]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield rows (name, before, after, difference of numbers) for all that differs."""
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if old != new:
            delta = f"{new - old:+,}" if isinstance(old, int) and isinstance(new, int) else ""
            yield name, _cell(old), _cell(new), delta


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _instances(link: Link) -> dict[str, object]:
    return {
        item.name: f"{item.label.rpartition(':')[2]}_{item.variant.digest}"
        for item in link.program.instances
    }


def _cluster(link: Link) -> dict[str, object]:
    members = {str(row[0]): row[1] for row in cluster_rows(link.program)[1]}
    return {"CTAs": " x ".join(map(str, link.program.cluster)), **members}


def _memory(link: Link) -> dict[str, object]:
    pieces = pieces_of(link.program, link.placement)
    return {
        **{item.name: f"{item.start:,}..{item.end:,}" for item in pieces},
        "dynamic shared memory": link.placement.shared_bytes,
        "CTAs per SM": link.placement.occupancy,
    }


def _tensor(link: Link) -> dict[str, object]:
    first = {f"{name}, first column": column for name, column in link.placement.columns}
    taken = link.placement.tensor_columns
    return {**first, "columns allocated": taken} if taken else {}


def _warps(link: Link) -> dict[str, object]:
    found: dict[str, object] = {}
    for role in link.program.roles:
        start = link.placement.first_warp(role.name)
        where = f"warps {start}..{start + role.warps - 1}" if role.warps > 1 else f"warp {start}"
        found[role.name] = f"{where}, {link.placement.registers(role.name)} registers"
    found["threads"] = link.placement.threads
    return {**found, "entry registers": link.placement.entry_registers}


def _barriers(link: Link) -> dict[str, object]:
    rings = {f"{name}, mbarriers at": at for name, at in link.placement.barriers}
    return {**rings, **{f"{name}, id": number for name, number in link.placement.named}}


def _parameters(link: Link) -> dict[str, object]:
    found: dict[str, object] = {}
    for number, item in enumerate(kernel_parameters(link.program)):
        words = (item.kind, item.name, item.box, item.swizzle)
        found[f"#{number}"] = " ".join(str(word) for word in words if word)
    return found


def _code(link: Link) -> dict[str, object]:
    audit = link.audit
    if audit is None:
        return {}
    used = {f"used by {role}": count for role, count in audit.region_registers}
    return {
        "instructions": audit.instructions,
        "registers": audit.registers,
        **used,
        "stack bytes": audit.stack_bytes,
        "spill bytes": audit.spill_stores + audit.spill_loads,
        "setmaxnreg": ", ".join(map(str, audit.setmaxnreg)) or "none",
        "calls": ", ".join(audit.calls) or "none",
        "machine code": audit.text_sha256[:16],
    }


_SECTIONS: dict[str, Callable[[Link], Mapping[str, object]]] = {
    "Instances": _instances,
    "Connections": lambda link: {item.name: item.transfer for item in link.program.connections},
    "Cluster": _cluster,
    "Stages": lambda link: dict(link.placement.stages),
    "Shared memory": _memory,
    "Tensor memory": _tensor,
    "Warps and registers": _warps,
    "Barriers": _barriers,
    "Parameters": _parameters,
    "Code": _code,
    "AllowedDiagnostics": lambda link: {
        f"{item.code}: {item.message}": item.reason
        for item in all_allowed(link.allowed, link.audit)
    },
}
