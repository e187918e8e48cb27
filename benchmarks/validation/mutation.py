"""Change every clause of every contract and declaration, and check every mutant.

    python -m benchmarks.validation.mutation [--processes N] [--megakernel NAME ...] [--out FILE]

Writes benchmarks/results/validation/mutation.json, which `benchmarks.validation.page` reads.  Exit
status 1 if a mutant survives without a reason.
"""

from __future__ import annotations

import argparse
import datetime
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from multiprocessing import Pool
from pathlib import Path
from typing import Any

from whole import Outcome, outcomes

from benchmarks.paths import RESULTS

OUT = RESULTS / "validation" / "mutation.json"
# Accepted mutants that result in another kernel of the same sources: candidates for a launch.
RUNS = ("stages", "transfers", "warps", "argument", "cluster", "split")


def main() -> int:
    """Run all mutants and write the results."""
    import shipped_declarations

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--megakernel", nargs="*", default=None)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    names = arguments.megakernel or sorted(
        shipped_declarations.megakernels(),
        key=lambda name: -len(shipped_declarations.megakernels()[name]["instances"]),
    )
    start = time.monotonic()
    found: list[Outcome] = []
    with Pool(arguments.processes) as pool:
        for part in pool.imap_unordered(_all, names, chunksize=1):
            found = sorted([*found, *part])
            results = summary(found)
            results["date"] = datetime.date.today().isoformat()
            results["seconds"] = round(time.monotonic() - start)
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"{len(found)} mutants, {len(results['survivors'])} survivors, {results['seconds']} s")
    for line in results["survivors"]:
        print(f"  {line}")
    return 1 if results["survivors"] else 0


def _all(name: str) -> list[Outcome]:
    return list(outcomes(name))


def summary(found: Iterable[Outcome]) -> dict[str, Any]:
    """Return counts by megakernel and by kind of clause, survivors and trials."""
    megakernels: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    kinds: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    survivors, trials = [], []
    for item in found:
        for table in (megakernels[item.megakernel], kinds[item.kind]):
            table["mutants"]["all"] += 1
            if item.stage:
                table["killed"][item.stage] += 1
                table["codes"].update(item.codes)
            else:
                table["equivalent" if item.reason else "survivors"][item.reason or "all"] += 1
        if not item.stage and not item.reason:
            survivors.append(item.text)
        if item.reason not in ("", "same-program") and item.kind in RUNS:
            trials.append(item.text)
    return {
        "megakernels": {name: _plain(table) for name, table in sorted(megakernels.items())},
        "kinds": {name: _plain(table) for name, table in sorted(kinds.items())},
        "survivors": survivors,
        "trials": trials,
    }


def _plain(table: dict[str, Counter[str]]) -> dict[str, dict[str, int]]:
    return {name: dict(sorted(counter.items())) for name, counter in sorted(table.items())}


if __name__ == "__main__":
    raise SystemExit(main())
