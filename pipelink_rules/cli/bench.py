"""`pipelink bench ...`: the benchmark scripts of a checkout."""

import argparse
import os
import subprocess
import sys
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import error

_MODULES = {"gpu": "run", "host": "host", "tables": "tables"}  # of benchmarks/measure


def run_bench(arguments: argparse.Namespace) -> int:
    """Run the module in a separate process; return its exit status."""
    module = f"benchmarks.measure.{_MODULES[arguments.script]}"
    path = [str(checkout_with_benchmarks(arguments.root)), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments.rest],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
        check=False,
    )
    return done.returncode


def checkout_with_benchmarks(root: str | None) -> Path:
    """Return the top of a checkout; PL0010 if PipeLink is installed without its benchmarks."""
    tops = ([Path(root)] if root else []) + [Path(__file__).resolve().parents[2], Path.cwd()]
    for top in tops:
        if (top / "benchmarks/measure/run.py").is_file():
            return top
    raise error(
        "PL0010",
        "no checkout with benchmarks found",
        expected="a checkout of PipeLink with benchmarks/measure/run.py",
        found=str(Path.cwd()),
        suggestions=("run it in a checkout, or pass one with --root",),
    )
