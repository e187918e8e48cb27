"""Time the megakernels of two build directories against each other, in interleaved pairs.

    python -m benchmarks.measure.compare_builds NEW OLD [--only gemm,gated_gemm] [--pairs 300]
                                                        --out FILE

Both builds have to be readable by this version of the launcher.  Needs a GPU and torch.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path


def main() -> int:
    """Write one row for each megakernel and shape."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("new", type=Path)
    parser.add_argument("old", type=Path)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--only", default="", help="megakernels, separated by commas")
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    import torch

    from benchmarks.measure.benchmark_kernels import subjects
    from benchmarks.measure.harness import machine
    from benchmarks.measure.timing import rows_against

    torch.cuda.init()
    only = [name for name in arguments.only.split(",") if name]
    old = {item.name: item for item in subjects(arguments.old, arguments.arch, only)}
    rows = [
        row
        for item in subjects(arguments.new, arguments.arch, only)
        if item.name in old
        for row in rows_against(item, old[item.name], "old build", arguments.pairs)
    ]
    command = ["python", "-m", "benchmarks.measure.compare_builds", *sys.argv[1:]]
    results = {"schema": 1, **machine(command), "rows": rows}
    arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
