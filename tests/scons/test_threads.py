"""What went wrong elsewhere and must not go wrong here; each test names its thread."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from builds import REPOSITORY, Project

CUBIN = "build/sm_90a/megakernels/scaled/scaled.cubin"


def variant(project: Project, name: str) -> Path:
    """The folder of the one variant of a component."""
    (folder,) = (project / "build/sm_90a/variants").glob(f"{name}_*")
    return folder


def test_scons_2760_equal_bytes_under_another_name_are_another_input(built: Project) -> None:
    (built / "kernels/scale.cu").rename(built / "kernels/renamed.cu")
    built.edit("kernels/SConscript", '"scale.cu"', '"renamed.cu"')
    run = built.build()
    assert run.of("CudaCompile") == ["scale"] and run.commands["nvcc renamed.cu"] == 1


def test_scons_2760_another_component_with_equal_bytes_is_in_the_map(built: Project) -> None:
    for suffix in (".cu", ".contract.yaml"):
        text = (built / f"kernels/scale{suffix}").read_text()
        text = text.replace("component: scale", "component: other")
        (built / f"kernels/other{suffix}").write_text(text.replace("scale.contract", "other.contract"))
    built.append(
        "kernels/SConscript",
        'env.KernelComponent(name="other", srcs=["other.cu"], hdrs=["scale.cuh"], deps=[":tables"])\n',
    )
    built.edit("megakernels/SConscript", '("scaled", "scale")', '("scaled", "other")')
    run = built.build()
    assert run.of("DeviceLink") == ["scaled"]
    assert "//kernels:other" in (built / "build/sm_90a/megakernels/scaled/scaled.map.txt").read_text()


def test_scons_2701_a_source_saved_during_its_compile_is_not_kept(built: Project) -> None:
    source = built / "kernels/scale.cu"
    text = source.read_text()
    source.write_text(f"{text}// fake: edits={source}\n")
    run = built.run()
    assert run.status == 2 and "PL1304" in run.text and "Traceback" not in run.text
    assert not (variant(built, "scale") / "scale.fatbin").exists()
    source.write_text(text)  # what is asked for now was never made under another key
    again = built.build()
    assert not again.commands and built.up_to_date()


def test_scons_2606_an_interactive_build_has_no_cache(built: Project) -> None:
    refused = built.run("--interactive", f"cache={built.root}/cache")
    assert refused.status == 2 and "PL1306" in refused.text


def test_scons_1725_builds_that_share_an_empty_cache_do_not_meet(
    fresh: Project, tmp_path: Path
) -> None:
    """Also #3094, #3351, #4489, PR #3353, #3864, #4844: races of creating and filling it."""
    projects = [fresh.copy(tmp_path / f"user{number}") for number in range(3)]
    with ThreadPoolExecutor(3) as pool:
        runs = list(pool.map(lambda one: one.run(f"cache={tmp_path}/shared"), projects))
    assert [run.status for run in runs] == [0, 0, 0], [run.text for run in runs]
    assert not any("Traceback" in run.text for run in runs)
    assert len({one.digests(".cubin")[CUBIN] for one in projects}) == 1
    last = fresh.copy(tmp_path / "last").build(f"cache={tmp_path}/shared")
    # Every object is found, and whole.  Of which user it is, is chance: a mix may link anew.
    assert not [name for name in last.commands if name.startswith("nvcc")], last.commands


def test_scons_3969_a_damaged_blob_is_a_miss(built: Project) -> None:
    before = built.digests(".cubin")
    blobs = [path for path in (built / "build/.cache").glob("*/*") if path.is_file()]
    for number, blob in enumerate(blobs):
        data = blob.read_bytes()
        blob.write_bytes(data[: len(data) // 2] if number % 2 else data[:-1] + b"?")
    for path in (built / "build").glob("sm_90a/**/*"):
        if path.is_file():
            path.unlink()
    run = built.build()
    assert not run.retrieved and run.of("DeviceLink") == ["scaled", "shifted"]
    assert built.digests(".cubin") == before


def test_scons_1521_what_came_from_the_cache_is_up_to_date(built: Project) -> None:
    (built / CUBIN).unlink()
    run = built.build()
    assert CUBIN in run.retrieved and not run.commands
    assert built.up_to_date()


@pytest.mark.parametrize("suffix", [".contract.yaml", ".interface.json", ".fatbin", ".shadow.ptx"])
def test_scons_1383_one_of_several_targets_missing_brings_all_back(
    built: Project, suffix: str
) -> None:
    lost = variant(built, "scale") / f"scale{suffix}"
    content = lost.read_bytes()
    lost.unlink()
    run = built.build()
    assert lost.read_bytes() == content and not run.of("DeviceLink")
    assert built.up_to_date()


def test_scons_1841_the_second_run_of_nodes_with_several_targets_is_empty(fresh: Project) -> None:
    """Also #2853: a generated header makes no second round."""
    fresh.build()
    assert not fresh.build().steps


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ('#define TABLE "hidden.cuh"\n#include TABLE', "hidden.cuh"),  # SCons #3038, #4193, #344
        ('#if __has_include("hidden.cuh")\n#include "hidden.cuh"\n#endif', "hidden.cuh"),  # #4517
        ("#include <hidden.cuh>", "hidden.cuh"),
    ],
)
def test_scons_3038_4517_an_undeclared_header_is_an_error_and_a_declared_one_counts(
    built: Project, line: str, name: str
) -> None:
    (built / "kernels" / name).write_text("constexpr int kHidden = 1;\n")
    built.edit("kernels/scale.cu", '#include "scale.cuh"', f'#include "scale.cuh"\n{line}')
    run = built.run()
    assert run.status == 2 and "PL1303" in run.text and name in run.text
    assert not (variant(built, "scale") / "scale.fatbin").exists()
    built.edit("kernels/SConscript", 'hdrs=["scale.cuh"]', f'hdrs=["scale.cuh", "{name}"]')
    built.build()
    (built / "kernels" / name).write_text("constexpr int kHidden = 2;\n")
    edited = built.build()
    assert edited.of("CudaCompile") == ["scale"] and edited.of("DeviceLink") == ["scaled"]


def test_a_header_of_a_dependency_behind_a_macro_has_to_be_declared(built: Project) -> None:
    """It would be watched by nobody: no `#include` line leads there."""
    built.edit("kernels/scale.cuh", "#include <table.cuh>", "#define T <table.cuh>\n#include T")
    run = built.run()
    assert run.status == 2 and "PL1303" in run.text and "through a macro" in run.text


@pytest.mark.parametrize("seed", range(2))
def test_scons_3013_the_number_of_jobs_changes_no_result(
    fresh: Project, built_project: Project, seed: int
) -> None:
    """Also #3018, #2154, #2982, #1366: nothing is a side effect."""
    run = fresh.build(f"-j{1 + 7 * seed}", "--random")
    suffixes = (".cubin", ".glue.cu", ".placement.json", ".manifest.json", ".interface.json")
    assert fresh.digests(*suffixes) == built_project.digests(*suffixes)
    assert len(run.of("DeviceLink")) == 2


def test_scons_3034_a_large_project_reads_quickly(fresh: Project) -> None:
    """Also PR #3410, godot #42048: 500 components that nobody asks for cost next to nothing."""
    lines = [
        f'env.KernelComponent(name="c{n}", contract="scale.contract.yaml", srcs=["scale.cu"])\n'
        for n in range(500)
    ]
    fresh.append("kernels/SConscript", "".join(lines))
    fresh.build()
    seconds = fresh.cpu_seconds("-q")
    assert seconds < 1.5, f"{seconds:.2f} s of processor time"


def test_meson_11969_an_edit_two_headers_deep_reaches_the_cubin(built: Project) -> None:
    """Also pytorch PR #108613, xmake #2047, HipKittens PR #66."""
    before = built.digests(".cubin")
    built.edit("kernels/deep/table.cuh", "2.0f", "4.0f")
    built.build()
    after = built.digests(".cubin")
    assert {name for name in before if before[name] != after[name]} == {CUBIN}


def test_kokkos_4078_a_compiler_that_writes_no_list_of_headers_is_refused(built: Project) -> None:
    built.append("kernels/scale.cu", "// fake: nodepfile\n")
    run = built.run()
    assert run.status == 2 and "PL1313" in run.text


def test_rules_cuda_316_a_component_of_headers_is_no_instance(fresh: Project) -> None:
    fresh.edit("megakernels/SConscript", '"rows": ("//kernels:rows"', '"rows": ("//kernels:tables"')
    run = fresh.run()
    assert run.status == 2 and "PL1308" in run.text and "Traceback" not in run.text


def test_rules_cuda_372_no_result_knows_its_folder(built: Project) -> None:
    for path in (built / "build/sm_90a").rglob("*"):
        if path.is_file() and path.suffix in (".cubin", ".json", ".cu", ".cuh", ".yaml", ".txt"):
            assert str(built.root.parent) not in path.read_text(errors="replace"), path


def test_celeritas_852_a_shared_part_that_changes_links_each_user_once(built: Project) -> None:
    built.edit("kernels/store.cu", "body(store)", "body(store, twice)")
    run = built.build()
    assert run.commands["nvlink scaled"] == 1 and run.commands["nvlink shifted"] == 1
    assert run.of("CudaCompile") == ["store"]


def test_amrex_4773_every_target_has_an_object_of_its_own(fresh: Project) -> None:
    fresh.edit("megakernels/SConscript", '["sm_90a"]', '["sm_90a", "sm_100a"]')
    fresh.build("-j4")
    for arch in ("sm_90a", "sm_100a"):
        for fatbin in (fresh / f"build/{arch}/variants").glob("*/*.fatbin"):
            assert f'"{arch[3:]}"' in fatbin.read_text()


def test_a_target_that_a_component_does_not_have_is_an_error(fresh: Project) -> None:
    fresh.edit("megakernels/SConscript", '["sm_90a"]', '["sm_90a", "sm_120a"]')
    run = fresh.run()
    assert run.status == 2 and "sm_120a" in run.text and "Traceback" not in run.text


def test_a_hand_edited_sidecar_is_found_before_the_link(built: Project) -> None:
    """The build system itself never looks at a target again."""
    sidecar = variant(built, "scale") / "scale.contract.yaml"
    assert "minimum: 2\n" in sidecar.read_text()
    sidecar.write_text(sidecar.read_text().replace("minimum: 2\n", "minimum: 1\n", 1))
    built.edit("kernels/store.cu", "body(store)", "body(store, twice)")
    run = built.run()
    assert run.status == 2 and "PL002" in run.text and not (built / CUBIN).exists()


def test_an_altered_object_that_was_delivered_is_refused(built: Project) -> None:
    folder = variant(built, "scale")
    with open(folder / "scale.fatbin", "a") as stream:
        stream.write(" ")
    (built / "delivered").mkdir()
    for name in ("scale.fatbin", "scale.contract.yaml", "scale.shadow.ptx"):
        (folder / name).rename(built / "delivered" / name)
    text = (built / "kernels/SConscript").read_text()
    start = text.index('env.KernelComponent(name="scale"')
    end = text.index("\n", start)
    rule = 'env.PrebuiltComponent(name="scale", dir="../delivered")'
    (built / "kernels/SConscript").write_text(text[:start] + rule + text[end:])
    run = built.run()
    assert run.status == 2 and "PL0904" in run.text


def test_nccl_202_a_contract_that_promises_too_little_is_refused(built: Project) -> None:
    """Also libomptarget #14, celeritas PR #853; cuda-oxide #708, #755: spills are errors."""
    built.edit("kernels/scale.cu", "registers=48", "registers=120")
    run = built.run()
    assert run.status == 2 and "PL0910" in run.text
    assert not (variant(built, "scale") / "scale.interface.json").exists()


def test_cmssw_51905_the_table_says_how_long_links_took(built: Project) -> None:
    times = json.loads((built / "build/.times/sm_90a/scaled.json").read_text())
    assert times["link_seconds"] > 0
    row = next(line for line in built.build().text.splitlines() if line.startswith(" scaled "))
    assert f"{times['link_seconds']:.2f}" in row


def test_a_failed_check_compiles_nothing(fresh: Project) -> None:
    fresh.edit("kernels/scale.contract.yaml", "arrivals: 4", "arrivals: 3")
    run = fresh.run("-k")
    assert run.status == 2 and "PL02" in run.text and "Traceback" not in run.text
    assert "nvcc scale.cu" not in run.commands and not run.of("DeviceLink") or run.of(
        "DeviceLink"
    ) == ["shifted"]


@pytest.mark.parametrize("step", ["compile", "place", "link"])
def test_killed_builds_leave_nothing_wrong(
    built: Project, tmp_path: Path, step: str
) -> None:
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
        with_suppressed_kill(call["pid"])
    (built.scratch / "nvlink.json").unlink(missing_ok=True)
    (built / "kernels/scale.cu").write_text(original)
    built.build()
    after = built.digests(".cubin", ".json", ".yaml", ".glue.cu")
    assert set(after) == set(clean)
    assert {n for n in clean if clean[n] != after[n] and n.endswith((".cubin", ".glue.cu"))} == set()
    assert not [path for path in (built / "build").rglob("*") if ".staged." in path.name]
    assert built.up_to_date()


def with_suppressed_kill(pid: int) -> None:
    """Ends a tool that outlived its build."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def test_two_builds_at_once_one_waits_and_says_for_whom(built: Project) -> None:
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
    suffixes = (".cubin", ".glue.cu", ".placement.json", ".manifest.json", ".map.txt", ".audit.json")
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
    assert set(files) == {f"kernels/{name}.cu" for name in ("rows", "load", "scale", "shift", "store")}
    assert "-D__CUDACC_RDC__" in files["kernels/scale.cu"] and "-Ikernels/deep" in files["kernels/scale.cu"]


def test_findings_of_all_declarations_come_at_once(fresh: Project) -> None:
    fresh.append("kernels/SConscript", 'env.KernelComponent(name="rows", srcs=["rows.cu"])\n')
    fresh.edit("megakernels/SConscript", '"op.x": "load.x"', '"op.x": "lod.x"')
    run = fresh.run()
    assert run.status == 2 and "PL1301" in run.text and "PL0044" in run.text
    assert "Traceback" not in run.text and not run.commands


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
