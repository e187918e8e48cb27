"""The table at the end of a build: what the report makes of it, or the plain numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path


def summary_text(build: str, names: Sequence[tuple[str, str]]) -> str:
    """names: (target, megakernel).  "" where nothing was built."""
    folders = [(arch, name, Path(build, arch, "megakernels", name)) for arch, name in names]
    folders = [item for item in folders if (item[2] / f"{item[1]}.manifest.json").is_file()]
    if not folders:
        return ""
    times = {(arch, name): link_seconds(build, arch, name) for arch, name, _ in folders}
    try:
        from pipelink_rules.report.table import table_of_folders
    except ImportError:
        rows = [("megakernel", "target", "shared bytes")]
        for arch, name, folder in folders:
            manifest = json.loads((folder / f"{name}.manifest.json").read_text(encoding="utf-8"))
            rows.append((name, arch, str(manifest["shared_bytes"])))
        return "".join(f"{a:<36} {b:<9} {c:>12}\n" for a, b, c in rows)
    return str(table_of_folders([(str(f), a, n, times[a, n]) for a, n, f in folders]))


def times_file(build: str, arch: str, name: str) -> Path:
    """Seconds of the last link; no output of the build, because they differ from run to run."""
    return Path(build, ".times", arch, f"{name}.json")


def link_seconds(build: str, arch: str, name: str) -> float | None:
    """Seconds of the last link on this machine; None where it came from the cache."""
    try:
        data = json.loads(times_file(build, arch, name).read_text(encoding="utf-8"))
        return float(data["link_seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
