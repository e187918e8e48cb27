"""Texts of others are quoted in bounded space and time, whatever they are made of."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pipelink_rules.diagnostics.diagnostic import LONGEST_LINE, Diagnostic, Label, one_line
from pipelink_rules.diagnostics.render import render_text
from pipelink_rules.model.source_span import Span


@pytest.mark.parametrize("text", ["a", "\n", "\u2028", "\U000e0001", "漢", "\ud800", "\t "])
@pytest.mark.parametrize("count", [1, LONGEST_LINE, LONGEST_LINE + 1, 100_000])
def test_a_message_is_one_short_line(text: str, count: int) -> None:
    line = one_line(text * count)
    assert line.isprintable()
    assert len(line) <= LONGEST_LINE


@pytest.mark.parametrize("character", ["a", "漢", "\u0301", "\t", "\x1b"])
def test_a_line_of_a_file_may_have_any_length(tmp_path: Path, character: str) -> None:
    file = tmp_path / "long.yaml"
    file.write_text(character * 50_000 + "here" + character * 50_000, encoding="utf-8")
    finding = Diagnostic("PL0005", "unknown", (Label(Span(str(file), 1, 50_001, 4), "here"),))
    began = time.process_time()
    text = render_text((finding,))
    assert time.process_time() - began < 1
    assert "^^^^" in text
    assert max(map(len, text.splitlines())) < 600
