"""A link that was made in spite of a finding says so wherever it is shown."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from link_fixtures import audit_of_demo, log_of, placement_of_demo, program_of_demo
from samples import AUDIT, PLACEMENT, PROGRAM

from pipelink_rules.actions.stage_actions import allowed_findings
from pipelink_rules.diagnostics.allow import OF_THE_LINK, apply_allowances, is_allowable
from pipelink_rules.diagnostics.diagnostic import CheckResult, Diagnostic, PipelinkError
from pipelink_rules.diagnostics.render import exit_code
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.glue.emit import emit_glue
from pipelink_rules.launch.signature import docstring_of
from pipelink_rules.link import audit_kernel as auditor
from pipelink_rules.model.linked_kernel import AllowedDiagnostics, Manifest
from pipelink_rules.model.program import MegakernelSpec
from pipelink_rules.report.diff import Link, diff_links
from pipelink_rules.report.manifest import manifest_of
from pipelink_rules.report.map import render_map
from pipelink_rules.report.summary_table import table_of_folders

REASON = "a spill of eight bytes outside the loop"
SPILLS = AllowedDiagnostics("PL0921", "`sample` has 8 bytes of stack", REASON)
ALLOWING = dataclasses.replace(PROGRAM.spec, allow=(("PL0921", REASON),))


def test_which_codes_can_be_forced() -> None:
    assert all(map(is_allowable, (*OF_THE_LINK, "PL0201", "PL0505")))
    others = ("PL0005", "PL0040", "PL0101", "PL0903", "PL0910", "PL0928", "PL1201", "PL9901")
    assert not any(map(is_allowable, (*others, "PL7777", "")))


def test_only_the_allowed_code_becomes_a_warning() -> None:
    found = apply_allowances([Diagnostic("PL0921", "m"), Diagnostic("PL0922", "m")], ALLOWING)
    assert [(x.code, x.severity, x.allowed) for x in found] == [
        ("PL0921", "warning", REASON),
        ("PL0922", "error", ""),
    ]
    assert exit_code(found[:1]) == 0


def test_a_specification_cannot_smuggle_codes_in() -> None:
    spec = dataclasses.replace(ALLOWING, allow=(("PL0101", REASON), ("PL9901", REASON)))
    found = apply_allowances([Diagnostic("PL0101", "m"), Diagnostic("PL9901", "m")], spec)
    assert [item.severity for item in found] == ["error", "error"]


def test_an_allowed_difference_of_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    program, placement, log = program_of_demo(), placement_of_demo(), log_of("")
    found = audit_of_demo(spill_loads=8)
    compared = tuple(auditor.compare(found, program, placement, log))
    monkeypatch.setattr(auditor, "inspect", lambda *_: (found, compared))
    with pytest.raises(PipelinkError, match="PL0921"):
        auditor.audit("x", program, placement, log, None)  # type: ignore[arg-type]
    spec = dataclasses.replace(program.spec, allow=(("PL0921", REASON),))
    allowing = dataclasses.replace(program, spec=spec)
    audited = auditor.audit("x", allowing, placement, log, None)  # type: ignore[arg-type]
    assert [(item.code, item.reason) for item in audited.allowed] == [("PL0921", REASON)]


def test_every_output_says_forced(tmp_path: Path) -> None:
    audit = dataclasses.replace(AUDIT, allowed=(SPILLS,))
    (tmp_path / "sample.cubin").write_bytes(b"code")
    manifest = manifest_of(PROGRAM, PLACEMENT, audit, tmp_path / "sample.cubin")
    assert manifest.allowed == (SPILLS,)
    write_json(tmp_path / "sample.manifest.json", manifest)
    assert read_json(tmp_path / "sample.manifest.json", Manifest).allowed == (SPILLS,)
    shown = (
        render_map(PROGRAM, PLACEMENT, audit),
        table_of_folders([(str(tmp_path), "sm_90a", "sample", None)], 200),
        docstring_of(manifest),
    )
    for text in shown:
        assert "PL0921" in text and "allowed" in text.lower() and REASON in text
    assert "sample (allowed errors)" in shown[1]


def test_what_the_check_allowed_is_carried_to_the_reports(tmp_path: Path) -> None:
    spec = dataclasses.replace(PROGRAM.spec, allow=(("PL0505", REASON),))
    allowing, checked = dataclasses.replace(PROGRAM, spec=spec), tmp_path / "sample.check.json"
    finding = Diagnostic("PL0505", "read late", severity="warning", counterexample=("1 load",))
    found = apply_allowances([finding, Diagnostic("PL0078", "other")], spec)
    write_json(checked, CheckResult(tuple(found)))
    (found,) = allowed_findings(allowing, PLACEMENT, checked)
    assert found == AllowedDiagnostics("PL0505", "read late", REASON)
    assert found.counterexample == ("1 load",)
    assert f"PL0505 allowed: read late\n    because: {REASON}" in render_map(
        allowing, PLACEMENT, AUDIT, (found,)
    )
    assert allowed_findings(PROGRAM, PLACEMENT, checked) == ()


def test_without_the_findings_a_program_is_checked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = dataclasses.replace(PROGRAM.spec, allow=(("PL0505", REASON),))
    allowing = dataclasses.replace(PROGRAM, spec=spec)
    monkeypatch.setattr(
        "pipelink_rules.check.check.check", lambda *_: (Diagnostic("PL0505", "read late"),)
    )
    (found,) = allowed_findings(allowing, PLACEMENT, tmp_path / "none.check.json")
    assert found == AllowedDiagnostics("PL0505", "read late", REASON)


def forced_link(*forced: AllowedDiagnostics) -> Link:
    return Link(PROGRAM, PLACEMENT, dataclasses.replace(AUDIT, allowed=forced))


def test_a_comparison_marks_what_is_forced() -> None:
    text = diff_links(forced_link(), forced_link(SPILLS))
    assert text.startswith("sample for sm_90a -> sample (allowed errors) for sm_90a\n")
    (row,) = (line for line in text.splitlines() if "PL0921" in line)
    assert row.strip().startswith(f"PL0921: {SPILLS.message}") and row.endswith(REASON)


def test_a_comparison_of_forced_links_without_difference() -> None:
    text = diff_links(forced_link(SPILLS), forced_link(SPILLS))
    assert text.startswith("sample (allowed errors) for sm_90a: no difference")
    assert f"PL0921 allowed: {SPILLS.message}\n  because: {REASON}" in text


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        (REASON, REASON),
        ("two\nlines", "two lines"),
        ("ends in a backslash \\", "ends in a backslash"),
        ("\x1b[2Jred\x00 \u2028 */", "[2Jred */"),
    ],
)
def test_the_glue_says_it_in_a_comment(reason: str, shown: str) -> None:
    program = dataclasses.replace(PROGRAM, spec=spec_that_allows(reason))
    before = emit_glue(PROGRAM, PLACEMENT).splitlines()
    after = emit_glue(program, PLACEMENT).splitlines()
    more = [line for line in after if line not in before]
    assert more[-1] == f"//   PL0921: {shown}" and all(line.startswith("//") for line in more)
    assert [line for line in after if not line.startswith("//")] == [
        line for line in before if not line.startswith("//")
    ]


def spec_that_allows(reason: str) -> MegakernelSpec:
    return dataclasses.replace(PROGRAM.spec, allow=(("PL0921", reason),))
