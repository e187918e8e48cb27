"""Another repository: it has an SConstruct and one component, and what pip installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from builds import REPOSITORY, Project

HERE = Path(__file__).resolve().parent
CUBIN = "build/sm_90a/megakernels/halved/halved.cubin"
SOURCES = ("pipelink_rules", "components", "docs/errors", "pyproject.toml", "LICENSE", "README.md")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as pip would install it."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        source, copy = REPOSITORY / name, tree / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            copy.write_text(source.read_text(encoding="utf-8") if source.is_file() else "")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--wheel-dir", str(out), str(tree)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    (path,) = out.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with the installed package and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-compile"]
    subprocess.run([*command, "--target", str(folder), str(wheel)], check=True)
    return folder


def outside(folder: Path, toolkit: Path | None, python_path: Path) -> Project:
    """The other repository."""
    root = folder / "elsewhere"
    shutil.copytree(HERE / "outside", root)
    project = Project(root, toolkit or Path(), {"PYTHONPATH": str(python_path)})
    if toolkit is None:
        project.environment["PIPELINK_CUDA"] = ""
    return project


def test_the_wheel_has_components_abi_error_pages_and_no_tests(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    shipped = "pipelink_rules/_shipped"
    assert f"{shipped}/components/gemm/wgmma_mainloop.cu" in names
    assert f"{shipped}/components/gemm/wgmma_mainloop.contract.yaml" in names
    assert f"{shipped}/components/gemm/SConscript" in names
    assert f"{shipped}/components/include/pipelink/component.cuh" in names
    assert f"{shipped}/components/runtime/release.cu" in names
    assert f"{shipped}/docs/errors/PL1303.md" in names
    assert "pipelink_rules/contract/contract.schema.json" in names
    assert not [name for name in names if name.startswith(("tests", "megakernels", "benchmarks"))]


@pytest.mark.parametrize("how", ["wheel", "editable"])
def test_a_component_of_another_repository_is_linked_with_the_library(
    how: str, installed: Path, tmp_path: Path, fake_toolkit: Path
) -> None:
    # An editable install puts the checkout on the path, and nothing else.
    project = outside(tmp_path, fake_toolkit, installed if how == "wheel" else REPOSITORY)
    run = project.build()
    assert run.of("DeviceLink") == ["halved"] and (project / CUBIN).is_file()
    assert {"halve", "row_blocks", "bulk_load_rows", "release"} <= set(run.of("CudaCompile"))
    assert run.of("CudaCompile").count("bulk_load_rows") == 1
    again = project.build()
    assert not again.steps and project.up_to_date()


def test_the_error_pages_of_an_installed_package_are_found(installed: Path) -> None:
    script = (
        "from pipelink_rules.files.installed_files import shipped;"
        "assert shipped('docs/errors/PL1303.md').is_file();"
        "assert '_shipped' in str(shipped('components'))"
    )
    environment = {"PYTHONPATH": str(installed)}
    subprocess.run([sys.executable, "-c", script], env=environment, cwd=installed, check=True)


def test_an_unknown_component_of_the_library_is_a_finding(
    tmp_path: Path, fake_toolkit: Path
) -> None:
    project = outside(tmp_path, fake_toolkit, REPOSITORY)
    project.edit("SConstruct", "scheduler:row_blocks", "scheduler:row_block")
    run = project.run()
    assert run.status == 2 and "PL1302" in run.text and "row_blocks" in run.text
    assert "Traceback" not in run.text


@pytest.mark.live
def test_two_folders_and_the_real_tools_give_the_same_bytes(tmp_path: Path, toolkit: Any) -> None:
    results = []
    for name in ("one", "a/longer/place"):
        (tmp_path / name).mkdir(parents=True)
        project = outside(tmp_path / name, None, REPOSITORY)
        project.build()
        kinds = (".cubin", ".glue.cu", ".placement.json", ".manifest.json", ".map.txt", ".html")
        results.append(project.digests(*kinds))
    assert CUBIN in results[0] and results[0] == results[1]


@pytest.mark.live
def test_with_the_real_tools_a_comment_links_nothing_and_back_again_is_cached(
    tmp_path: Path, toolkit: Any
) -> None:
    project = outside(tmp_path, None, REPOSITORY)
    project.build()
    before = project.digests(".cubin", ".fatbin")
    text = (project / "halve.cu").read_text()
    project.append("halve.cu", "// a thought\n")
    assert project.build().steps == ("CudaCompile halve",)
    project.edit("halve.cu", "0.5f * x.x, 0.5f * x.y", "0.25f * x.x, 0.25f * x.y")
    swapped = project.build()
    assert swapped.of("CudaCompile") == ["halve"] and swapped.of("DeviceLink") == ["halved"]
    assert not swapped.of("Place") and not swapped.of("Glue")
    (project / "halve.cu").write_text(text)
    back = project.build()
    assert not back.steps and project.digests(".cubin", ".fatbin") == before
    assert project.up_to_date()
