"""A finding that a declaration allows: the build goes through, and everything says so."""

from __future__ import annotations

import json

from builds import Project

REASON = "the reader of the stage is known to be slow"


def test_an_allowed_finding_marks_all_outputs(built: Project) -> None:
    built.edit("kernels/store.contract.yaml", "await store 0, release y lag 0", "release y lag 0")
    built.append("kernels/store.cu", "// fake: noawait\n")
    run = built.run("megakernels/scaled")
    assert run.status == 2 and "error[PL0505]" in run.text
    built.edit(
        "megakernels/SConscript",
        "archs=",
        f'allow={{"PL0505": "{REASON}"}} if name == "scaled" else {{}},\n        archs=',
    )
    run = built.run("megakernels/scaled", "diag=sarif")
    assert run.status == 0 and "warning[PL0505], allowed" in run.text
    folder = built / "build/sm_90a/megakernels/scaled"
    manifest = json.loads((folder / "scaled.manifest.json").read_text())
    assert {item["code"] for item in manifest["allowed"]} == {"PL0505"}
    assert {item["reason"] for item in manifest["allowed"]} == {REASON}
    assert REASON in (folder / "scaled.map.txt").read_text()
    built.run("megakernels/scaled", "diag=sarif")  # nothing to do: the document still has it
    (log,) = json.loads((built / "build/diagnostics.sarif").read_text())["runs"]
    assert {item["properties"]["allowed"] for item in log["results"]} == {REASON}


def test_what_cannot_be_audited_links_only_with_a_reason(built: Project) -> None:
    built.append("kernels/scale.cu", "// fake: unaudited\n")
    run = built.run("megakernels/scaled")
    assert run.status == 2 and "warning[PL0932]" in run.text and "error[PL0932]" in run.text
    run = built.run("megakernels/scaled", "strict=1")
    assert run.status == 2 and "error[PL0932]" in run.text
    assert "a store to an address that depends on data" in run.text
    built.edit(
        "megakernels/SConscript",
        "archs=",
        f'allow={{"PL0932": "{REASON}"}} if name == "scaled" else {{}},\n        archs=',
    )
    assert built.run("megakernels/scaled").status == 0
    folder = built / "build/sm_90a/megakernels/scaled"
    text = (folder / "scaled.map.txt").read_text()
    assert REASON in text and "inconclusive" in text
    manifest = json.loads((folder / "scaled.manifest.json").read_text())
    assert {item["code"] for item in manifest["allowed"]} == {"PL0932"}
    assert "inconclusive" in {item["verdict"] for item in manifest["verdicts"]}


def test_raw_instructions_are_rejected(built: Project) -> None:
    built.append("kernels/scale.cu", "// fake: raw\n")
    run = built.run("megakernels/scaled")
    assert run.status == 2 and "error[PL0935]" in run.text and "mbarrier.arrive" in run.text
