"""How well does the interval of the map foretell what a GPU takes?

    python benchmarks/steady.py --estimate       # no GPU; into the plan
    python benchmarks/steady.py [--out FILE]

One traced launch of every megakernel, one work item after the other in every CTA; the time from one
item of a ring to the next, in the middle of its items.  Writes the section `steady` of
benchmarks/results/proof/h200.json.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from proofs import BUILD, PLAN, RESULTS, begun, manifests, put, read  # noqa: E402

if TYPE_CHECKING:
    from pipelink_rules.model.placement import Placement
    from pipelink_rules.model.program import Program
    from pipelink_rules.model.recording import Recording

SMS = 132  # one tile for every one of them: 11 x 12
K, ITEMS = 4096, 16  # 64 blocks of k for a tile; work items of a CTA where nothing loops
LEAST = 8  # items from which on there is a middle
SECONDS = 40


def main() -> int:
    """Estimates, or measures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--estimate", action="store_true", help="no GPU: what the map says")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    return estimate_all() if arguments.estimate else run_all(arguments.out)


def estimate_all() -> int:
    """The interval of every built megakernel, and sizes to measure it with."""
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
    """What the map says, and a launch in which every CTA is busy all the time."""
    from pipelink_rules.check.protocol.blueprint import Blueprint
    from pipelink_rules.check.protocol.interval import interval
    from pipelink_rules.check.protocol.trips import looping

    found = interval(Blueprint(program), dict(placement.stages))
    tile = next((work.tile for work in _works(program) if work.tile), ())
    extents = [int(str(extent.literal or 1)) for extent in tile]
    if len(extents) == 3:
        parts = [dict(item.variant.arguments).get("PARTS", 1) for item in program.instances]
        sizes = {"M": 11 * extents[0], "N": 12 * extents[1], "K": K * max(map(int, parts))}
    else:
        sizes = {"R": SMS * ITEMS * (extents[0] if extents else 1)}
    row: dict[str, Any] = {"megakernel": program.name, "sizes": sizes}
    row["rings"] = sorted(looping(program)) or sorted(c.name for c in program.channels)
    row["loops"] = bool(looping(program))
    if found is not None:
        row |= {"cycles": found.cycles, "step": found.step, "bound": found.bound}
    return row


def _works(program: Program) -> Iterator[Any]:
    for item in program.instances:
        if item.variant.contract.work is not None:
            yield item.variant.contract.work


def cycles_per_item(recording: Recording) -> dict[str, float]:
    """Ring -> cycles from one of its items to the next, median over the warps that wait for them.

    Of each warp the middle half of its items counts: the pipeline is full then, and not yet empty.
    """
    channels = {site.number: site.channel for site in recording.sites if site.channel}
    found: dict[str, list[float]] = {}
    for row in recording.rows:
        ends: dict[str, list[int]] = {}
        for event in row.decoded():
            if event.verb == "wait" and event.site in channels:
                ends.setdefault(channels[event.site], []).append(event.end)
        for channel, times in ends.items():
            if len(times) < LEAST:
                continue
            low, high = len(times) // 4, 3 * len(times) // 4
            taken = (times[high] - times[low]) & 0xFFFFFFFF
            found.setdefault(channel, []).append(taken / (high - low))
    return {channel: statistics.median(each) for channel, each in sorted(found.items())}


def measured(path: Path, row: dict[str, Any]) -> dict[str, Any]:
    """One traced launch; for a child process."""
    import torch
    from references import reference_of
    from subjects import make_inputs, make_outputs, sizes_of, widths

    from pipelink_rules.launch import load
    from pipelink_rules.report.waits import bound_of, role_times

    torch.cuda.init()
    kernel = load(path)
    sizes = sizes_of(kernel.manifest, row["sizes"])
    reference = reference_of(row["megakernel"], widths(kernel.manifest))
    inputs = make_inputs(kernel.manifest, sizes, reference.scalars if reference else {}, seed=5)
    outputs = {k: v.array for k, v in make_outputs(kernel.manifest, sizes).items()}
    recording = kernel.trace(**inputs, **outputs, ctas=16)
    each = cycles_per_item(recording)
    return {
        "each": {name: round(value, 1) for name, value in each.items()},
        "measured": round(step_of(each, row), 1),
        "said": bound_of(recording, role_times(recording)),
        "sizes": sizes,
    }


def step_of(each: dict[str, float], row: dict[str, Any]) -> float:
    """Cycles of a step: a trip through each ring of a loop, or an item of the slowest ring."""
    taken = [cycles for name, cycles in each.items() if name in row["rings"]]
    if not taken:
        return 0.0
    return sum(taken) if row["loops"] else max(taken)


def run_all(out: Path) -> int:
    """Every megakernel that was linked with `trace`, each in a process of its own."""
    import subjects  # noqa: F401  what children need is imported once
    import torch  # noqa: F401
    from children import in_child

    import pipelink_rules.launch
    import pipelink_rules.report.waits  # noqa: F401

    plan = read(PLAN)
    section = begun(out, "steady")
    if section is None:
        return 1
    linked = manifests("trace")
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
