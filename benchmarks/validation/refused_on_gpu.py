"""Link refused megakernels with allowed errors and launch them on a GPU.

    python -m benchmarks.validation.refused_on_gpu --link [--only NAME,...]    # no GPU
    python -m benchmarks.validation.refused_on_gpu [--only NAME,...] [--out FILE]

The cases are those of refused_on_gpu.yaml.  The first command links to build/proof/forced; the
second needs torch, a GPU and these links.  It launches under the runtime `watchdog`, and under
`jitter` if the first saw nothing.  Writes the section `forced` of
benchmarks/results/validation/h200.json after every case.
"""

from __future__ import annotations

import argparse
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
    open_section,
    put,
    read,
)

FORCED = PROOF / "forced"
OUT = BUILD / "proof.out"  # other output of the links
RUNTIMES = ("watchdog", "jitter")
LAUNCHES = {"watchdog": 30, "jitter": 60}
SECONDS = 25  # for a case with one runtime, including the start of the process


def main() -> int:
    """Link, or launch what was linked."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--link", action="store_true", help="link everything (needs no GPU)")
    parser.add_argument("--only", default="", help="cases, separated by commas")
    parser.add_argument("--limit", type=float, default=200, help="seconds; starts nothing after")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    only = [name for name in arguments.only.split(",") if name]
    return link_all(only) if arguments.link else run_all(only, arguments.out, arguments.limit)


def link_all(only: list[str]) -> int:
    """Link every case with both runtimes and write the plan."""
    from benchmarks.validation.refused_cases import cases
    from benchmarks.validation.repository_copy import Copy

    copy = Copy(BUILD / "proof.copy")
    rows = {} if not only else {row["name"]: row for row in read(PLAN).get("forced", [])}
    wrong = 0
    for case in cases():
        if only and case.name not in only:
            continue
        start = time.monotonic()
        row = link_case(case, copy)
        rows[case.name] = row
        wrong += "problem" in row
        problem = row.get("problem", "linked")
        print(f"{case.name}: {problem}, {time.monotonic() - start:.0f} s", flush=True)
        put(PLAN, "forced", [rows[item.name] for item in cases() if item.name in rows])
    return 1 if wrong else 0


def link_case(case: Any, copy: Any) -> dict[str, Any]:
    """Return the row of the plan: case, output of the build, difference in the machine code."""
    from benchmarks.validation.edit_artifacts import Later, faults_of
    from benchmarks.validation.refused_cases import declaration_of, files_of
    from benchmarks.validation.repository_copy import NotLinked, sconscript_of
    from pipelink_rules.diagnostics.diagnostic import PipelinkError
    from pipelink_rules.files.codec import read_json
    from pipelink_rules.model.linked_kernel import Manifest

    name = case.megakernel
    row: dict[str, Any] = {"name": case.name, "megakernel": name, "what": case.what}
    row |= {"codes": list(case.codes), "sizes": dict(case.sizes)}
    files = {} if case.inconclusive else files_of(case)
    if files or case.declaration:
        declaration = declaration_of(case, allowed=True)
        files[f"megakernels/{name}/SConscript"] = sconscript_of(declaration)
    with copy.edited(files):
        try:
            folder = copy.build(name, RUNTIMES[0])
            later = Later(case, folder, OUT / case.name, copy.path) if case.later else None
            if later and case.placement:
                row["faults"] = faults_of(folder / f"{name}.program.json", later.placement)
            for runtime in RUNTIMES:
                out = later.link(runtime) if later else copy.relink(name, runtime, OUT / runtime)
                keep(out, name, FORCED / case.name / runtime)
        except NotLinked as problem:
            return {**row, "problem": str(problem)}
        except PipelinkError as problem:
            said = "; ".join(f"{item.code}: {item.message}" for item in problem.diagnostics)
            return {**row, "problem": said}
    manifest = read_json(FORCED / case.name / "watchdog" / f"{name}.manifest.json", Manifest)
    row["forced"] = sorted({item.code for item in manifest.allowed})
    return row


def run_all(only: list[str], out: Path, limit: float) -> int:
    """Launch every linked case in a separate process; return 1 if one could not be run."""
    import correctness  # noqa: F401  what children need is imported once
    import torch  # noqa: F401

    import pipelink_rules.launch  # noqa: F401
    from benchmarks.validation.isolated_process import in_child
    from benchmarks.validation.run_suspect import observation, verdict_of

    plan = read(PLAN)
    section = open_section(out, "forced")
    if section is None:
        return 1
    end = time.monotonic() + limit
    missing = 0
    for row in plan.get("forced", []):
        if "problem" in row or (only and row["name"] not in only):
            continue
        seen: dict[str, Any] = {"problem": f"left out, {limit:g} s are over"}
        for runtime in RUNTIMES:
            if time.monotonic() > end:
                break
            path = FORCED / row["name"] / runtime / f"{row['megakernel']}.manifest.json"
            seen = try_child(in_child, path, row, LAUNCHES[runtime])
            if verdict_of(seen) not in ("right", "not run"):
                break
        if verdict_of(seen) == "right":
            seen["racecheck"] = racechecked(FORCED / row["name"] / RUNTIMES[0], row["megakernel"])
        verdict = verdict_of(seen)
        missing += verdict == "not run"
        print(f"{row['name']}: {verdict}: {observation(seen)}", flush=True)
        section.row({**row, "verdict": verdict, "observed": observation(seen), "seen": seen})
    return 1 if missing else 0


def try_child(in_child: Any, path: Path, row: dict[str, Any], launches: int) -> dict[str, Any]:
    """Launch in a separate process and return the observations."""
    from benchmarks.validation.run_suspect import tried

    seen = in_child(tried, path, row["megakernel"], row["sizes"], launches, seconds=SECONDS)
    seen.setdefault("runtime", path.parent.name)
    return seen  # type: ignore[no-any-return]


def racechecked(folder: Path, name: str) -> str:
    """Run compute-sanitizer on a case whose results were correct."""
    from benchmarks.measure.benchmark_kernels import Subject
    from benchmarks.measure.sanitizer import run_tool
    from pipelink_rules.launch import load

    kernel = load(folder / f"{name}.manifest.json")
    found: str = run_tool(Subject(folder, kernel, None), "racecheck", 60)["verdict"]
    return found


if __name__ == "__main__":
    sys.exit(main())
