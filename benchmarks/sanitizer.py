"""Does compute-sanitizer find anything?  Small shapes, without torch: its start would take long."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from measure import note
from subjects import Subject

TOOLS = ("memcheck", "synccheck")
_SMALL = {"M": 264, "N": 520, "K": 200, "R": 37}


def sanitize(subject: Subject, timeout: int = 120) -> list[dict[str, Any]]:
    """One row per tool; `not available` where the machine has none or refuses the device."""
    return [_run(subject, tool, timeout) for tool in TOOLS]


def _run(subject: Subject, tool: str, timeout: int) -> dict[str, Any]:
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
    top = Path(__file__).resolve().parents[1]
    try:
        done = subprocess.run(
            command, cwd=top, capture_output=True, text=True, timeout=timeout, check=False
        )
        text = done.stdout + done.stderr
        found = re.search(r"ERROR SUMMARY: (\d+) error", text)
        if found:
            verdict = "ok" if found[1] == "0" and done.returncode == 0 else f"{found[1]} errors"
        else:
            last = next((line for line in reversed(text.splitlines()) if line.strip()), "no output")
            verdict = f"not available: {last.strip()[:120]}"
    except subprocess.TimeoutExpired:
        verdict = f"not finished in {timeout} s"
    note(f"  {subject.name}, {tool}: {verdict}")
    return {**row, "sizes": words, "verdict": verdict}
