"""Compare the initiation interval that the link map estimates with times on a GPU.

    python -m benchmarks.validation.interval_accuracy --estimate       # no GPU; writes the plan
    python -m benchmarks.validation.interval_accuracy [--out FILE]

Launches every megakernel with N steps for every CTA and with 3 N.  The difference of the times,
divided by 2 N, is the time of a step without start and end of a launch.  (A traced launch would not
do: recording an event takes as long as some steps.)  Writes the section `steady` of
benchmarks/results/validation/h200.json.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.validation.result_files import (
    BUILD,
    PLAN,
    RESULTS,
    manifests,
    open_section,
    put,
    read,
)

if TYPE_CHECKING:
    from pipelink_rules.model.placement import Placement
    from pipelink_rules.model.program import Program

SMS = 132  # one tile for each: 12 x 11
K, ITEMS = 4096, 16  # 64 k-blocks of a tile; work tiles of a CTA if there is no loop
FACTOR = 3  # steps of the longer launch
SECONDS = 40


def main() -> int:
    """Estimate or measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--estimate", action="store_true", help="no GPU: what the map says")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    return estimate_all() if arguments.estimate else run_all(arguments.out)


def estimate_all() -> int:
    """Write the interval of every built megakernel, and sizes to measure it with."""
    from pipelink_rules.files.codec import read_json
    from pipelink_rules.model.placement import Placement
    from pipelink_rules.model.program import Program

    rows = []
    for folder in sorted((BUILD / "sm_90a" / "megakernels").glob("*")):
        program = read_json(folder / f"{folder.name}.program.json", Program)
        placement = read_json(folder / f"{folder.name}.placement.json", Placement)
        rows.append(estimate(program, placement))
        print(rows[-1])
    put(PLAN, "steady", rows)
    return 0


def estimate(program: Program, placement: Placement) -> dict[str, Any]:
    """Return the estimate of the link map, and a launch that keeps every CTA busy."""
    from pipelink_rules.check.protocol.initiation_interval import interval
    from pipelink_rules.check.protocol.protocol_index import ProtocolIndex

    found = interval(ProtocolIndex(program), dict(placement.stages))
    tile = next((work.tile for work in _works(program) if work.tile), ())
    extents = [int(str(extent.literal or 1)) for extent in tile]
    if len(extents) == 3:
        parts = [dict(item.variant.arguments).get("PARTS", 1) for item in program.instances]
        sizes = {"M": 12 * extents[0], "N": 11 * extents[1], "K": K * max(map(int, parts))}
    else:
        sizes = {"R": SMS * ITEMS * (extents[0] if extents else 1)}
    row: dict[str, Any] = {"megakernel": program.name, "sizes": sizes}
    row["steps"] = sizes["K"] // extents[2] if "K" in sizes else ITEMS
    if found is not None:
        row |= {"cycles": found.cycles, "step": found.period, "bound": found.bottleneck}
    return row


def _works(program: Program) -> Iterator[Any]:
    for item in program.instances:
        if item.variant.contract.work is not None:
            yield item.variant.contract.work


def measured(path: Path, row: dict[str, Any]) -> dict[str, Any]:
    """Measure the cycles of a step from two launches with different numbers of steps."""
    import torch

    from benchmarks.measure.benchmark_kernels import make_inputs, make_outputs, sizes_of, widths
    from benchmarks.measure.references import reference_of
    from pipelink_rules.launch import load

    torch.cuda.init()
    kernel = load(path)
    reference = reference_of(row["megakernel"], widths(kernel.manifest))
    scalars = reference.scalars if reference else {}
    times = []
    for factor in (1, FACTOR):
        long = {name: size * (factor if name in "KR" else 1) for name, size in row["sizes"].items()}
        sizes = sizes_of(kernel.manifest, long)
        arrays = make_inputs(kernel.manifest, sizes, scalars, seed=5)
        arrays |= {k: v.array for k, v in make_outputs(kernel.manifest, sizes).items()}
        times.append(_microseconds(lambda: kernel(**arrays)))  # noqa: B023  called at once
    spin = 10_000_000
    clock = spin / _microseconds(lambda: torch.cuda._sleep(spin), times=5)
    return {
        "microseconds": [round(value, 2) for value in times],
        "clock_mhz": round(clock),
        "measured": round(step_of(times[0], times[1], clock, row["steps"]), 1),
    }


def _microseconds(launch: Callable[[], object], times: int = 30) -> float:
    """Return the median time of some launches, after a few for warming up."""
    import torch

    from benchmarks.measure.harness import hold

    for _ in range(5):
        launch()
    hold()
    events = []
    for _ in range(times):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        launch()
        end.record()
        events.append((start, end))
    torch.cuda.synchronize()
    return statistics.median(1000 * start.elapsed_time(end) for start, end in events)


def step_of(short: float, long: float, clock_mhz: float, steps: int) -> float:
    """Return the cycles of a step; start and end of a launch are part of both times."""
    return (long - short) * clock_mhz / ((FACTOR - 1) * steps)


def run_all(out: Path) -> int:
    """Measure every megakernel as it is shipped, each in a separate process."""
    import subjects  # noqa: F401  what children need is imported once
    import torch  # noqa: F401

    from benchmarks.validation.isolated_process import in_child

    plan = read(PLAN)
    section = open_section(out, "steady")
    if section is None:
        return 1
    linked = manifests("release")
    wrong = 0
    for row in plan.get("steady", []):
        name = row["megakernel"]
        if name not in linked:
            continue
        seen = in_child(measured, linked[name], row, seconds=SECONDS)
        wrong += "problem" in seen
        print(f"{name}: {row.get('cycles')} estimated, {seen.get('measured', seen)}", flush=True)
        section.row({**row, **seen})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
