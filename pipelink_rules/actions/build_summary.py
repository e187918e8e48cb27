"""The table at the end of a build, and the seconds of the last links for it."""

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
    from pipelink_rules.report.summary_table import table_of_folders

    rows = [(str(folder), arch, name, times[arch, name]) for arch, name, folder in folders]
    return str(table_of_folders(rows))


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
