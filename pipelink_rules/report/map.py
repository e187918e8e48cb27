"""The link map: resources of an SM by owner, connections, and the linked code."""

from collections.abc import Iterable

from pipelink_rules.diagnostics.text_table import format_table
from pipelink_rules.model.linked_kernel import AllowedDiagnostics, Audit
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.report.allowed import all_allowed, allowed_lines
from pipelink_rules.report.map_rows import (
    cluster_rows,
    cluster_text,
    code_rows,
    connection_rows,
    instance_rows,
    named_rows,
    parameter_rows,
    pool_text,
    ring_rows,
    steady_rows,
    steady_text,
    tensor_rows,
    tensor_text,
    warp_rows,
)
from pipelink_rules.report.memory_map import memory_rows, phase_rows


def render_map(
    program: Program,
    placement: Placement,
    audit: Audit,
    allowed: tuple[AllowedDiagnostics, ...] = (),
) -> str:
    """Return the text of `<name>.map.txt`; equal for equal inputs.

    allowed: diagnostics of the check that the declaration allows.
    """
    return _text(
        program,
        (
            ("Forced", _allowed(all_allowed(allowed, audit))),
            ("Shared memory", _memory(program, placement)),
            ("Tensor memory", _tensor(program, placement)),
            ("Warps and registers", _warps(program, placement, audit)),
            ("Rings and their barriers", format_table(*ring_rows(program, placement))),
            ("Cluster", _cluster(program)),
            ("Steady state (estimate)", _steady(program, placement)),
            ("Named barriers", format_table(*named_rows(program, placement))),
            ("Connections", format_table(*connection_rows(program))),
            ("Instances", format_table(*instance_rows(program))),
            ("Parameters of the entry", format_table(*parameter_rows(program))),
            ("Code", _code(audit)),
            ("Notes", _notes((*placement.notes, *audit.warnings))),
        ),
    )


def placement_text(
    program: Program, placement: Placement, allowed: tuple[AllowedDiagnostics, ...] = ()
) -> str:
    """Return the part of the map that is known before the link."""
    return _text(
        program,
        (
            ("Forced", _allowed(allowed)),
            ("Shared memory", _memory(program, placement)),
            ("Tensor memory", _tensor(program, placement)),
            ("Warps and registers", _warps(program, placement, None)),
            ("Rings and their barriers", format_table(*ring_rows(program, placement))),
            ("Cluster", _cluster(program)),
            ("Named barriers", format_table(*named_rows(program, placement))),
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
        *format_table(heading, rows),
        "",
        *format_table(("phase", "bound", "taken", "slack", "limit"), phases),
        f"  launch takes {placement.shared_bytes:,} bytes, bound {bound:,}: {proof}; "
        f"stage counts {stages} ({placement.solver}); {placement.occupancy} CTA per SM"
        + ("; kept from the previous placement" if placement.kept else ""),
    ]


def _tensor(program: Program, placement: Placement) -> list[str]:
    said = tensor_text(program, placement)
    return [*format_table(*tensor_rows(program, placement)), f"  {said}"] if said else []


def _warps(program: Program, placement: Placement, audit: Audit | None) -> list[str]:
    return [*format_table(*warp_rows(program, placement, audit)), f"  {pool_text(placement)}"]


def _cluster(program: Program) -> list[str]:
    said = cluster_text(program)
    return [*format_table(*cluster_rows(program)), f"  {said}"] if said else []


def _code(audit: Audit) -> list[str]:
    return [f"  {name:<15}{text}" for name, text in code_rows(audit)[1]]


def _steady(program: Program, placement: Placement) -> list[str]:
    said = steady_text(program, placement)
    if not said:
        return []
    return [*format_table(*steady_rows(program, placement)), f"  {said}"]


def _allowed(allowed: Iterable[AllowedDiagnostics]) -> list[str]:
    return [f"  {line}" for line in allowed_lines(allowed)]


def _notes(texts: Iterable[str]) -> list[str]:
    return [f"  {text}" for text in dict.fromkeys(texts)]
