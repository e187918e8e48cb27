"""Every megakernel under the instrumented runtimes: jitter, trace, record, and a forced hang.

    python benchmarks/instrumented.py --link      # no GPU: links build/{jitter,trace,record,...}/*
    python benchmarks/instrumented.py [--launches 200] [--only gemm] [--seconds 60]

The second command needs torch, a GPU, what the first one linked, and `scons arch=sm_90a` before it.
Writes build/trace/<name>.trace.json and build/record/<name>.record.json; 1 where a result is wrong.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT)]

RUNTIMES = ("jitter", "trace", "record")
BUILD = ROOT / "build"
FORCED = BUILD / "forced" / "gemm"
TRACED = {"M": 4096, "N": 4096, "K": 4096, "R": 8192}  # a GEMM that fills the card
SMALL = {"M": 1000, "N": 1024, "K": 1024, "R": 1000}  # ragged


def main() -> int:
    """Links, or runs what was linked."""
    arguments = _arguments()
    if arguments.link:
        return link_all()
    import torch

    if not torch.cuda.is_available():
        print("there is no GPU here: torch.cuda.is_available() is False", file=sys.stderr)
        return 1
    if arguments.hang:
        return hang()
    torch.cuda.init()
    end = time.monotonic() + arguments.seconds
    wrong = 0
    for folder in sorted((BUILD / "sm_90a" / "megakernels").glob("*")):
        if arguments.only and folder.name not in arguments.only.split(","):
            continue
        if time.monotonic() > end:
            print(f"{folder.name}: left out, {arguments.seconds} s are over")
            continue
        wrong += not jittered(folder.name, arguments.launches)
        wrong += not recorded(folder.name)
        if folder.name in ("gemm", "rms_norm"):
            traced(folder.name)
    if not arguments.only and (FORCED / "gemm.manifest.json").is_file():
        wrong += not forced()
    print("all right" if not wrong else f"{wrong} wrong")
    return 1 if wrong else 0


def jittered(name: str, launches: int) -> bool:
    """Release once, then jitter with a new seed every 20 launches: every bit must be the same."""
    import torch

    release, late = kernel_of("sm_90a/megakernels", name), kernel_of("jitter", name)
    inputs, arrays = arrays_of(release, SMALL)
    release(**inputs, **arrays)
    (output,) = arrays.values()
    bits = output.view(torch.int16)
    wanted = bits.clone()
    differing = torch.zeros((), dtype=torch.int64, device="cuda")
    start = time.monotonic()
    for number in range(launches):
        if number % 20 == 0:
            late.seed(number, cycles=(256, 2048, 16384)[number // 20 % 3])
        output.fill_(float("nan"))
        late(**inputs, **arrays)
        differing += (bits != wanted).any()
    torch.cuda.synchronize()
    count = int(differing)
    seconds = time.monotonic() - start
    print(f"{name}: {launches} launches with jitter, {count} differ, {seconds:.1f} s", flush=True)
    return count == 0


def recorded(name: str) -> bool:
    """One launch against the contracts."""
    from pipelink_rules.launch.compare import agrees, compare, report

    kernel = kernel_of("record", name)
    inputs, arrays = arrays_of(kernel, SMALL)
    recording = kernel.record(**inputs, **arrays, file=BUILD / "record" / f"{name}.record.json")
    results = compare(recording)
    print(report(recording, results), flush=True)
    return agrees(results) and not recording.problem


def traced(name: str) -> None:
    """A trace and its summary."""
    from pipelink_rules.report.waits import waits_text

    kernel = kernel_of("trace", name)
    inputs, arrays = arrays_of(kernel, TRACED)
    recording = kernel.trace(**inputs, **arrays, file=BUILD / "trace" / f"{name}.trace.json")
    print(waits_text(recording), flush=True)


def forced() -> bool:
    """The forced link, in a process of its own: the trap loses the context."""
    done = subprocess.run(
        [sys.executable, __file__, "--hang"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    print(done.stdout + done.stderr[-2000:], flush=True)
    return "hangs" in done.stdout and "load" in done.stdout


def hang() -> int:
    """The launch of a megakernel whose ring waits for one arrival too many."""
    from pipelink_rules.launch import load
    from pipelink_rules.launch.compare import compare, report

    kernel = load(FORCED / "gemm.manifest.json", watchdog_cycles=200_000_000)
    inputs, arrays = arrays_of(kernel, SMALL)
    recording = kernel.record(**inputs, **arrays, file=BUILD / "record" / "forced.record.json")
    print(report(recording, compare(recording)), flush=True)
    return 0


def kernel_of(folder: str, name: str) -> Any:
    """The callable of one link."""
    from pipelink_rules.launch import load

    return load(BUILD / folder / name / f"{name}.manifest.json")


def arrays_of(kernel: Any, sizes: dict[str, int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Inputs and outputs of a call."""
    from subjects import make_inputs, make_outputs, sizes_of

    rounded = sizes_of(kernel.manifest, sizes)
    inputs = make_inputs(kernel.manifest, rounded, {}, seed=5)
    outputs = make_outputs(kernel.manifest, rounded)
    return inputs, {name: output.array for name, output in outputs.items()}


def link_all() -> int:
    """Every megakernel with every instrumented runtime, and the forced one."""
    from pipelink_rules.cli import main as pipelink

    for folder in sorted((BUILD / "sm_90a" / "megakernels").glob("*")):
        for runtime in RUNTIMES:
            out = BUILD / runtime / folder.name
            if pipelink(["link", str(folder), "-o", str(out), "--runtime", runtime]):
                return 1
    return link_forced()


def link_forced() -> int:
    """gemm with one stage where the mainloop releases one item late.

    Every component keeps its contract; together they hang.  The check refuses it (PL0401); a
    reason in the declaration lets it pass.  Built in a copy.
    """
    edits = {
        "components/gemm/tma_load_ab.contract.yaml": ("stages: {min: 2,", "stages: {min: 1,"),
        "megakernels/gemm/SConscript": (
            'archs=["sm_90a"],',
            'archs=["sm_90a"], stages={"load.ab": 1}, allow={"PL0401": "to see the hang"},',
        ),
    }
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        skipped = shutil.ignore_patterns("build", ".git", ".sconsign*", "__pycache__", ".*_cache")
        shutil.copytree(ROOT, copy, ignore=skipped, symlinks=True)
        for name, (old, new) in edits.items():
            text = (copy / name).read_text(encoding="utf-8")
            assert old in text, f"{name} has no {old!r}"
            (copy / name).write_text(text.replace(old, new), encoding="utf-8")
        words = ["-m", "SCons", "-Q", "arch=sm_90a", "runtime=record", "megakernels/gemm"]
        done = subprocess.run([sys.executable, *words], cwd=copy, check=False)
        if done.returncode == 0:
            FORCED.mkdir(parents=True, exist_ok=True)
            for suffix in ("manifest.json", "cubin"):
                built = copy / f"build/sm_90a/megakernels/gemm/gemm.{suffix}"
                shutil.copyfile(built, FORCED / built.name)
        return done.returncode


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--link", action="store_true", help="link everything (needs no GPU)")
    parser.add_argument("--launches", type=int, default=200, help="with jitter, each megakernel")
    parser.add_argument("--only", default="", help="megakernels, separated by commas")
    parser.add_argument("--seconds", type=float, default=60, help="start nothing new after that")
    parser.add_argument("--hang", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
