"""Fuzz the file readers, 20,000 inputs of each kind.

    python -m benchmarks.validation.fuzz [--kind KIND] [--show SEED]

Each kind runs in a separate process.  An input is accepted, refused with diagnostics, or a fault:
another exception, a diagnostic without a location, more than a second, a file written elsewhere.
`--show SEED` with `--kind` runs one input again and does not catch its exception.  Writes
benchmarks/results/validation/fuzz.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.paths import RESULTS, ROOT

KEPT = 20  # faults of a kind that are listed


def main() -> int:
    """Run the arguments kinds; return 1 if there was a fault."""
    from fuzz_kinds import KINDS

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="inputs per kind")
    parser.add_argument("--seconds", type=float, default=1e9, help="at most so long per kind")
    parser.add_argument("--first", type=int, default=0, help="seed of the first input")
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--show", type=int, metavar="SEED")
    parser.add_argument("--out", default=str(RESULTS / "validation" / "fuzz.json"))
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.show is not None:
        return show(arguments.kind[0], arguments.show)
    if arguments.child:
        print(
            json.dumps(run(arguments.kind[0], arguments.first, arguments.count, arguments.seconds))
        )
        return 0
    results: dict[str, Any] = {}
    for name in arguments.kind or KINDS:
        words = ["--child", "--kind", name, "--count", str(arguments.count)]
        words += ["--first", str(arguments.first), "--seconds", str(arguments.seconds)]
        command = [sys.executable, "-m", "benchmarks.validation.fuzz", *words]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        crashed = {"inputs": 0, "faults": [f"the process ended with {done.returncode}"]}
        results[name] = json.loads(done.stdout) if done.returncode == 0 else crashed
        print(name, {k: v for k, v in results[name].items() if k != "codes"}, flush=True)
    out = Path(arguments.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    return int(any(item["faults"] for item in results.values()))


def run(name: str, first: int, count: int, seconds: float) -> dict[str, Any]:
    """Return the counts of one kind."""
    from fuzz_kinds import KINDS
    from fuzz_verdict import peak_megabytes, verdict_of

    kind = KINDS[name]
    outcomes: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    faults: dict[str, int] = {}
    slowest, started = 0.0, time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        kind.breaks(kind.good()[0], __import__("random").Random(0))
        kind.read(kind.good()[0], Path(folder))
        before = peak_megabytes()
        for seed in range(first, first + count):
            if time.monotonic() - started > seconds:
                break
            value = kind.broken(seed)
            at = time.process_time()
            verdict = verdict_of(lambda v=value: kind.read(v, Path(folder)), folder, kind.positions)
            slowest = max(slowest, time.process_time() - at)
            outcomes[verdict.outcome] += 1
            codes.update(verdict.codes)
            if verdict.outcome == "fault" and len(faults) < KEPT:
                faults.setdefault(verdict.reason, seed)
    return {
        "inputs": sum(outcomes.values()),
        "accepted": outcomes["accepted"],
        "refused": outcomes["refused"],
        "fault": outcomes["fault"],
        "codes": dict(sorted(codes.items())),
        "slowest_ms": round(slowest * 1000),
        "peak_mb_more": round(peak_megabytes() - before),
        "faults": [f"{seed}: {reason}" for reason, seed in faults.items()],
    }


def show(name: str, seed: int) -> int:
    """Run one input without catching its exception."""
    from fuzz_kinds import KINDS

    with tempfile.TemporaryDirectory() as folder:
        value = KINDS[name].broken(seed)
        print(value[:3000] if isinstance(value, bytes) else value)
        print(KINDS[name].read(value, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
