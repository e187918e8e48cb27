"""Findings as text and JSON: the whole text of small cases, and what a file must not do to it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelink_rules.diagnostics.catalogue import catalogue
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label, PipelinkError, error
from pipelink_rules.diagnostics.render import (
    EXIT_BUG,
    EXIT_CONTRACT,
    EXIT_ERROR,
    EXIT_OK,
    exit_code,
    render_json,
    render_one,
    render_text,
    unique,
)
from pipelink_rules.diagnostics.source_snippet import WIDEST, source_lines
from pipelink_rules.model.source_span import Span


def shown(tmp_path: Path, diagnostic: Diagnostic) -> str:
    return render_one(diagnostic, lines=source_lines(tmp_path)) + "\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "load.yaml").write_text(
        "one\nports:\n  ab: {tx_bytes: (TM + TN) * 128}\nuses: {box: [TK, TN // 2]}\n"
        + "\n" * 95
        + "line 100\n"
    )
    (tmp_path / "mma.yaml").write_text("item: {B: [TN, TK]}\n")
    return tmp_path


def test_everything_a_finding_can_say(files: Path) -> None:
    finding = Diagnostic(
        "PL0031",
        "bytes do not match on `load.ab -> mma.ab`",
        (
            Label(Span("load.yaml", 3, 18, 15), "expects 32768 bytes"),
            Label(Span("load.yaml", 4, 13, 13), "delivers 24576 bytes"),
            Label(Span("mma.yaml", 1, 11, 8), "reads 16384 bytes"),
        ),
        expected="32768 bytes",
        found="24576 bytes",
        at_run_time="`mma` would wait forever\nat k-block 0",
        notes=("TM=128 TN=128",),
        chain=("load  expects 32768", "mma   waits"),
        suggestions=("use box [TK, TN]", "or change tx_bytes"),
    )
    assert (
        shown(files, finding)
        == """\
error[PL0031]: bytes do not match on `load.ab -> mma.ab`
 --> load.yaml:3:18
  |
3 |   ab: {tx_bytes: (TM + TN) * 128}
  |                  ^^^^^^^^^^^^^^^ expects 32768 bytes
4 | uses: {box: [TK, TN // 2]}
  |             ------------- delivers 24576 bytes
 ::: mma.yaml:1:11
  |
1 | item: {B: [TN, TK]}
  |           -------- reads 16384 bytes
  |
  = expected: 32768 bytes
  = found: 24576 bytes
  = spec: parameters are known at compile time, symbols at launch, work fields per work tile
  = at run time: `mma` would wait forever
      at k-block 0
  = cycle:
      load  expects 32768
      mma   waits
  = note: TM=128 TN=128
  = help: use box [TK, TN]
  = help: or change tx_bytes
"""
    )


def test_two_places_in_one_line_and_a_gap(files: Path) -> None:
    finding = Diagnostic(
        "PL0008",
        "twice",
        (
            Label(Span("load.yaml", 100, 6, 3), "again"),
            Label(Span("load.yaml", 3, 3, 2), "first"),
            Label(Span("load.yaml", 3, 8, 8)),
        ),
    )
    assert (
        shown(files, finding)
        == """\
error[PL0008]: twice
   --> load.yaml:100:6
    |
  3 |   ab: {tx_bytes: (TM + TN) * 128}
    |        --------
    |   -- first
...
100 | line 100
    |      ^^^ again
"""
    )


def test_places_that_cannot_be_quoted(files: Path) -> None:
    finding = Diagnostic(
        "PL0008",
        "here",
        (
            Label(Span("load.yaml"), "the whole file"),
            Label(Span("gone.yaml", 3, 1), "was here"),
            Label(Span("mma.yaml", 9, 1), "past the end"),
        ),
        suggestions=("fix it",),
    )
    assert (
        shown(files, finding)
        == """\
error[PL0008]: here
 --> load.yaml
      the whole file
 ::: gone.yaml:3:1
      was here
 ::: mma.yaml:9:1
      past the end
  |
  = help: fix it
"""
    )


def test_warning_without_a_place() -> None:
    assert render_one(Diagnostic("PL0008", "odd", severity="warning")) == "warning[PL0008]: odd"


def test_summary_counts_each_subject_once(files: Path) -> None:
    findings = [
        Diagnostic("PL0031", "a", subject="x"),
        Diagnostic("PL0031", "a, seen from the other side", subject="x"),
        Diagnostic("PL0031", "b", subject="y"),
        Diagnostic("PL0032", "c"),
        Diagnostic("PL0032", "c"),
        Diagnostic("PL0033", "d", severity="warning"),
    ]
    text = render_text(findings, outcome="nothing was compiled")
    assert text.endswith(
        "error: 3 errors, 1 warning; nothing was compiled\n"
        "  for more information, run `pipelink explain PL0031 PL0032 PL0033`\n"
    )
    assert len(unique(findings)) == 4
    warning = render_text(findings[-1:], outcome="nothing was compiled")
    hint = "for more information, run `pipelink explain PL0033`"
    assert warning.endswith(f"warning: 1 warning\n  {hint}\n")
    assert render_text([]) == ""


def test_color_only_adds_escape_codes(files: Path) -> None:
    finding = Diagnostic(
        "PL0031", "no", (Label(Span("load.yaml", 3, 3, 2), "x"),), found="y", suggestions=("z",)
    )
    plain = render_text([finding], root=files)
    color = render_text([finding], root=files, color=True)
    assert "\033[" not in plain
    assert "\033[1;31merror[PL0031]\033[0m" in color
    assert re.sub(r"\033\[[0-9;]*m", "", color) == plain


def test_carets_are_under_what_they_mean(tmp_path: Path) -> None:
    line = '\tα: "漢字"  # e\u0301 x'
    (tmp_path / "u.yaml").write_text(line + "\n")
    start = line.index("x")
    text = shown(tmp_path, Diagnostic("PL0008", "m", (Label(Span("u.yaml", 1, start + 1, 1)),)))
    source, marks = text.split("\n")[3:5]
    # 4 for the tab, 4 for two wide characters, nothing for the combining accent
    assert source == '1 |     α: "漢字"  # e\u0301 x'
    assert marks.index("^") == len('1 |     α: "') + 4 + len('"  # e ')


def test_long_lines_are_cut_around_the_place(tmp_path: Path) -> None:
    line = "a" * 500 + "MARK" + "b" * 500
    (tmp_path / "long.yaml").write_text(line)
    text = shown(tmp_path, Diagnostic("PL0008", "m", (Label(Span("long.yaml", 1, 501, 4), "t"),)))
    source, marks = text.split("\n")[3:5]
    assert len(source) <= WIDEST + 8
    assert source.startswith("1 | …") and source.endswith("…")
    assert source[marks.index("^") : marks.index("^") + 4] == "MARK"
    assert marks.endswith("^^^^ t")


def test_a_file_cannot_steer_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "evil.yaml").write_bytes(b"a: \x1b[2J\x07 \xff\n")
    finding = Diagnostic(
        "PL0008",
        "message \x1b[31m",
        (Label(Span("evil.yaml", 1, 1, 3), "label \x1b"),),
        found="\x1b]0;x\x07",
    )
    assert "\x1b" not in shown(tmp_path, finding)
    assert "\x07" not in shown(tmp_path, finding)


@settings(max_examples=150)
@given(
    st.text(max_size=300), st.integers(0, 5), st.integers(0, 400), st.integers(0, 400), st.text()
)
def test_any_place_in_any_file_can_be_shown(
    text: str, line: int, column: int, length: int, label: str
) -> None:
    finding = Diagnostic("PL0008", label, (Label(Span("any", line, column, length), label),))
    shown = render_one(finding, lines=lambda file: re.split("\r\n|[\n\r\x85\u2028\u2029]", text))
    assert all(part.isprintable() for part in shown.split("\n"))


def test_json(files: Path) -> None:
    finding = Diagnostic(
        "PL0031",
        "no é",
        (Label(Span("a.yaml", 3, 4, 5), "t"), Label(Span("b.yaml"))),
        suggestions=("h",),
    )
    data = json.loads(render_json([finding, finding]))
    assert (data["schema"], data["errors"], data["warnings"], data["exit_code"]) == (
        "pipelink/diagnostics/2",
        1,
        0,
        3,
    )
    (item,) = data["diagnostics"]
    assert item == {
        "code": "PL0031",
        "name": "expression-name",
        "severity": "error",
        "allowed": "",
        "message": "no é",
        "subject": "",
        "labels": [
            {"file": "a.yaml", "line": 3, "column": 4, "length": 5, "text": "t", "primary": True},
            {"file": "b.yaml", "line": 0, "column": 0, "length": 1, "text": "", "primary": False},
        ],
        "expected": "",
        "found": "",
        "spec": catalogue()["PL0031"].spec,
        "at_run_time": "",
        "notes": [],
        "chain": [],
        "counterexample": [],
        "suggestions": ["h"],
    }


def test_exit_codes() -> None:
    contract, build, bug = (Diagnostic(code, "m") for code in ("PL0031", "PL0010", "PL9901"))
    warning = Diagnostic("PL0031", "m", severity="warning")
    assert exit_code([]) == exit_code([warning]) == EXIT_OK == 0
    assert exit_code([build]) == EXIT_ERROR == 1
    assert exit_code([build, contract, warning]) == EXIT_CONTRACT == 3
    assert exit_code([contract, bug]) == EXIT_BUG == 4
    assert exit_code([Diagnostic("PL0000", "not in the catalogue")]) == EXIT_BUG


def test_error_makes_the_exception_of_one_finding() -> None:
    problem = error("PL0031", "m", Span("a"), None, Label(Span("b"), "t"), suggestions=("h",))
    assert isinstance(problem, PipelinkError)
    (item,) = problem.diagnostics
    assert [label.span.file for label in item.labels] == ["a", "b"]
    assert item.suggestions == ("h",)
