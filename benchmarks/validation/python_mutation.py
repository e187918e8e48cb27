"""Change every operator, constant, condition and statement of a Python module; run its tests.

    python -m benchmarks.validation.python_mutation MODULE... --tests PATH... [--processes N]

Writes benchmarks/results/validation/python_mutation.json, one entry per module, with a reason for
each mutant that survives from python_mutation.yaml (key of the mutant -> reason).  Exit status 1 if
one survives without a reason.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import yaml
from python_mutants import Mutant, mutants
from python_runs import SURVIVED, run

from benchmarks.paths import RESULTS, ROOT

OUT = RESULTS / "validation" / "python_mutation.json"
REASONS = Path(__file__).with_name("python_mutation.yaml")


def main() -> int:
    """Run all mutants of the modules and update the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("modules", nargs="+", help="dotted names")
    parser.add_argument("--tests", nargs="+", required=True, help="arguments of pytest")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", nargs="+", help="keys of mutants: print verdicts, write nothing")
    arguments = parser.parse_args()
    if arguments.only:
        return _print_verdicts(arguments.modules, arguments.tests, arguments.only)
    results = json.loads(OUT.read_text(encoding="utf-8")) if OUT.is_file() else {}
    open_ends = 0
    for module in arguments.modules:
        start = time.monotonic()
        results[module] = measure(module, arguments.tests, arguments.processes)
        results[module]["seconds"] = round(time.monotonic() - start)
        OUT.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n", encoding="utf-8")
        entry = results[module]
        unexplained = [line for line in entry["survivors"] if not line["reason"]]
        open_ends += len(unexplained)
        print(f"{module}: {entry['killed']} of {entry['mutants']} killed, {entry['seconds']} s")
        for line in unexplained:
            print(f"  {line['key']} line {line['line']}: {line['change']}")
    return 1 if open_ends else 0


def _print_verdicts(modules: Sequence[str], tests: Sequence[str], keys: Sequence[str]) -> int:
    for module in modules:
        path = path_of(module)
        for mutant in mutants(path.read_text(encoding="utf-8")):
            if mutant.key in keys:
                print(run(module, path, tests, mutant.tree), mutant.key, mutant.text, flush=True)
    return 0


def measure(module: str, tests: Sequence[str], processes: int) -> dict[str, Any]:
    """Return the counts of a module and the mutants that no test notices."""
    path = path_of(module)
    found = list(mutants(path.read_text(encoding="utf-8")))
    with get_context("fork").Pool(processes) as pool:
        job = partial(run, module, path, tuple(tests))
        verdicts = pool.map(job, [mutant.tree for mutant in found], chunksize=4)
    reasons = yaml.safe_load(REASONS.read_text(encoding="utf-8")).get(module, {})
    survivors = [m for m, verdict in zip(found, verdicts, strict=True) if verdict == SURVIVED]
    kinds = Counter(mutant.what for mutant in found)
    return {
        "tests": list(tests),
        "mutants": len(found),
        "killed": len(found) - len(survivors),
        "kinds": dict(sorted(kinds.items())),
        "survivors": [_line(mutant, reasons) for mutant in survivors],
    }


def path_of(module: str) -> Path:
    """Return the source file of a module of this checkout."""
    return ROOT / f"{module.replace('.', '/')}.py"


def _line(mutant: Mutant, reasons: dict[str, str]) -> dict[str, Any]:
    reason = reasons.get(mutant.key, "")
    return {"key": mutant.key, "line": mutant.line, "change": mutant.text, "reason": reason}


if __name__ == "__main__":
    raise SystemExit(main())
