"""The differences of two links: placement, registers, instructions, stages, parameters.

Two links -> the differing lines; equal values are omitted.
"""

from collections.abc import Iterable, Iterator, Mapping
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
    sections: list[tuple[str, Mapping[str, object], Mapping[str, object]]] = [
        ("Instances", _instances(before), _instances(after)),
        ("Connections", _connections(before), _connections(after)),
        ("Cluster", _cluster(before), _cluster(after)),
        ("Stages", _stages(before), _stages(after)),
        ("Shared memory", _memory(before), _memory(after)),
        ("Tensor memory", _tensor(before), _tensor(after)),
        ("Warps and registers", _warps(before), _warps(after)),
        ("Barriers", _barriers(before), _barriers(after)),
        ("Parameters", _parameters(before), _parameters(after)),
        ("Code", _code(before), _code(after)),
        ("AllowedDiagnostics", _reasons(allowed[0]), _reasons(allowed[1])),
    ]
    lines: list[str] = []
    differ = False
    for title, old, new in sections:
        rows = list(changed(old, new))
        if rows:
            differ = True
            lines += ["", title, *format_table(("", "before", "after", ""), rows)]
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


def _reasons(allowed: Iterable[AllowedDiagnostics]) -> dict[str, object]:
    return {f"{item.code}: {item.message}": item.reason for item in allowed}


def changed(
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


def _connections(link: Link) -> dict[str, object]:
    return {item.name: item.transfer for item in link.program.connections}


def _cluster(link: Link) -> dict[str, object]:
    members = {str(row[0]): row[1] for row in cluster_rows(link.program)[1]}
    return {"CTAs": " x ".join(map(str, link.program.cluster)), **members}


def _stages(link: Link) -> dict[str, object]:
    return dict(link.placement.stages)


def _memory(link: Link) -> dict[str, object]:
    places = {
        item.name: f"{item.start:,}..{item.end:,}"
        for item in pieces_of(link.program, link.placement)
    }
    total = {"dynamic shared memory": link.placement.shared_bytes}
    return {**places, **total, "CTAs per SM": link.placement.occupancy}


def _tensor(link: Link) -> dict[str, object]:
    first = {f"{name}, first column": column for name, column in link.placement.columns}
    taken = link.placement.tensor_columns
    return {**first, "columns allocated": taken} if taken else {}


def _warps(link: Link) -> dict[str, object]:
    first, found = dict(link.placement.warps), {}
    for role in link.program.roles:
        start = first[role.name]
        given = link.placement.registers(role.name)
        where = f"warps {start}..{start + role.warps - 1}" if role.warps > 1 else f"warp {start}"
        found[role.name] = f"{where}, {given} registers"
    threads = {"threads": link.placement.threads}
    return {**found, **threads, "entry registers": link.placement.entry_registers}


def _barriers(link: Link) -> dict[str, object]:
    rings = {f"{name}, mbarriers at": at for name, at in link.placement.barriers}
    return {**rings, **{f"{name}, id": number for name, number in link.placement.named}}


def _parameters(link: Link) -> dict[str, object]:
    return {
        f"#{number}": " ".join(_words((item.kind, item.name, item.box or "", item.swizzle or "")))
        for number, item in enumerate(kernel_parameters(link.program))
    }


def _words(values: Iterable[object]) -> Iterator[str]:
    return (str(value) for value in values if value != "")


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
