"""No file of the repository names a path of a machine."""

from __future__ import annotations

import re
from pathlib import Path

from repository_files import REPOSITORY, files, relative, text_of


def test_no_absolute_path_of_a_machine() -> None:
    here = re.escape(str(REPOSITORY))  # wherever it was written, it was written somewhere
    pattern = re.compile(rf"(/home/|/root/|/Users/|/tmp/tmp)[a-z]|{here}\b")
    assert not [
        relative(path)
        for path in files()
        if path != Path(__file__) and pattern.search(text_of(path))
    ]
