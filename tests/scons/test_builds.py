"""Builds that fail, are killed, meet each other, or build nothing at all."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from builds import REPOSITORY, Project

CUBIN = "build/sm_90a/megakernels/scaled/scaled.cubin"


def test_a_failed_check_compiles_nothing(fresh: Project) -> None:
    fresh.edit("kernels/scale.contract.yaml", "arrivals: 4", "arrivals: 3")
    run = fresh.run("-k")
    assert run.status == 2 and "PL02" in run.text and "Traceback" not in run.text
    assert ("nvcc scale.cu" not in run.commands and not run.of("DeviceLink")) or run.of(
        "DeviceLink"
    ) == ["shifted"]


@pytest.mark.parametrize("step", ["compile", "place", "link"])
def test_killed_builds_leave_nothing_wrong(built: Project, tmp_path: Path, step: str) -> None:
    """kill -9: the next build equals a clean one, also where the sources went back meanwhile."""
    original = (built / "kernels/scale.cu").read_text()
    clean = built.digests(".cubin", ".json", ".yaml", ".glue.cu")
    changed = original.replace("body(scale)", "body(scale, twice)").replace("=48", "=72")
    (built / "kernels/scale.cu").write_text(changed)
    if step == "compile":
        built.append("kernels/scale.cu", "// fake: sleep=20\n")
    process = built.start("cache=0") if step != "place" else built.start("cache=0", "-j1")
    if step == "compile":
        built.wait_for("nvcc", "scale.cu")
    elif step == "link":
        (built.scratch / "nvlink.json").write_text('{"sleep": 20, "only": "scaled.glue"}')
        built.wait_for("nvlink", "scaled.glue.fatbin")
    else:
        for line in process.stdout or ():
            if line.startswith("Place"):
                break
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for call in built.calls():
        with contextlib.suppress(ProcessLookupError):  # a tool that outlived its build
            os.kill(call["pid"], signal.SIGKILL)
    (built.scratch / "nvlink.json").unlink(missing_ok=True)
    (built / "kernels/scale.cu").write_text(original)
    built.build()
    after = built.digests(".cubin", ".json", ".yaml", ".glue.cu")
    assert set(after) == set(clean)
    assert {
        n for n in clean if clean[n] != after[n] and n.endswith((".cubin", ".glue.cu"))
    } == set()
    assert not [path for path in (built / "build").rglob("*") if ".staged." in path.name]
    assert built.up_to_date()


def test_second_build_waits_and_names_the_first(built: Project) -> None:
    built.edit("kernels/scale.cu", "body(scale)", "body(scale, twice)")
    built.append("kernels/scale.cu", "// fake: sleep=2\n")
    first = built.start()
    built.wait_for("nvcc", "scale.cu")
    refused = built.copy_runner().run("wait=0")
    assert refused.status == 2 and "PL1305" in refused.text and f"pid {first.pid}" in refused.text
    second = built.copy_runner().run()
    assert second.status == 0, second.text
    assert "waiting for another build in" in second.text and f"pid {first.pid}" in second.text
    assert built.finish(first).status == 0
    assert not second.steps


def test_random_edits_end_where_a_clean_build_ends(built: Project, tmp_path: Path) -> None:
    """The oracle of every row above."""
    dice = random.Random(2)
    for _ in range(3):
        name = dice.choice(["rows", "load", "scale", "shift", "store"])
        built.append(f"kernels/{name}.cu", f"int edit_{dice.randrange(99)};\n")
        if dice.random() < 0.5:
            built.edit("kernels/deep/table.cuh", "constexpr", "constexpr /* */")
        built.build()
    clean = built.copy(tmp_path / "clean", built=False)
    clean.build()
    suffixes = (
        ".cubin",
        ".glue.cu",
        ".placement.json",
        ".manifest.json",
        ".map.txt",
        ".html",
        ".audit.json",
    )
    assert built.digests(*suffixes) == clean.digests(*suffixes)


def test_help_needs_no_toolkit_and_leaves_nothing(fresh: Project, tmp_path: Path) -> None:
    fresh.toolkit = tmp_path / "nowhere"
    run = fresh.build("-h")
    assert "megakernels/scaled" in run.text and "y = scale(x)" in run.text
    assert not (fresh / "build").exists()


def test_no_toolkit_is_a_finding(fresh: Project, tmp_path: Path) -> None:
    fresh.toolkit = tmp_path / "nowhere"
    run = fresh.run()
    assert run.status == 2 and "PL1201" in run.text and "Traceback" not in run.text


def test_cleaning_removes_results_and_keeps_the_cache(built: Project) -> None:
    built.build("-c")
    assert not built.digests(".cubin", ".fatbin", ".json")
    run = built.build()
    assert not run.commands and CUBIN in run.retrieved


def test_compile_commands_name_every_source(built: Project) -> None:
    entries = json.loads((built / "compile_commands.json").read_text())
    files = {entry["file"]: entry["arguments"] for entry in entries}
    assert set(files) == {
        f"kernels/{name}.cu" for name in ("rows", "load", "scale", "shift", "store")
    }
    assert (
        "-D__CUDACC_RDC__" in files["kernels/scale.cu"]
        and "-Ikernels/deep" in files["kernels/scale.cu"]
    )


def test_all_declarations_are_reported_together(fresh: Project) -> None:
    fresh.append("kernels/SConscript", 'env.KernelComponent(name="rows", srcs=["rows.cu"])\n')
    fresh.edit("megakernels/SConscript", '"op.x": "load.x"', '"op.x": "lod.x"')
    run = fresh.run("diag=sarif")
    assert run.status == 2 and "PL1301" in run.text and "PL0044" in run.text
    assert "Traceback" not in run.text and not run.commands
    log = json.loads((fresh / "build/diagnostics.sarif").read_text())
    assert {item["ruleId"] for item in log["runs"][0]["results"]} == {"PL1301", "PL0044"}


def test_forgetting_the_last_line_is_said(fresh: Project) -> None:
    fresh.edit("SConstruct", "env.PipelinkFinish()", "")
    assert "PipelinkFinish" in fresh.run().text


def test_the_tool_of_the_checkout_is_a_shim() -> None:
    script = "import site_tools_pipelink as t; assert t.generate and t.exists(None)"
    path = REPOSITORY / "site_scons/site_tools/pipelink/__init__.py"
    loader = (
        "import importlib.util, sys;"
        f"s = importlib.util.spec_from_file_location('site_tools_pipelink', {str(path)!r});"
        "m = importlib.util.module_from_spec(s); sys.modules[s.name] = m; s.loader.exec_module(m);"
    )
    subprocess.run([sys.executable, "-c", loader + script], check=True, cwd="/")


@pytest.mark.parametrize("attribute", ["srcs", "hdrs", "contract"])
@pytest.mark.parametrize("path", ["../megakernels/SConscript", "/etc/passwd", "../../x.cu"])
def test_files_outside_of_the_package(fresh: Project, attribute: str, path: str) -> None:
    values = {"srcs": ["rows.cu"], "contract": "rows.contract.yaml", attribute: path}
    words = ", ".join(f"{key}={value!r}" for key, value in values.items())
    fresh.append("kernels/SConscript", f'env.KernelComponent(name="more", {words})\n')
    run = fresh.run()
    assert run.status == 2 and "PL1307" in run.text and "outside the label package" in run.text
    assert "Traceback" not in run.text and not run.commands
