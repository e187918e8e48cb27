"""Output that goes to a file is the same whatever terminal we were started in."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import pytest

from pipelink_rules.cli import COMMANDS, main
from pipelink_rules.diagnostics.text_table import UNBOUNDED, output_width
from pipelink_rules.report.summary_table import render_table

PACKAGE = Path(__file__).resolve().parents[3] / "pipelink_rules"
ROW = {"megakernel": "m" * 30, "stages": ", ".join(f"load.block{n} 4" for n in range(20))}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_terminal_width_has_one_source() -> None:
    """A second place would forget that its output may be a file."""
    pattern = re.compile(r"get_terminal_size|COLUMNS[\"']")
    places = [p.name for p in sorted(PACKAGE.rglob("*.py")) if pattern.search(p.read_text())]
    assert places == ["text_table.py"]


@pytest.mark.parametrize("columns", ["30", "80", "400"])
def test_a_file_has_no_width(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert output_width() == UNBOUNDED and output_width(100) == 100
    (row,) = (line for line in render_table([ROW]).splitlines() if "load.block0" in line)
    assert "load.block19 4" in row


def test_a_terminal_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert output_width() == 120
    assert max(map(len, render_table([ROW]).splitlines())) <= 120


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_the_same_in_every_file(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = set()
    for columns in ("30", "80", "400"):
        monkeypatch.setenv("COLUMNS", columns)
        main([*([command] if command else []), "--help"])
        texts.add(capsys.readouterr().out)
    assert len(texts) == 1 and "usage: pipelink" in texts.pop()
