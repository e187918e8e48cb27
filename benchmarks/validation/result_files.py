"""Files of the runs on a GPU: what they launch and what they found.

`build/proof` has everything that a run needs: plan.json, and a folder of manifest and cubin for
each link.  `benchmarks/results/validation/h200.json` has a section for each kind of run; a script
writes its own section and keeps the others.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from benchmarks import paths
from benchmarks.paths import BUILD

VALIDATION = paths.RESULTS / "validation"
PROOF = BUILD / "proof"
PLAN = PROOF / "plan.json"
RESULTS = VALIDATION / "h200.json"


def keep(folder: Path, name: str, target: Path) -> None:
    """Copy manifest and cubin of one link, which is all that a launch needs."""
    target.mkdir(parents=True, exist_ok=True)
    for suffix in ("manifest.json", "cubin"):
        shutil.copyfile(folder / f"{name}.{suffix}", target / f"{name}.{suffix}")


def manifests(runtime: str) -> dict[str, Path]:
    """Return megakernel -> manifest with a runtime, for all that were copied."""
    found = sorted((PROOF / runtime).glob("*/*.manifest.json"))
    return {path.parent.name: path for path in found}


def read(path: Path) -> dict[str, Any]:
    """Return a JSON object; {} if there is no file."""
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def put(path: Path, section: str, content: Any) -> None:
    """Set one section of a file and keep the others."""
    whole = read(path)
    whole[section] = content
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(whole, indent=1, sort_keys=True) + "\n"
    path.write_text(text, encoding="utf-8")


class Section:
    """One section of the results, written after every row, so that no result is lost."""

    def __init__(self, path: Path, name: str):
        self._path, self._name = path, name
        self._rows: list[dict[str, Any]] = []
        self._head: dict[str, Any] = {}

    def head(self, **values: Any) -> None:
        """Set date, card and the like."""
        self._head.update(values)
        self._write()

    def row(self, row: dict[str, Any]) -> None:
        """Add one case."""
        self._rows.append(row)
        self._write()

    def _write(self) -> None:
        put(self._path, self._name, {**self._head, "rows": self._rows})


def open_section(path: Path, name: str) -> Section | None:
    """Return the section with its head; None, and the reason on stderr, if there is no GPU."""
    from benchmarks.validation.isolated_process import in_child

    head = in_child(machine_of, read(PLAN).get("toolkit", ""), seconds=90)
    if "problem" in head:
        print(f"no GPU here: {head['problem']}", file=sys.stderr)
        return None
    section = Section(path, name)
    section.head(**head)
    return section


def machine_of(toolkit: str) -> dict[str, Any]:
    """Return date, card, driver and command of a run; runs in a child process."""
    from benchmarks.measure.harness import machine

    found = machine(["python3", *sys.argv])
    known = ("date", "card", "sms", "driver", "driver_cuda", "torch", "pipelink", "command")
    return {**{name: found[name] for name in known}, "toolkit": toolkit}
