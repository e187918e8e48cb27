"""What runs after a change, and what does not: by the commands that were recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from builds import Project
from fake_toolkit import make_toolkit

EVERYTHING = {"rows", "load", "scale", "shift", "store"}
SCALE = (  # its declaration
    'env.KernelComponent(name="scale", srcs=["scale.cu"], hdrs=["scale.cuh"], deps=[":tables"])'
)
PURE = ("Declare", "Check", "Collect", "Place", "Glue")


def test_first_build_compiles_every_variant_once_for_all_megakernels(fresh: Project) -> None:
    run = fresh.build()
    assert run.of("CudaCompile") == ["glue of scaled", "glue of shifted", "load", "release", "rows",
                                     "scale", "shift", "store"]  # fmt: skip
    assert run.of("DeviceLink") == ["scaled", "shifted"]
    assert run.commands["nvcc load.cu"] == 1 and run.commands["nvlink scaled"] == 1
    first_compile = run.steps.index("CudaCompile load")
    assert {"Check scaled", "Check shifted"} <= set(run.steps[:first_compile])
    assert "megakernel" in run.text and "link seconds" in run.text  # the table


def test_the_table_is_not_cut_for_a_terminal_that_is_not_there(built: Project) -> None:
    built.environment["COLUMNS"] = "40"
    built.edit("kernels/scale.cu", "body(scale)", "body(scale, again)")
    assert "megakernel" in (text := built.build().text) and "link seconds" in text


def test_no_change_runs_nothing(built: Project) -> None:
    run = built.build()
    assert not run.steps and not run.commands and not run.retrieved
    assert built.up_to_date()


def test_touching_a_file_is_no_change(built: Project) -> None:
    """SCons #2980, #3684: time stamps never decide."""
    for path in (built / "kernels").iterdir():
        path.touch()
    run = built.build()
    assert not run.steps and not run.commands


def test_comment_at_the_end_of_a_component_links_nothing(built: Project) -> None:
    # The bytes of an object depend on its folder, and this one is a copy: settle that first.
    built.append("kernels/scale.cu", "// a thought\n")
    built.build()
    built.append("kernels/scale.cu", "// and another\n")
    run = built.build()
    assert run.steps == ("CudaCompile scale",)
    assert set(run.commands) == {"nvcc scale.cu"}


def test_body_of_a_component_links_what_uses_it(built: Project) -> None:
    built.edit("kernels/scale.cu", "body(scale)", "body(scale, twice)")
    run = built.build()
    assert set(run.steps) == {
        "CudaCompile scale",
        "Probe scale",
        "DeviceLink scaled",
        "Describe scaled",
    }
    assert set(run.commands) == {"nvcc scale.cu", "nvlink probe", "ptxas probe", "nvlink scaled"}


def test_body_used_by_two_megakernels_links_both(built: Project) -> None:
    built.edit("kernels/load.cu", "body(load)", "body(load, faster)")
    run = built.build()
    assert run.of("CudaCompile") == ["load"]
    assert run.of("DeviceLink") == ["scaled", "shifted"]
    assert not run.of("Place") and not run.of("Glue")


def test_a_few_registers_more_within_the_same_eight_place_nothing(built: Project) -> None:
    built.edit("kernels/scale.cu", "registers=48", "registers=45")
    run = built.build()
    assert run.of("Probe") == ["scale"] and run.of("DeviceLink") == ["scaled"]
    assert not run.of("Collect") and not run.of("Place") and not run.of("Glue")


def test_registers_beyond_the_eight_place_again(built: Project) -> None:
    built.edit("kernels/scale.cu", "registers=48", "registers=72")
    run = built.build()
    assert run.of("Collect") == ["scaled"] and run.of("Place") == ["scaled"]
    assert run.of("DeviceLink") == ["scaled"]
    assert "nvcc scaled.glue.cu" not in run.commands or run.of("Glue") == ["scaled"]


def test_swap_of_a_component_with_the_same_interface(built: Project) -> None:
    (built / "kernels/scale_fast.cu").write_text(
        (built / "kernels/scale.cu").read_text().replace("body(scale)", "fast(scale)")
    )
    built.edit("kernels/SConscript", 'srcs=["scale.cu"]', 'srcs=["scale_fast.cu"]')
    run = built.build()
    assert set(run.steps) == {
        "CudaCompile scale",
        "Probe scale",
        "DeviceLink scaled",
        "Describe scaled",
    }
    assert run.commands["nvcc scale_fast.cu"] == 1 and run.commands["nvlink scaled"] == 1


def test_swap_with_another_interface_checks_places_and_links_that_megakernel(
    built: Project,
) -> None:
    built.edit("megakernels/SConscript", '("shifted", "shift")', '("shifted", "scale")')
    run = built.build()
    assert not run.of("Probe") and run.of("CudaCompile") == ["glue of shifted"]
    for mnemonic in (*PURE, "DeviceLink"):
        assert run.of(mnemonic) == ["shifted"], run.text


def test_swap_with_other_parameters_compiles_only_what_got_them(built: Project) -> None:
    built.edit("megakernels/SConscript", '{"D": 1024}', '{"D": 2048 if name == "scaled" else 1024}')
    run = built.build()
    # `rows` has no such parameter, and `shifted` keeps its variants.
    assert run.of("Probe") == ["load", "scale", "store"]
    assert run.of("DeviceLink") == ["scaled"] and run.of("Place") == ["scaled"]


def test_back_again_compiles_and_links_nothing(built: Project) -> None:
    before = built.digests(".cubin", ".json", ".yaml", ".fatbin")
    text = (built / "kernels/scale.cu").read_text()
    built.edit("kernels/scale.cu", "body(scale)", "body(scale, twice)")
    built.build()
    (built / "kernels/scale.cu").write_text(text)
    run = built.build()
    assert not run.steps and not run.commands
    assert "build/sm_90a/megakernels/scaled/scaled.cubin" in run.retrieved
    assert built.digests(".cubin", ".json", ".yaml", ".fatbin") == before
    assert built.up_to_date()  # SCons #1521: what came from the cache was stale in the next run


def test_source_deleted_and_its_objects_swapped_in(built: Project) -> None:
    variants = built / "build/sm_90a/variants"
    (scale,) = variants.glob("scale_*")
    (built / "delivered").mkdir()
    for suffix in ("fatbin", "contract.yaml", "shadow.ptx"):
        (scale / f"scale.{suffix}").rename(built / f"delivered/scale.{suffix}")
    for name in ("scale.cu", "scale.cuh", "scale.contract.yaml"):
        (built / "kernels" / name).unlink()
    built.edit(
        "kernels/SConscript",
        SCALE,
        'env.PrebuiltComponent(name="scale", dir="../delivered")',
    )
    run = built.build()
    assert run.of("Prebuilt") == ["scale"] and run.of("Probe") == ["scale"]
    assert not run.of("CudaCompile")
    assert run.commands["nvlink scaled"] <= 1 and run.commands["nvlink shifted"] == 0


def test_objects_of_another_build_link_once(fresh: Project, built: Project, tmp_path: Path) -> None:
    elsewhere = fresh.copy(tmp_path / "somewhere/else")
    elsewhere.edit("kernels/scale.cu", "body(scale)", "delivered(scale)")
    elsewhere.build("//kernels:scale")
    (scale,) = (elsewhere / "build/sm_90a/variants").glob("scale_*")
    built.edit(
        "kernels/SConscript",
        SCALE,
        f'env.PrebuiltComponent(name="scale", artifacts=["{scale}/scale.contract.yaml"])',
    )
    run = built.build()
    assert run.commands["nvlink scaled"] == 1 and not run.of("CudaCompile")
    assert not run.of("Glue")


def test_summary_of_a_contract_links_nothing(built: Project) -> None:
    built.edit("kernels/scale.contract.yaml", "Multiply by a number.", "Multiply each element.")
    built.edit("kernels/load.contract.yaml", "contract: 2", "# a comment\ncontract: 2")
    run = built.build()
    assert not run.commands
    assert not {"CudaCompile", "Probe", "Glue", "DeviceLink"} & {s.split()[0] for s in run.steps}


def test_summary_of_a_megakernel_reaches_the_manifest_and_links_nothing(built: Project) -> None:
    built.edit("megakernels/SConscript", 'f"y = {operation}(x)"', '"other words"')
    run = built.build()
    assert not run.commands and run.of("Describe") == ["scaled", "shifted"]
    manifest = built / "build/sm_90a/megakernels/scaled/scaled.manifest.json"
    assert "other words" in manifest.read_text()


def test_a_megakernel_that_is_built_by_name_only(fresh: Project) -> None:
    fresh.edit("megakernels/SConscript", "env.Megakernel(", "env.Megakernel(default=False,")
    run = fresh.run()
    assert not run.of("DeviceLink")
    help_text = fresh.run("-h").text
    assert help_text.count("(built by name only)") == 2
    assert fresh.build("megakernels/scaled").of("DeviceLink") == ["scaled"]
    assert sorted(fresh.build("megakernels").of("DeviceLink")) == ["shifted"]


@pytest.mark.parametrize("value", ["0", "'no'", "None"])
def test_default_is_true_or_false(fresh: Project, value: str) -> None:
    fresh.edit("megakernels/SConscript", "env.Megakernel(", f"env.Megakernel(default={value},")
    run = fresh.run()
    assert run.status == 2 and "PL0040" in run.text and "True or False" in run.text


def test_a_header_two_levels_down_recompiles_exactly_its_users(built: Project) -> None:
    built.edit("kernels/deep/table.cuh", "2.0f", "3.0f")
    run = built.build()
    assert run.of("CudaCompile") == ["scale"]
    assert run.of("DeviceLink") == ["scaled"]


def test_switching_the_runtime_only_links(built: Project) -> None:
    run = built.build("runtime=watchdog")
    assert set(run.steps) == {
        "CudaCompile watchdog",
        *(
            f"{step} {name}"
            for step in ("DeviceLink", "Describe")
            for name in ("scaled", "shifted")
        ),
    }
    manifest = (built / "build/sm_90a/megakernels/scaled/scaled.manifest.json").read_text()
    assert '"runtime": "watchdog"' in manifest
    back = built.build("runtime=release")
    assert not back.commands and not back.steps


def test_declaring_another_runtime_compiles_no_component(built: Project) -> None:
    built.edit("megakernels/SConscript", "archs=", 'runtime="watchdog", archs=')
    run = built.build()
    assert run.of("CudaCompile") == ["watchdog"] and not run.of("Probe")
    assert run.of("DeviceLink") == ["scaled", "shifted"]


def test_a_new_toolkit_rebuilds_everything(built: Project, tmp_path: Path) -> None:
    built.toolkit = make_toolkit(tmp_path / "cuda")
    with open(built.toolkit / "nvvm/bin/cicc", "a") as stream:
        stream.write("newer\n")
    run = built.build()
    assert EVERYTHING | {"release", "glue of scaled", "glue of shifted"} == set(
        run.of("CudaCompile")
    )
    assert set(run.of("Probe")) == EVERYTHING and run.of("DeviceLink") == ["scaled", "shifted"]


def test_the_same_toolkit_elsewhere_rebuilds_nothing(built: Project, tmp_path: Path) -> None:
    built.toolkit = make_toolkit(tmp_path / "cuda")
    assert not built.build().steps


def test_new_rules_rebuild_everything(built: Project) -> None:
    run = built.build("salt=2")
    assert set(run.of("Probe")) == EVERYTHING and len(run.of("CudaCompile")) == 8
    for mnemonic in (*PURE, "DeviceLink", "Describe"):
        assert run.of(mnemonic) == ["scaled", "shifted"]
    assert len(run.of("Header")) == 5


def test_several_targets_and_back(built: Project) -> None:
    """Choosing a target on the command line rebuilds nothing of another one (SCons #1365)."""
    built.edit("megakernels/SConscript", '["sm_90a"]', '["sm_90a", "sm_100a"]')
    run = built.build("arch=sm_100a")
    assert set(run.of("DeviceLink")) == {"scaled sm_100a", "shifted sm_100a"}
    # The declaration changed, the code did not.
    assert not built.build("arch=sm_90a").commands
    third = built.build()
    assert not third.commands and not third.steps
    assert built.up_to_date()


def test_one_megakernel_by_its_name(fresh: Project) -> None:
    run = fresh.build("megakernels/scaled")
    assert run.of("DeviceLink") == ["scaled"] and "shift" not in run.of("CudaCompile")
    assert run.of("Check") == ["scaled"]
    assert "link seconds" not in run.text


def test_the_variants_of_one_component_by_its_label(fresh: Project) -> None:
    run = fresh.build("//kernels:scale")
    assert run.of("CudaCompile") == ["release", "scale"] and not run.of("DeviceLink")


def test_one_file_by_its_path(fresh: Project) -> None:
    run = fresh.build("build/sm_90a/megakernels/scaled/scaled.placement.json")
    assert run.of("Place") == ["scaled"] and not run.of("DeviceLink")
