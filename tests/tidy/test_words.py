"""The repository speaks of the project alone: no path of a machine, no private tool."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent


def test_no_absolute_path_of_a_machine() -> None:
    files = subprocess.run(
        ["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout.split()
    here = re.escape(str(REPOSITORY))  # wherever it was written, it was written somewhere
    pattern = re.compile(rf"(/home/|/root/|/Users/|/tmp/tmp)[a-z]|{here}\b")
    wrong = []
    for name in files:
        path = REPOSITORY / name
        if path.is_file() and path != Path(__file__):
            text = path.read_text(encoding="utf-8", errors="replace")
            wrong += [name] if pattern.search(text) else []
    assert not wrong
