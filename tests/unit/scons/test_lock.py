"""One build at a time, and what a killed one leaves behind."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.scons.lock import BuildLock, Journal


def test_the_lock_says_who_holds_it(tmp_path: Path) -> None:
    first, second = BuildLock(tmp_path), BuildLock(tmp_path)
    first.acquire(wait=True, say=print)
    with pytest.raises(PipelinkError, match=r"PL1305.*is locked by another build") as caught:
        second.acquire(wait=False, say=print)
    assert re.match(r"pid [0-9]+ since", caught.value.diagnostics[0].found)
    first.release()
    second.acquire(wait=False, say=print)
    assert second.held and not first.held
    second.release()


def test_an_owner_file_without_a_lock_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / ".lock.owner").write_text('{"pid": 1, "command": "scons", "since": "00:00:00"}')
    lock = BuildLock(tmp_path)
    lock.acquire(wait=False, say=print)  # the process is gone, and its lock with it
    lock.release()


def test_files_of_a_killed_build_go(tmp_path: Path) -> None:
    folder = tmp_path / "build/x"
    folder.mkdir(parents=True)
    for name in ("a.fatbin", "kept.json", ".staged.77.cubin"):
        (folder / name).write_text("?")
    killed = Journal(tmp_path / "build", tmp_path)
    killed.begin(["build/x/a.fatbin", "build/x/never_written"])
    next_one = Journal(tmp_path / "build", tmp_path)
    assert next_one.recover() == ("build/x/a.fatbin",)
    assert sorted(path.name for path in folder.iterdir()) == ["kept.json"]
    assert next_one.recover() == ()


def test_a_build_that_ended_leaves_no_journal(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("good")
    journal = Journal(tmp_path / "build", tmp_path)
    journal.begin(["a"])
    journal.end()
    assert Journal(tmp_path / "build", tmp_path).recover() == ()
    assert (tmp_path / "a").read_text() == "good"
