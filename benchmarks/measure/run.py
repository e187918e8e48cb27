"""Measure everything that needs a GPU: correctness, repetition, time, compute-sanitizer.

    python -m benchmarks.measure.run [--pairs 300] [--repeat 1000] [--only gemm,rms_norm]
                                     [--skip sanitizer]

Loads what `scons twins=1` built (build/sm_90a/megakernels/*).  Needs torch for references, cuBLAS
and events.  Writes benchmarks/results/<card>.json, from which `benchmarks.measure.tables` generates
the page.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.paths import RESULTS

PLAIN = ("gemm", "gemm_multicast")  # timed against each other, monoliths and cuBLAS
SPLIT = "gemm_split_k"  # timed on shapes with few tiles
PARTS = (
    "correctness",
    "repeat",
    "graph",
    "overhead",
    "gemm",
    "skinny",
    "twins",
    "streaming",
    "sanitizer",
)


def main() -> int:
    """Run the requested parts; return 1 if a result is wrong."""
    arguments = _arguments()
    import torch

    if not torch.cuda.is_available():
        print("there is no GPU here: torch.cuda.is_available() is False", file=sys.stderr)
        return 1
    from benchmarks.measure.benchmark_kernels import subjects
    from benchmarks.measure.harness import machine, note, toolkit_of

    torch.cuda.init()
    build = Path(arguments.build)
    found = subjects(build, arguments.arch, _words(arguments.only))
    if not found:
        print(f"nothing is built in {build / arguments.arch / 'megakernels'}", file=sys.stderr)
        return 1
    results: dict[str, Any] = {
        "schema": 1,
        **machine(["python", "-m", "benchmarks.measure.run", *sys.argv[1:]]),
        "toolkit": toolkit_of(build),
        "parts": {},
    }
    skipped = _words(arguments.skip)
    known = [item for item in found if item.reference is not None]
    results["without_reference"] = [item.name for item in found if item.reference is None]
    for part in PARTS:
        if part in skipped:
            continue
        note(f"{part}:")
        start = time.perf_counter()
        rows = _PARTS[part](known, build, arguments)
        results["parts"][part] = {"seconds": round(time.perf_counter() - start, 1), "rows": rows}
        _write(arguments.out, results)  # keep what was measured, whatever happens later
        if time.perf_counter() - _START > arguments.limit:
            results["stopped"] = f"after {part}: the limit of {arguments.limit} s was reached"
            break
    _write(arguments.out, results)
    from benchmarks.measure.tables import summary_text

    print(summary_text(results))
    return 1 if _wrong(results) else 0


_START = time.perf_counter()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build", help="build directory (default build)")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--pairs", type=int, default=300, help="launches of each side of a ratio")
    parser.add_argument("--repeat", type=int, default=1000, help="launches that must be equal")
    parser.add_argument("--only", default="", help="megakernels, separated by commas")
    parser.add_argument("--skip", default="", help=f"parts to leave out: {', '.join(PARTS)}")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which to stop")
    parser.add_argument("--out", default="", help="results file (default benchmarks/results/...)")
    arguments = parser.parse_args()
    if not arguments.out:
        import torch

        card = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none"
        arguments.out = str(RESULTS / f"{card.lower().replace(' ', '-')}.json")
    return arguments


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _correctness(known: list[Any], build: Path, arguments: argparse.Namespace) -> list[Any]:
    from benchmarks.measure.correctness import check_shapes

    return [row for item in known for row in check_shapes(item)]


def _repeat(known: list[Any], build: Path, arguments: argparse.Namespace) -> list[Any]:
    from benchmarks.measure.correctness import check_repeats

    return [check_repeats(item, arguments.repeat) for item in known]


def _graph(known: list[Any], build: Path, arguments: argparse.Namespace) -> list[Any]:
    from benchmarks.measure.correctness import check_graph

    return [check_graph(item) for item in known]


def _overhead(known: list[Any], build: Path, arguments: argparse.Namespace) -> list[Any]:
    from benchmarks.measure.timing import overhead_row

    return [overhead_row(item) for item in known]


def _gemm(known: list[Any], build: Path, arguments: argparse.Namespace) -> list[Any]:
    from benchmarks.measure.timing import gemm_rows

    plain = [item for item in known if item.name in PLAIN]
    return [row for item in plain for row in gemm_rows(item, plain, build, arguments.pairs)]


def _skinny(known: list[Any], build: Path, arguments: argparse.Namespace) -> list[Any]:
    from benchmarks.measure.timing import skinny_rows

    plain = [item for item in known if item.name in PLAIN[:1]]
    split = [item for item in known if item.name.startswith(SPLIT)]
    return [row for item in split for row in skinny_rows(item, plain, arguments.pairs)]


def _twins(known: list[Any], build: Path, arguments: argparse.Namespace) -> list[Any]:
    from benchmarks.measure.timing import twin_row

    others = [item for item in known if item.name not in PLAIN and SPLIT not in item.name]
    return [row for item in others for row in twin_row(item, arguments.pairs)]


def _streaming(known: list[Any], build: Path, arguments: argparse.Namespace) -> list[Any]:
    from benchmarks.measure.timing import stream_row

    streams = [item for item in known if item.reference.unit == "TB/s"]
    return [row for item in streams for row in stream_row(item, arguments.pairs)]


def _sanitizer(known: list[Any], build: Path, arguments: argparse.Namespace) -> list[Any]:
    from benchmarks.measure.sanitizer import sanitize

    return [row for item in known for row in sanitize(item)]


_PARTS: dict[str, Callable[[list[Any], Path, argparse.Namespace], list[Any]]] = {
    "correctness": _correctness,
    "repeat": _repeat,
    "graph": _graph,
    "overhead": _overhead,
    "gemm": _gemm,
    "skinny": _skinny,
    "twins": _twins,
    "streaming": _streaming,
    "sanitizer": _sanitizer,
}


def _write(path: str, results: dict[str, Any]) -> None:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _wrong(results: dict[str, Any]) -> bool:
    rows = [row for part in results["parts"].values() for row in part["rows"]]
    verdicts = [row["verdict"] for row in rows if "verdict" in row]
    # An exception is named, with its evidence, in sanitizer.py.
    return any(not verdict.startswith(("ok", "not ", "exception")) for verdict in verdicts)


if __name__ == "__main__":
    sys.exit(main())
