"""Compare the checker with the explicit-state model checker of the tests.

    python -m benchmarks.validation.interleavings [--seeds N] [--valid N] [--processes N]

Checks random compositions of several kinds, one of each per seed
(tests/unit/check/oracle_comparison.py), and runs them in every interleaving
(tests/unit/check/interleavings.py); the tests compare the same ones.  Programs that are correct by
construction are checked too.  Writes benchmarks/results/validation/oracle.json.  Exit status 1 if
the two disagree, or at a false alarm.
"""

from __future__ import annotations

import argparse
import datetime
import json
import time
from collections import Counter
from multiprocessing import Pool

from unit.check.oracle_comparison import MAKERS, SEEDS, Comparison, compare

from benchmarks.paths import RESULTS  # first: the package finds the tests

OUT = RESULTS / "validation" / "oracle.json"
PART = 100  # seeds of one task


def main() -> int:
    """Compare, check, write the results."""
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
        "seconds": round(spent),  # of one core
    }
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
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
