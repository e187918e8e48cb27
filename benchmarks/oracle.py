"""The checker against an executor that tries every interleaving, and against what is right.

python benchmarks/oracle.py [--seeds N] [--valid N] [--processes N]

Random compositions of several kinds, one each per seed (tests/unit/check/oracle_comparison.py), are
judged by the graph and run by the executor (tests/unit/check/interleavings.py); the tests compare
the same ones.  Programs that are right by construction are checked.  Writes
benchmarks/results/proof/oracle.json.  Exit status 1 where the two disagree, or at a false alarm.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
from collections import Counter
from multiprocessing import Pool
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests"
sys.path[:0] = [str(HERE.parent), str(TESTS), str(TESTS / "mutation")]

from unit.check.oracle_comparison import MAKERS, SEEDS, Comparison, compare  # noqa: E402

RESULTS = HERE / "results" / "proof" / "oracle.json"
PART = 100  # seeds of one task


def main() -> int:
    """Compares, checks, writes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--valid", type=int, default=600)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    spent = 0.0
    total = Comparison(Counter(), [], [])
    starts = range(0, arguments.seeds, PART)
    with Pool(arguments.processes) as pool:
        for part, seconds in pool.imap_unordered(_compared, starts):
            spent += seconds
            total.verdicts.update(part.verdicts)
            total.missed.extend(part.missed)
            total.alarms.extend(part.alarms)
        found = pool.map(_checked, range(arguments.valid), chunksize=10)
    alarms = [line for lines in found for line in lines]
    results = {
        "date": datetime.date.today().isoformat(),
        "kinds": [make.__name__ for make in MAKERS],
        "compositions": sum(total.verdicts.values()),
        "verdicts": dict(sorted(total.verdicts.items())),
        "missed": sorted(total.missed),
        "alarms": sorted(total.alarms),
        "valid_programs": arguments.valid,
        "alarms_at_valid_programs": alarms,
        "seconds": round(spent),  # of a core, to compare
    }
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    wrong = [*total.missed, *total.alarms, *alarms]
    print(f"{results['compositions']} compositions, {len(wrong)} disagreements")
    print("\n".join(wrong))
    return 1 if wrong else 0


def _compared(first: int) -> tuple[Comparison, float]:
    start = time.process_time()
    return compare(range(first, first + PART)), time.process_time() - start


def _checked(seed: int) -> list[str]:
    from valid import findings_of

    return [f"valid {seed}: {line}" for line in findings_of(seed)]


if __name__ == "__main__":
    raise SystemExit(main())
