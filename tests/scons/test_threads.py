"""What went wrong elsewhere and must not go wrong here; each test names its thread."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from builds import Project

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
        (built / f"kernels/other{suffix}").write_text(
            text.replace("scale.contract", "other.contract")
        )
    built.append(
        "kernels/SConscript",
        'env.KernelComponent(name="other", srcs=["other.cu"], hdrs=["scale.cuh"], '
        'deps=[":tables"])\n',
    )
    built.edit("megakernels/SConscript", '("scaled", "scale")', '("scaled", "other")')
    run = built.build()
    assert run.of("DeviceLink") == ["scaled"]
    assert (
        "//kernels:other" in (built / "build/sm_90a/megakernels/scaled/scaled.map.txt").read_text()
    )


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


def test_scons_2701_a_contract_saved_during_the_build_is_not_used(built: Project) -> None:
    """Contracts are read when a step needs them: it must be the text that the digests are of."""
    contract = built / "kernels/shift.contract.yaml"
    built.append("kernels/load.cu", f"// fake: sleep=1\n// fake: edits={contract}\nint x;\n")
    built.edit("kernels/store.cu", "body(store)", "body(store, twice)")
    run = built.run("-j1")
    assert run.status == 2 and "Traceback" not in run.text
    assert "PL1304" in run.text or "shift.contract.yaml" in run.text


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
    """Nothing would watch it: no `#include` line leads there."""
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
    """Also PR #3410, godot #42048: 500 components that are not requested cost next to nothing."""
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


def test_amrex_4773_every_target_has_a_separate_object(fresh: Project) -> None:
    fresh.edit("megakernels/SConscript", '["sm_90a"]', '["sm_90a", "sm_100a"]')
    fresh.build("-j4")
    for arch in ("sm_90a", "sm_100a"):
        for fatbin in (fresh / f"build/{arch}/variants").glob("*/*.fatbin"):
            assert f'"{arch[3:]}"' in fatbin.read_text()


def test_a_target_that_a_component_does_not_have_is_an_error(fresh: Project) -> None:
    fresh.edit("megakernels/SConscript", '["sm_90a"]', '["sm_90a", "sm_120a"]')
    run = fresh.run()
    assert run.status == 2 and "sm_120a" in run.text and "Traceback" not in run.text


def test_two_components_that_would_define_the_same_symbols_are_refused(fresh: Project) -> None:
    shutil.copytree(fresh / "kernels", fresh / "copies")
    fresh.edit(
        "SConstruct",
        'SConscript("kernels',
        'SConscript("copies/SConscript", exports="env")\nSConscript("kernels',
    )
    fresh.edit("megakernels/SConscript", '"//kernels:store"', 'f"//{PLACE[name]}:store"')
    fresh.edit(
        "megakernels/SConscript",
        "for name",
        'PLACE = {"scaled": "kernels", "shifted": "copies"}\nfor name',
    )
    run = fresh.run()
    assert run.status == 2 and "PL1311" in run.text and "//copies:store" in run.text


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
