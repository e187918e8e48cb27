"""Run compute-sanitizer on small shapes, without torch, which takes long to start under it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from typing import Any

from benchmarks.measure.benchmark_kernels import Subject
from benchmarks.measure.harness import note
from benchmarks.paths import ROOT

TOOLS = ("memcheck", "synccheck", "racecheck")
_SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")
# Known false reports of a tool, with the evidence (docs/adr/0001): they are named as exceptions
# instead of errors, and nothing else is.
EXCEPTIONS = {
    ("racecheck", "Potential RAW hazard", "handover"): (
        "exception: one lane arrives for its warp after __syncwarp, which racecheck does not"
        " follow; 0 hazards with one arrival per lane"
    ),
}
_SMALL = {"M": 264, "N": 520, "K": 200, "R": 37}


def sanitize(subject: Subject, timeout: int = 120) -> list[dict[str, Any]]:
    """Return one row per tool; `not available` if the machine has none or rejects the device."""
    return [run_tool(subject, tool, timeout) for tool in TOOLS]


def run_tool(subject: Subject, tool: str, timeout: int) -> dict[str, Any]:
    """Return the report of one tool on one small launch."""
    program = shutil.which("compute-sanitizer")
    row: dict[str, Any] = {"megakernel": subject.name, "tool": tool}
    if program is None:
        return {**row, "verdict": "not available: no compute-sanitizer on this machine"}
    manifest = subject.kernel.manifest
    sizes = {name: _SMALL.get(name, 64) for name, *_ in manifest.symbols}
    words = [
        f"{name}={-(-size // 8) * 8 if name in 'NK' else size}" for name, size in sizes.items()
    ]
    command = [program, "--tool", tool, "--error-exitcode", "9", sys.executable]
    command += ["-m", "pipelink_rules.cli", "run"]
    command += [str(subject.folder / f"{subject.name}.manifest.json"), *words, "--times", "1"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False
        )
        text = done.stdout + done.stderr
        found = _SUMMARY.search(text)
        if found:
            count = found[1] or found[2]
            clean = count == "0" and done.returncode == 0
            verdict = "ok" if clean else _findings(subject, tool, count, text)
        else:
            last = next((line for line in reversed(text.splitlines()) if line.strip()), "no output")
            verdict = f"not available: {last.strip()[:120]}"
    except subprocess.TimeoutExpired:
        verdict = f"not finished in {timeout} s"
    note(f"  {subject.name}, {tool}: {verdict}")
    return {**row, "sizes": words, "verdict": verdict}


def _findings(subject: Subject, tool: str, count: str, text: str) -> str:
    """Return the number of reports and the text of the first, or the name of the exception."""
    lines = [line.strip("= ").strip() for line in text.splitlines() if line.startswith("=====")]
    errors = [line for line in lines if re.match(r"(Error|Warning|Potential|Race)", line)]
    glue = subject.folder / f"{subject.name}.glue.cu"
    for (name, words, code), reason in EXCEPTIONS.items():
        known = tool == name and all(words in line or "Race reported" in line for line in errors)
        if known and glue.is_file() and f"pipelink::{code}_" in glue.read_text(encoding="utf-8"):
            return reason
    return f"{count} findings: {errors[0][:160] if errors else ''}"
