"""The command line of the build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelink_rules.diagnostics.diagnostic import CheckResult, Diagnostic, PipelinkError
from pipelink_rules.files.codec import write_json
from pipelink_rules.scons.options import Options, help_text, read_options
from pipelink_rules.scons.session import write_document


def test_nothing_said_is_the_default() -> None:
    assert read_options({}) == Options()


def test_everything_said() -> None:
    words = {"arch": "sm_100a,sm_90a", "runtime": "watchdog", "linker": "nvjitlink", "twins": "yes"}
    assert read_options({**words, "cache": "/c", "wait": "0"}) == Options(
        ("sm_100a", "sm_90a"), "watchdog", "nvjitlink", True, "/c", False
    )


def test_no_cache() -> None:
    assert read_options({"cache": "0"}).cache is None


def test_all_invalid_values_are_reported_together() -> None:
    with pytest.raises(PipelinkError) as caught:
        read_options({"arch": "sm_90,sm_91", "twins": "maybe", "linkers": "nvlink"})
    assert [item.subject for item in caught.value.diagnostics] == [
        "linkers",
        "arch sm_90",
        "arch sm_91",
        "twins maybe",
    ]


def test_arguments_of_other_tools_pass() -> None:
    assert read_options({"prefix": "/usr", "debug": "1"}) == Options()


def test_help_names_options_and_megakernels() -> None:
    text = help_text({"gemm": "C = A B"})
    assert "megakernels/gemm" in text and "C = A B" in text and "runtime=release|watchdog" in text


def test_the_form_of_findings() -> None:
    assert read_options({"diag": "sarif"}).diag == "sarif"
    with pytest.raises(PipelinkError, match="PL1312"):
        read_options({"diag": "saarif"})


def test_findings_as_a_document(tmp_path: Path) -> None:
    old = Diagnostic("PL0505", "kept from the check", severity="warning")
    write_json(tmp_path / "m.check.json", CheckResult((old,)))
    kept = [str(tmp_path / name) for name in ("m.check.json", "none.check.json")]
    write_document(
        tmp_path / "diagnostics.sarif", "sarif", [old, Diagnostic("PL0401", "new")], kept
    )
    (run,) = json.loads((tmp_path / "diagnostics.sarif").read_text())["runs"]
    assert [item["ruleId"] for item in run["results"]] == ["PL0505", "PL0401"]
    write_document(tmp_path / "diagnostics.json", "json", [], kept)
    found = json.loads((tmp_path / "diagnostics.json").read_text())
    assert (found["errors"], found["warnings"]) == (0, 1)
