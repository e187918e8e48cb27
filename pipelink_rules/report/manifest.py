"""The metadata of the launcher: Program + Placement + Audit -> Manifest."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

from pipelink_rules.files.atomic import sha256
from pipelink_rules.glue.operation_script import script_of, watchdog_sites
from pipelink_rules.glue.parameters import kernel_parameters, workspaces
from pipelink_rules.model.linked_kernel import AllowedDiagnostics, Audit, Manifest, TensorArgument
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.model.target import TARGETS
from pipelink_rules.report.allowed import all_allowed
from pipelink_rules.report.map_rows import mbarrier_count

NOTING = ("trace", "record")  # runtimes that note operations
REPORTING = (*NOTING, "watchdog", "jitter")  # runtimes whose reports name sites


def manifest_of(
    program: Program,
    placement: Placement,
    audit: Audit,
    cubin_path: str | os.PathLike[str],
    allowed: tuple[AllowedDiagnostics, ...] = (),
) -> Manifest:
    """Return the manifest of a linked megakernel; reads the cubin for its digest only.

    allowed: diagnostics of the check that the declaration allows.
    """
    contracts = [item.variant.contract for item in program.instances]
    return Manifest(
        name=program.name,
        target=program.target,
        entry=audit.entry,
        cubin=Path(cubin_path).name,
        cubin_sha256=sha256(cubin_path),
        threads=placement.threads,
        shared_bytes=placement.shared_bytes,
        occupancy=placement.occupancy,
        cluster=program.cluster,
        grid=grid_expression(program),
        parameters=kernel_parameters(program),
        tensors=tuple(_tensors(program)),
        scalars=tuple((name, program.port(places[0]).type) for name, places in program.scalars),
        symbols=tuple(_symbols(program)),
        requires=tuple(_preconditions(program)),
        runs_on=TARGETS[program.target].runs_on,
        runtime=program.runtime,
        deterministic=all(contract.numeric.deterministic for contract in contracts),
        sites=watchdog_sites(program, placement) if program.runtime in REPORTING else (),
        script=script_of(program, dict(placement.warps)) if program.runtime in NOTING else None,
        summary=program.spec.summary,
        allowed=all_allowed(allowed, audit),
        workspace=workspaces(program),
        coresident=any(contract.coresident == "grid" for contract in contracts),
        report=tuple(summary_of(program, placement, audit).items()),
        verdicts=audit.verdicts,
    )


def grid_expression(program: Program) -> str:
    """Return the CTAs to launch: one (or a cluster) per work tile, at most the resident ones."""
    work = program.instance(program.scheduler[0]).variant.contract.work
    items = work.tiles.text if work and work.tiles else "1"
    size = math.prod(program.cluster)
    if size == 1:
        return f"max(1, min(sms * occupancy, {items}))"
    return f"{size} * max(1, min(clusters, {items}))"


def summary_of(program: Program, placement: Placement, audit: Audit) -> dict[str, str]:
    """Return the cells of a table row about one link."""
    stages = [f"{name} {count}" for name, count in placement.stages]
    tensor = {"tensor columns": str(placement.tensor_columns)} if placement.tensor_columns else {}
    registers = str(audit.registers)
    if placement.setmaxnreg:
        values = sorted({group.registers for group in placement.warpgroups if group.roles})
        registers += f" -> {'/'.join(map(str, values))}"
    return {
        "megakernel": program.name,
        "target": program.target,
        "shared bytes": str(placement.shared_bytes),
        "stages": ", ".join(stages) or "-",
        **tensor,
        "registers": registers,
        "barriers": str(mbarrier_count(program, placement) + len(placement.named)),
        "instructions": str(audit.instructions),
    }


def _tensors(program: Program) -> Iterator[TensorArgument]:
    for keyword, places in program.tensors:
        ports = [program.port(place) for place in places]
        directions = {port.direction for port in ports}
        member = ports[0].members[0]
        yield TensorArgument(
            keyword,
            member.dtype,
            tuple(extent.text for extent in member.shape),
            "inout" if len(directions) == 2 else directions.pop(),
            max(port.align for port in ports),
        )


def _symbols(program: Program) -> Iterator[tuple[str, int, int, int]]:
    """Yield each symbol with the strictest minimum, maximum and multiple of all components."""
    for name in program.symbols:
        declared = [
            symbol
            for instance in program.instances
            for symbol in instance.variant.contract.symbols
            if symbol.name == name
        ]
        yield (
            name,
            max((symbol.minimum for symbol in declared), default=0),
            min((symbol.maximum for symbol in declared), default=2**31 - 1),
            math.lcm(*(symbol.multiple_of for symbol in declared)),
        )


def _preconditions(program: Program) -> Iterator[tuple[str, str]]:
    seen = set()
    for instance in program.instances:
        for condition in instance.variant.contract.requires:
            if condition.literal != 1 and condition.text not in seen:
                seen.add(condition.text)
                place = f" ({condition.span})" if condition.span else ""
                yield condition.text, f"{instance.name}{place}"
