"""A link that is not its twin is refused, and leaves no report behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shipped_declarations import program_of

from pipelink_rules.actions.link_actions import build_twins
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.link import twin
from pipelink_rules.model.linked_kernel import TwinBuild, TwinReport

SAME = TwinBuild(100, 168, 0, 0, 0, "a" * 64)


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, other: TwinBuild) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    def build(
        name: str, units: Any, runtime: Any, glue: str, includes: Any, *rest: Any, **more: Any
    ):
        seen.update(name=name, units=units, includes=tuple(includes), flags=more["flags"])
        return None, None

    def compare(entry: str, *cubins: Any) -> TwinReport:
        same = other == SAME
        return TwinReport(entry, SAME, other, SAME, same, True, "" if same else "at 0x0040")

    monkeypatch.setattr(twin, "build_twins", build)
    monkeypatch.setattr(twin, "compare_twins", compare)
    write_json(folder / "gemm.plan.json", program_of("gemm"))
    units = [
        twin.TwinUnit(
            item.variant, f"variants/{item.variant.name}", (f"{item.name}.cu",), ("include",)
        )
        for item in program_of("gemm").instances
    ]
    stem, includes = str(folder / "gemm"), ["include", "variants"]
    build_twins(stem, units, ["release.cu"], includes, "nvlink", None)  # type: ignore[arg-type]
    return seen


def test_the_twin_has_the_units_of_the_link(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = run(monkeypatch, tmp_path, SAME)
    assert seen["name"] == "gemm"
    assert {u.folder for u in seen["units"]} == {
        f"variants/{i.variant.name}" for i in program_of("gemm").instances
    }
    assert "variants" in seen["includes"]
    assert read_json(tmp_path / "gemm.twin.json", TwinReport).lto_identical


def test_a_kernel_that_differs_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(PipelinkError) as caught:
        run(monkeypatch, tmp_path, TwinBuild(101, 168, 0, 0, 0, "b" * 64))
    (finding,) = caught.value.diagnostics
    assert finding.code == "PL0928"
    assert "at 0x0040" in finding.message
    assert not (tmp_path / "gemm.twin.json").exists()
