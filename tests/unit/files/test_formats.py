"""Every file that PipeLink writes for itself names its form and version; readers insist on both."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from recorded_gemm import example_trace
from shipped_declarations import megakernels, placement_of, program_of

from pipelink_rules.actions.component import ObjectRecord
from pipelink_rules.actions.link_actions import LinkTimes
from pipelink_rules.contract.sidecar import dump_interface, dump_sidecar, load_sidecar
from pipelink_rules.diagnostics.diagnostic import (
    CheckResult,
    Diagnostic,
    Label,
    PipelinkError,
)
from pipelink_rules.files.codec import FORMAT_VERSION, read_json, to_json, write_json
from pipelink_rules.model.linked_kernel import Audit, Manifest, TwinBuild, TwinReport
from pipelink_rules.model.placement import PlacementProblem
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import BuildRecord, WeakSymbol, WeakTable
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.program.spec import parse_declaration

PACKAGE = Path(__file__).parents[3] / "pipelink_rules"
NAME = "gemm"
BUILD = TwinBuild(640, 168, 0, 0, 0, "0" * 64)
WEAK = (WeakSymbol("_Z1fv", "func", "a" * 64),)


def manifest() -> Manifest:
    return Manifest(
        NAME, "sm_90a", NAME, f"{NAME}.cubin", "0" * 64, 128, 0, 1, (1, 1, 1), "sms", (), (), (),
        (), (), (9, 0), "release", True,
    )  # fmt: skip


def nouns() -> dict[str, Any]:
    """One of every noun that has a file, by the form of the file."""
    program = program_of(NAME)
    return {
        "spec": parse_declaration(**megakernels()[NAME]),
        "check": CheckResult((Diagnostic("PL0202", "x", (Label(Span("a.yaml", 1, 2), "y"),)),)),
        "interface": program.instances[0].variant,
        "object": ObjectRecord("13.5", "f" * 64, ("nvcc",), (("a.fatbin", "0" * 64),), WEAK, ()),
        "weak": WeakTable(WEAK),
        "program": program,
        "problem": placement_problem(program),
        "placement": placement_of(NAME),
        "audit": Audit(NAME, 168, 0, 0, 0, 0, 9, (), (40,), (), (), "0" * 64),
        "times": LinkTimes(1.5),
        "twin": TwinReport(NAME, BUILD, BUILD, BUILD, True, True),
        "manifest": manifest(),
        "recording": example_trace(),
    }


NOUNS = nouns()


def refusal(path: Path, kind: type) -> Diagnostic:
    with pytest.raises(PipelinkError) as caught:
        read_json(path, kind)
    (found,) = caught.value.diagnostics
    assert found.code == "PL0011" and found.suggestions and found.labels[0].span.file == str(path)
    return found


@pytest.mark.parametrize("form", NOUNS)
def test_a_file_says_its_form_and_is_read_back(form: str, tmp_path: Path) -> None:
    path = write_json(tmp_path / f"x.{form}.json", NOUNS[form])
    assert json.loads(path.read_text())["format"] == f"pipelink/{form}/{FORMAT_VERSION}"
    assert read_json(path, type(NOUNS[form])) == NOUNS[form]


@pytest.mark.parametrize("form", NOUNS)
@pytest.mark.parametrize("version", [1, FORMAT_VERSION + 1])
def test_a_file_of_another_version_is_refused(form: str, version: int, tmp_path: Path) -> None:
    path = write_json(tmp_path / f"x.{form}.json", NOUNS[form])
    text = path.read_text()
    path.write_text(text.replace(f"pipelink/{form}/{FORMAT_VERSION}", f"pipelink/{form}/{version}"))
    found = refusal(path, type(NOUNS[form]))
    assert f"version {version}" in found.message
    assert found.expected == f'"format": "pipelink/{form}/{FORMAT_VERSION}"'
    assert found.found == f'"format": "pipelink/{form}/{version}"'
    assert found.labels[0].span.line > 1


@pytest.mark.parametrize("form", NOUNS)
def test_a_file_without_a_format_is_refused(form: str, tmp_path: Path) -> None:
    """Version 1 wrote no format."""
    data = json.loads(to_json(NOUNS[form]))
    del data["format"]
    path = tmp_path / f"x.{form}.json"
    path.write_text(json.dumps(data))
    found = refusal(path, type(NOUNS[form]))
    assert "version 1" in found.message and found.found == "no `format`"


@pytest.mark.parametrize("form", NOUNS)
def test_a_file_of_another_form_is_refused(form: str, tmp_path: Path) -> None:
    other = "twin" if form != "twin" else "audit"
    path = write_json(tmp_path / f"x.{form}.json", NOUNS[other])
    assert f"it is a {other} file" in refusal(path, type(NOUNS[form])).message


@pytest.mark.parametrize(
    "value", ["", "pipelink", "pipelink/program/2/3", "pipelink/program/x", 2, None, ["a"], {}]
)
def test_a_format_that_is_none_is_refused(value: object, tmp_path: Path) -> None:
    path = tmp_path / "x.program.json"
    path.write_text(json.dumps({**json.loads(to_json(NOUNS["program"])), "format": value}))
    assert "no known format" in refusal(path, type(NOUNS["program"])).message


def test_a_plan_is_read_as_a_program(tmp_path: Path) -> None:
    path = write_json(tmp_path / "x.plan.json", NOUNS["program"], "plan")
    assert '"format": "pipelink/plan/2"' in path.read_text()
    assert read_json(path, type(NOUNS["program"])) == NOUNS["program"]


def test_sidecars_and_interfaces_say_their_form(tmp_path: Path) -> None:
    variant = NOUNS["interface"]
    path = tmp_path / "x.contract.yaml"
    path.write_text(dump_sidecar(replace(variant, digest="0" * 12), BuildRecord("13.5", "f" * 64)))
    assert "\nformat: pipelink/sidecar/2\n" in path.read_text()
    assert load_sidecar(path)[0].digest == "0" * 12
    assert json.loads(dump_interface(variant))["format"] == "pipelink/interface/2"


def test_every_form_is_here() -> None:
    """A noun with `FORMATS` that is missing here would not be tested."""
    declared: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "FORMATS":
                assert node.value is not None
                declared |= set(ast.literal_eval(node.value))
    assert declared == {*NOUNS, "plan"}
    assert isinstance(NOUNS["problem"], PlacementProblem)
