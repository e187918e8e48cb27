"""`pipelink bench ...`: the benchmark scripts of a checkout."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import error

SCRIPTS = {
    "gpu": "correctness and time of every megakernel on a GPU",
    "host": "check, place, swap and null build on this machine",
    "tables": "docs/results.md from benchmarks/results/",
}
_FILES = {"gpu": "run.py", "host": "host.py", "tables": "tables.py"}


def add_bench_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `bench`."""
    listed = "; ".join(f"{name}: {text}" for name, text in SCRIPTS.items())
    parser.add_argument("script", choices=SCRIPTS, metavar="SCRIPT", help=listed)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="arguments of the script")


def run_bench(arguments: argparse.Namespace) -> int:
    """Runs the script in a process of its own."""
    script = benchmarks_folder(arguments.root) / _FILES[arguments.script]
    done = subprocess.run([sys.executable, str(script), *arguments.rest], check=False)
    return done.returncode


def benchmarks_folder(root: str | None) -> Path:
    """The benchmarks of a checkout; PL0010 where PipeLink was installed without them."""
    tops = ([Path(root)] if root else []) + [Path(__file__).resolve().parents[2], Path.cwd()]
    for top in tops:
        folder = top / "benchmarks"
        if (folder / "run.py").is_file():
            return folder
    raise error(
        "PL0010",
        "the benchmarks are not here",
        expected="a checkout of PipeLink with benchmarks/run.py",
        found=str(Path.cwd()),
        helps=("run it in a checkout, or name one with --root",),
    )
