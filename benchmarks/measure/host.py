"""How long does the linker itself take here?  Check, placement, audit, swap, null build.

    python -m benchmarks.measure.host [--skip-builds | --audit-only]

No GPU.  Check, placement and the audit of objects are timed in this process, after the imports;
swap and null build are whole `scons` commands, by the wall clock.  Writes
benchmarks/results/host.json; with --audit-only the other rows stay as they are.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.measure.harness import without_output
from benchmarks.paths import RESULTS, ROOT

SWAPPED = "gemm_bias_gelu"  # its gelu becomes gelu_tanh and back


def main() -> int:
    """Measure and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--times", type=int, default=9, help="repetitions of each")
    parser.add_argument("--skip-builds", action="store_true", help="check and placement only")
    parser.add_argument("--audit-only", action="store_true", help="of the objects of a build")
    parser.add_argument("--out", default=str(RESULTS / "host.json"))
    arguments = parser.parse_args()
    if arguments.audit_only:
        results = json.loads(Path(arguments.out).read_text(encoding="utf-8"))
        kept = [row for row in results["parts"]["host"]["rows"] if row["what"][:5] != "audit"]
        results["parts"]["host"]["rows"] = kept + audit_rows(arguments)
    else:
        rows = [*check_rows(arguments), *place_rows(arguments), *audit_rows(arguments)]
        if not arguments.skip_builds:
            rows += [null_row(arguments), *swap_rows(arguments)]
        results = {"schema": 1, **host(["python", "-m", "benchmarks.measure.host", *sys.argv[1:]])}
        results["parts"] = {"host": {"rows": rows}}
    Path(arguments.out).parent.mkdir(parents=True, exist_ok=True)
    Path(arguments.out).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    from benchmarks.measure.tables import summary_text

    print(summary_text(results))
    return 0


def programs(arguments: argparse.Namespace) -> list[Any]:
    """Return the programs of a finished build."""
    from pipelink_rules.files.codec import read_json
    from pipelink_rules.model.program import Program

    folder = Path(arguments.build) / arguments.arch / "megakernels"
    found = [read_json(file, Program) for file in sorted(folder.glob("*/*.program.json"))]
    if not found:
        sys.exit(f"nothing is built in {folder}: run scons first")
    return found


def check_rows(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Time the slowest check of all programs and the median one, and their protocol part."""
    from pipelink_rules.check.check import check
    from pipelink_rules.check.program_index import ProgramIndex
    from pipelink_rules.check.protocol.protocol_checks import check_protocol
    from pipelink_rules.model.target import TARGETS

    found = programs(arguments)
    times = {
        item.name: _median(lambda item=item: check(item, TARGETS[item.target]), arguments.times)
        for item in found
    }
    protocol = {
        item.name: _median(
            lambda item=item: list(check_protocol(ProgramIndex(item, TARGETS[item.target]))),
            arguments.times,
        )
        for item in found
    }
    return [
        *_slowest("check", times, 50, "all checks of one program, in process"),
        *_slowest("protocol", protocol, 10, "the part of it that judges order and liveness"),
    ]


def place_rows(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Time placement with Z3 and verification, without the import of the solver."""
    from pipelink_rules.place.place import place
    from pipelink_rules.place.problem import placement_problem

    found = programs(arguments)
    place(placement_problem(found[0]))
    times = {
        item.name: _median(lambda item=item: place(placement_problem(item)), arguments.times)
        for item in found
    }
    return _slowest("placement", times, 50, "one joint problem, after import")


def audit_rows(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Time the audit of every role of every object of a build."""
    from pipelink_rules.audit.audit_component import audit_component
    from pipelink_rules.contract.sidecar import load_sidecar
    from pipelink_rules.toolkit.ptx import read_ptx

    times: dict[str, float] = {}
    folder = Path(arguments.build) / arguments.arch / "variants"
    for sidecar in sorted(folder.glob("*/*.contract.yaml")):
        variant, _ = load_sidecar(sidecar)
        stem = variant.contract.component
        module = read_ptx(sidecar.with_name(f"{stem}.shadow.ptx").read_text(encoding="utf-8"))
        for role in variant.contract.roles:
            alone = dataclasses.replace(
                variant, contract=dataclasses.replace(variant.contract, roles=(role,))
            )
            took = _median(
                lambda module=module, alone=alone: audit_component(module, alone),
                arguments.times,
                time.process_time,
            )
            name = f"{stem}.{role.name}"
            times[name] = max(took, times.get(name, 0))
    day = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    rows = _slowest("audit", times, 50, f"one role of an object, processor time, {day}")
    rows += [
        _row(f"audit, {name}", times[name], 50, "its slowest variant") for name in sorted(times)
    ]
    return rows


def null_row(arguments: argparse.Namespace) -> dict[str, Any]:
    """Time `scons` if nothing has to be built."""
    _scons(ROOT, [])
    took = _median(lambda: _scons(ROOT, []), max(3, arguments.times // 2))
    return _row("null build, all megakernels", took, 1000, "scons, wall clock")


def swap_rows(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Time the swap of an epilogue in a copy: linked only, back, compiled and linked."""
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder) / "copy"
        for name in _tracked():
            target = top / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
        script = top / "megakernels" / SWAPPED / "SConscript"
        before = script.read_text(encoding="utf-8")
        with_tanh, with_relu = (
            before.replace('//components/epilogue:gelu"', f'//components/epilogue:{name}"')
            for name in ("gelu_tanh", "relu")
        )
        if before == with_tanh:
            sys.exit(f"{script} has no gelu to swap")
        other = top / "megakernels" / f"{SWAPPED}_other" / "SConscript"  # compiles gelu_tanh
        other.parent.mkdir()
        other.write_text(with_tanh.replace(f'"{SWAPPED}"', f'"{SWAPPED}_other"'), encoding="utf-8")
        goal = [f"megakernels/{SWAPPED}"]
        _scons(top, [*goal, f"megakernels/{SWAPPED}_other"])
        rows = []
        for name, text, how in (
            ("swap of an epilogue, object there", with_tanh, "scons: one link"),
            ("swap of an epilogue, back again", before, "scons: nothing compiled or linked"),
            ("swap of an epilogue, new object", with_relu, "scons: one compile, probe, one link"),
        ):
            script.write_text(text, encoding="utf-8")
            start = time.perf_counter()
            _scons(top, goal)
            rows.append(_row(name, 1000 * (time.perf_counter() - start), 1500, how))
        null = _median(lambda: _scons(top, goal), 3)
    return [*rows, _row("null build, one megakernel", null, 1000, "scons megakernels/NAME")]


def host(command: list[str]) -> dict[str, Any]:
    """Return date, processor and toolkit."""
    import platform

    from benchmarks.measure.harness import toolkit_of

    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = lines[0].partition(":")[2].strip() if lines else cpu
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "host": f"{os.cpu_count()} cores, {cpu}",
        "toolkit": toolkit_of(Path("build")),
        "command": " ".join(without_output(command)),
    }


def _tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in done.stdout.splitlines() if (ROOT / name).is_file()]


def _scons(top: Path, goals: list[str]) -> None:
    command = [sys.executable, "-m", "SCons", "-s", *goals]
    environment = {**os.environ, "PYTHONPATH": str(top)}
    done = subprocess.run(
        command, cwd=top, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _median(
    call: Callable[[], object], times: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Format milliseconds."""
    found = []
    for _ in range(times):
        start = clock()
        call()
        found.append(1000 * (clock() - start))
    return statistics.median(found)


def _slowest(what: str, times: dict[str, float], limit: float, how: str) -> list[dict[str, Any]]:
    worst = max(times, key=lambda name: times[name])
    middle = statistics.median(times.values())
    return [
        _row(f"{what}, slowest ({worst})", times[worst], limit, how),
        _row(f"{what}, median of {len(times)}", middle, limit, how),
    ]


def _row(what: str, median: float, limit: float, how: str) -> dict[str, Any]:
    return {"what": what, "median_ms": round(median, 2), "limit_ms": limit, "how": how}


if __name__ == "__main__":
    sys.exit(main())
