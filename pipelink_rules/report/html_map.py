"""The link map as one self-contained page, equal for equal inputs."""

from collections.abc import Iterator

from pipelink_rules.model.linked_kernel import AllowedDiagnostics, Audit
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.model.target import TARGETS
from pipelink_rules.report import map_rows
from pipelink_rules.report.allowed import all_allowed
from pipelink_rules.report.html import COLORS, STYLE, element, table, text
from pipelink_rules.report.memory_map import memory_rows, pieces_of, with_commas
from pipelink_rules.report.svg_pictures import memory_picture, pipeline_picture, warps_picture

# No script, no font, no picture of another host: the page says so to the browser, too.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render_page(
    program: Program,
    placement: Placement,
    audit: Audit,
    allowed: tuple[AllowedDiagnostics, ...] = (),
) -> str:
    """Return the text of `<name>.html`.  allowed: diagnostics that the declaration allows."""
    body = "\n".join(_body(program, placement, audit, all_allowed(allowed, audit)))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", text(f"{program.name} for {program.target}")),
        element("style", STYLE),
    )
    page = head + "\n" + element("body", element("main", body))
    return f'<!DOCTYPE html>\n<html lang="en">{page}</html>\n'


def _body(
    program: Program, placement: Placement, audit: Audit, allowed: tuple[AllowedDiagnostics, ...]
) -> Iterator[str]:
    colors = _colors(program, placement)
    yield element("h1", text(program.name))
    if program.spec.summary:
        yield element("p", element("code", text(program.spec.summary)))
    description = TARGETS[program.target].description
    chips = (
        f"{program.target}{f' ({description})' if description else ''}",
        f"runtime {program.runtime}",
        f"{placement.occupancy} CTA per SM",
        f"cluster {'x'.join(map(str, program.cluster))}",
    )
    yield element("p", *(element("span", text(chip), class_="chip") for chip in chips))
    yield _allowed(allowed)
    yield _facts(program, placement, audit)
    yield _section(
        "Pipeline",
        pipeline_picture(program, placement, colors),
        _note("Dashed: fused, by reference in the same warps. Point at a line for its name."),
    )
    yield _section(
        "Shared memory",
        memory_picture(program, placement, colors),
        table(*with_commas(memory_rows(program, placement))),
        _note(
            f"{placement.shared_bytes:,} bytes taken, bound {placement.bound_bytes:,}; stage "
            f"counts {'proved best' if placement.proved else 'not proved best'} "
            f"({placement.solver})"
        ),
    )
    if placement.tensor_columns:
        yield _section(
            "Tensor memory",
            table(*map_rows.tensor_rows(program, placement)),
            _note(map_rows.tensor_text(program, placement)),
        )
    yield _section(
        "Warps and registers",
        warps_picture(program, placement, audit, colors),
        table(*map_rows.warp_rows(program, placement, audit)),
        _note(
            f"{map_rows.pool_text(placement)}. The line in a bar is the highest register in use."
        ),
    )
    if said := map_rows.cluster_text(program):
        yield _section("Cluster", table(*map_rows.cluster_rows(program)), _note(said))
    if steady := map_rows.steady_text(program, placement):
        yield _section(
            "Steady state",
            table(*map_rows.steady_rows(program, placement)),
            _note(
                f"{steady}. An estimate from below: data come from the L2 cache, and what "
                "components compute between their operations is not counted."
            ),
        )
    for title, rows in (
        ("Rings and their barriers", map_rows.ring_rows(program, placement)),
        ("Named barriers", map_rows.named_rows(program, placement)),
        ("Connections", map_rows.connection_rows(program)),
        ("Instances", map_rows.instance_rows(program)),
        ("Parameters of the entry", map_rows.parameter_rows(program)),
        ("Roles", map_rows.verdict_rows(audit)),
        ("Code", map_rows.code_rows(audit)),
    ):
        yield _section(title, table(*rows))
    notes = dict.fromkeys((*placement.notes, *audit.warnings))
    yield _section("Notes", *(_note(note) for note in notes))


def _section(title: str, *parts: str) -> str:
    """Nothing where there is nothing to say."""
    return element("section", element("h2", text(title)), *parts) if any(parts) else ""


def _note(said: str) -> str:
    return element("p", text(said))


def _allowed(allowed: tuple[AllowedDiagnostics, ...]) -> str:
    if not allowed:
        return ""
    parts = [element("h2", "Forced: linked in spite of findings")]
    for item in allowed:
        parts.append(element("p", element("b", text(item.code)), text(f" {item.message}")))
        parts.append(_note(f"because: {item.reason}"))
        if item.counterexample:
            parts.append(element("pre", text("\n".join(item.counterexample))))
    return element("section", *parts, class_="allowed")


def _facts(program: Program, placement: Placement, audit: Audit) -> str:
    limit = TARGETS[program.target].shared_limit(placement.occupancy)
    mbarriers = map_rows.mbarrier_count(program, placement)
    share = 100 * placement.shared_bytes / limit
    facts = (
        (f"{placement.shared_bytes / 1024:.1f} KiB", f"shared memory, {share:.0f} % of the limit"),
        (str(placement.threads), f"threads, {placement.threads // 32} warps"),
        (str(audit.registers), "registers at entry"),
        (f"{mbarriers} + {len(placement.named)}", "mbarriers + named barriers"),
        (f"{audit.instructions:,}", "instructions"),
        (f"{audit.spill_stores + audit.spill_loads} B", "spilled"),
    )
    found = (
        element("div", element("b", text(value)), element("span", text(name)), class_="fact")
        for value, name in facts
    )
    return element("div", *found, class_="facts")


def _colors(program: Program, placement: Placement) -> dict[str, int]:
    """Return a color of its own for every ring and buffer, and one for every role."""
    names = [piece.name for piece in pieces_of(program, placement) if piece.name != "barriers"]
    roles = sorted((role.name for role in program.roles), key=placement.first_warp)
    last = COLORS - 1  # gray things and the barrier table
    return {
        **{name: (number + 3) % last for number, name in enumerate(names)},
        **{name: number % last for number, name in enumerate(roles)},
        "barriers": last,
    }
