"""The link map: resources of an SM by owner, connections, and the linked code."""

from pipelink_rules.diagnostics.text_table import format_table
from pipelink_rules.model.linked_kernel import AllowedDiagnostics, Audit
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.report import map_rows
from pipelink_rules.report.allowed import all_allowed, allowed_lines
from pipelink_rules.report.memory_map import Rows, memory_rows, phase_rows, with_commas


def render_map(
    program: Program,
    placement: Placement,
    audit: Audit | None = None,
    allowed: tuple[AllowedDiagnostics, ...] = (),
) -> str:
    """Return the text of `<name>.map.txt`, equal for equal inputs.

    audit: without one, only what is known before the link.
    allowed: diagnostics of the check that the declaration allows.
    """
    lines = [f"{program.name} for {program.target}, runtime {program.runtime}"]
    if program.spec.summary:
        lines.append(program.spec.summary)

    def section(title: str, body: list[str]) -> None:
        if body:
            lines.extend(("", title, *body))

    def table(title: str, rows: Rows, note: str = "") -> None:
        section(title, [*format_table(*rows), *([f"  {note}"] if note else [])])

    section("Forced", [f"  {line}" for line in allowed_lines(all_allowed(allowed, audit))])
    section("Shared memory", _memory(program, placement))
    if note := map_rows.tensor_text(program, placement):
        table("Tensor memory", map_rows.tensor_rows(program, placement), note)
    warps = map_rows.warp_rows(program, placement, audit)
    table("Warps and registers", warps, map_rows.pool_text(placement))
    table("Rings and their barriers", map_rows.ring_rows(program, placement))
    if note := map_rows.cluster_text(program):
        table("Cluster", map_rows.cluster_rows(program), note)
    if audit and (note := map_rows.steady_text(program, placement)):
        table("Steady state (estimate)", map_rows.steady_rows(program, placement), note)
    table("Named barriers", map_rows.named_rows(program, placement))
    if audit:
        table("Connections", map_rows.connection_rows(program))
        table("Instances", map_rows.instance_rows(program))
        table("Parameters of the entry", map_rows.parameter_rows(program))
        if audit.verdicts:
            table("Roles", map_rows.verdict_rows(audit))
        section("Code", [f"  {name:<15}{text}" for name, text in map_rows.code_rows(audit)[1]])
    notes = (*placement.notes, *(audit.warnings if audit else ()))
    section("Notes", [f"  {text}" for text in dict.fromkeys(notes)])
    return "\n".join(lines) + "\n"


def _memory(program: Program, placement: Placement) -> list[str]:
    bound = placement.bound_bytes
    proof = "proved minimal" if bound == placement.shared_bytes else "the bound is lower"
    stages = "proved best" if placement.proved else "not proved best"
    return [
        *format_table(*with_commas(memory_rows(program, placement))),
        "",
        *format_table(*with_commas(phase_rows(program, placement))),
        f"  launch takes {placement.shared_bytes:,} bytes, bound {bound:,}: {proof}; "
        f"stage counts {stages} ({placement.solver}); {placement.occupancy} CTA per SM"
        + ("; kept from the previous placement" if placement.kept else ""),
    ]
