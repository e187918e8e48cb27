"""Run every megakernel under the instrumented runtimes: launches, recordings, traces, one hang.

    python -m benchmarks.validation.instrumented_launches --link [--only gemm]     # no GPU
    python -m benchmarks.validation.instrumented_launches [--launches 1000] [--only gemm]
                                                          [--seconds 120] [--out FILE]

The first command needs `scons arch=sm_90a` before it and links to build/proof; the second needs
torch, a GPU and these links.  It launches without and with delays, compares every bit, compares one
recorded launch with the contracts, runs compute-sanitizer and traces two megakernels.  Writes the
section `launches` of benchmarks/results/validation/h200.json after every megakernel,
build/trace/<name>.trace.json and build/record/<name>.record.json.  Exit status 1 if a result is
wrong.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.validation.result_files import (
    BUILD,
    PLAN,
    PROOF,
    RESULTS,
    keep,
    manifests,
    open_section,
    put,
)

RUNTIMES = ("jitter", "trace", "record")
FORCED = PROOF / "hang" / "gemm"
TRACED = {"M": 4096, "N": 4096, "K": 4096, "R": 8192}  # a GEMM that fills the card
SMALL = {"M": 1000, "N": 1024, "K": 1024, "R": 1000}  # ragged
REPEATED = {"M": 3000, "N": 3064, "K": 520, "R": 4003}  # ragged, several work tiles for every CTA
WITH_TRACE = ("gemm", "rms_norm")
SECONDS = 90  # for the launches of one megakernel


def main() -> int:
    """Link, or run what was linked."""
    arguments = _arguments()
    if arguments.link:
        return link_all([name for name in arguments.only.split(",") if name])
    import correctness  # noqa: F401  what children need is imported once
    import torch  # noqa: F401

    import pipelink_rules.launch.compare_recording
    import pipelink_rules.report.stalls  # noqa: F401
    from benchmarks.validation.isolated_process import in_child

    section = open_section(arguments.out, "launches")
    if section is None:
        return 1
    end = time.monotonic() + arguments.seconds
    wrong = 0
    for name in manifests("release"):
        if arguments.only and name not in arguments.only.split(","):
            continue
        if time.monotonic() > end:
            print(f"{name}: left out, {arguments.seconds} s are over")
            continue
        row: dict[str, Any] = {"megakernel": name}
        row |= in_child(launched, name, arguments.launches, seconds=SECONDS)
        row |= in_child(recorded, name, seconds=SECONDS)
        row["sanitizer"] = {} if arguments.no_sanitizer else sanitized(name)
        row["verdict"] = verdict_of(row)
        wrong += row["verdict"] != "ok"
        section.row(row)
        print(f"{name}: {row['verdict']}: {row}", flush=True)
        if name in WITH_TRACE:
            print(in_child(traced, name, seconds=SECONDS).get("text", "no trace"), flush=True)
    if not arguments.only and FORCED.is_dir():
        seen = in_child(hang, seconds=SECONDS)
        print(seen.get("text", seen), flush=True)
        wrong += "hangs" not in seen.get("text", "")
    print("all right" if not wrong else f"{wrong} wrong")
    return 1 if wrong else 0


def verdict_of(row: dict[str, Any]) -> str:
    """Return `ok`, or everything that is wrong."""
    found = [row["problem"]] if "problem" in row else []
    for runtime in ("release", "jitter"):
        seen = row.get(runtime, {})
        if seen.get("differing"):
            found.append(f"{seen['differing']} of {seen['launches']} launches differ, {runtime}")
        if seen.get("wrong"):
            found.append(f"{seen['wrong']} elements are wrong, {runtime}")
    if row.get("recorded", "as in the contracts") != "as in the contracts":
        found.append(row["recorded"])
    for tool, verdict in row.get("sanitizer", {}).items():
        if not verdict.startswith(("ok", "not ", "exception")):
            found.append(f"{tool}: {verdict}")
    return "; ".join(found) or "ok"


def launched(name: str, launches: int) -> dict[str, Any]:
    """Launch with `release`, and with `jitter` under a new seed every 20 launches.

    The last result is compared with float64, every result bit by bit with the first."""
    import torch

    from benchmarks.measure.benchmark_kernels import widths
    from benchmarks.measure.correctness import RELATIVE
    from benchmarks.measure.references import reference_of
    from benchmarks.validation.run_suspect import bits_of

    torch.cuda.init()
    found: dict[str, Any] = {}
    first = None
    for runtime in ("release", "jitter"):
        kernel = kernel_of(runtime, name)
        reference = reference_of(name, widths(kernel.manifest))
        inputs, arrays = arrays_of(kernel, repeated_sizes(reference))
        (output,) = arrays.values()
        bits = bits_of(output)
        differing = torch.zeros((), dtype=torch.int64, device="cuda")
        start = time.monotonic()
        for number in range(launches):
            if runtime == "jitter" and number % 20 == 0:
                kernel.seed(number, cycles=(256, 2048, 16384)[number // 20 % 3])
            output.fill_(float("nan"))
            kernel(**inputs, **arrays)
            first = bits.clone() if first is None else first
            differing += (bits != first).any()
        kernel.synchronize()
        seen = {"launches": launches, "differing": int(differing)}
        if reference is not None:
            wide = {k: v.double() if hasattr(v, "double") else v for k, v in inputs.items()}
            exact = reference.compute(wide)
            error = (output.double() - exact).abs().nan_to_num(1e9)
            seen["wrong"] = int((error > RELATIVE * exact.abs() + reference.absolute).sum())
        found[runtime] = {**seen, "seconds": round(time.monotonic() - start, 1)}
    return found


def repeated_sizes(reference: Any) -> dict[str, int]:
    """Return the sizes of the launches: those of the reference if its shape differs."""
    if reference is not None and reference.repeated.get("K", 0) > REPEATED["K"]:
        return dict(reference.repeated)
    return REPEATED


def recorded(name: str) -> dict[str, Any]:
    """Compare one recorded launch with the contracts."""
    from pipelink_rules.launch.compare_recording import agrees, compare, report

    kernel = kernel_of("record", name)
    inputs, arrays = arrays_of(kernel, SMALL)
    recording = kernel.record(**inputs, **arrays, file=BUILD / "record" / f"{name}.record.json")
    results = compare(recording)
    good = agrees(results) and not recording.problem
    return {"recorded": "as in the contracts" if good else report(recording, results)}


def sanitized(name: str) -> dict[str, str]:
    """Return the report of each tool of compute-sanitizer."""
    from benchmarks.measure.benchmark_kernels import Subject
    from benchmarks.measure.sanitizer import sanitize

    path = manifests("release")[name]
    rows = sanitize(Subject(path.parent, kernel_of("release", name), None))
    return {row["tool"]: row["verdict"] for row in rows}


def traced(name: str) -> dict[str, Any]:
    """Write a trace and its summary."""
    from pipelink_rules.report.stalls import stall_report

    kernel = kernel_of("trace", name)
    inputs, arrays = arrays_of(kernel, TRACED)
    recording = kernel.trace(**inputs, **arrays, file=BUILD / "trace" / f"{name}.trace.json")
    return {"text": stall_report(recording)}


def hang() -> dict[str, Any]:
    """Record the launch of a megakernel whose ring has one stage too few, until it hangs."""
    from pipelink_rules.launch import load
    from pipelink_rules.launch.compare_recording import compare, report

    kernel = load(FORCED / "gemm.manifest.json", watchdog_cycles=200_000_000)
    inputs, arrays = arrays_of(kernel, SMALL)
    recording = kernel.record(**inputs, **arrays, file=BUILD / "record" / "forced.record.json")
    return {"text": report(recording, compare(recording))}


def kernel_of(runtime: str, name: str) -> Any:
    """Load one link."""
    from pipelink_rules.launch import load

    return load(manifests(runtime)[name])


def arrays_of(kernel: Any, sizes: dict[str, int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return inputs and outputs of a call."""
    from benchmarks.measure.benchmark_kernels import make_inputs, make_outputs, sizes_of

    rounded = sizes_of(kernel.manifest, sizes)
    inputs = make_inputs(kernel.manifest, rounded, {}, seed=5)
    outputs = make_outputs(kernel.manifest, rounded)
    return inputs, {name: output.array for name, output in outputs.items()}


def link_all(only: list[str]) -> int:
    """Link every megakernel with every instrumented runtime, and the one that hangs."""
    from benchmarks.measure.harness import toolkit_of
    from pipelink_rules.cli import main as pipelink

    put(PLAN, "toolkit", toolkit_of(BUILD))
    for folder in sorted((BUILD / "sm_90a" / "megakernels").glob("*")):
        name = folder.name
        if only and name not in only:
            continue
        keep(folder, name, PROOF / "release" / name)
        shutil.copyfile(folder / f"{name}.glue.cu", PROOF / "release" / name / f"{name}.glue.cu")
        for runtime in RUNTIMES:
            out = BUILD / runtime / name
            if pipelink(["link", str(folder), "-o", str(out), "--runtime", runtime]):
                return 1
            keep(out, name, PROOF / runtime / name)
    return 0 if only else link_forced()


def link_forced() -> int:
    """Link gemm with one stage and `record`; its mainloop releases one item late (PL0401).

    Every component keeps its contract, and together they hang: a case of refused_on_gpu.yaml.
    """
    from benchmarks.validation.refused_cases import cases, declaration_of, files_of
    from benchmarks.validation.repository_copy import Copy, sconscript_of

    case = next(item for item in cases() if item.name == "one_stage_and_a_lag")
    declaration = declaration_of(case, allowed=True)
    copy = Copy(BUILD / "proof.copy")
    files = {**files_of(case), "megakernels/gemm/SConscript": sconscript_of(declaration)}
    with copy.edited(files):
        keep(copy.build("gemm", "record"), "gemm", FORCED)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--link", action="store_true", help="link everything (needs no GPU)")
    parser.add_argument("--launches", type=int, default=1000, help="of each megakernel and runtime")
    parser.add_argument("--only", default="", help="megakernels, separated by commas")
    parser.add_argument("--seconds", type=float, default=120, help="start nothing new after that")
    parser.add_argument("--no-sanitizer", action="store_true", help="without compute-sanitizer")
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
