"""Fixtures for tests of single objects: the release runtime, and a compiler for texts."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelink_rules.compile.object import compile_object
from pipelink_rules.toolkit.toolkit import Toolkit

HERE = Path(__file__).parent
MakeOnce = Callable[[str, Callable[[Path], object]], Path]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here runs the real compiler and linker."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.live)


@pytest.fixture(scope="session")
def runtime(make_once: MakeOnce, toolkit: Toolkit, repository: Path) -> Path:
    """The release runtime for sm_90a."""

    def compile_runtime(folder: Path) -> None:
        with contextlib.chdir(repository):
            compile_object(
                "components/runtime/release.cu",
                folder / "release.fatbin",
                "sm_90a",
                toolkit,
                includes=["components/include"],
            )

    return make_once("runtime", compile_runtime) / "release.fatbin"


@pytest.fixture
def cuda(
    tmp_path: Path,
    make_once: MakeOnce,
    toolkit: Toolkit,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., Path]:
    """Compiles a text to an object in the test's own folder, which is the working directory."""
    monkeypatch.chdir(tmp_path)

    def compile_text(
        name: str, text: str, arch: str = "sm_90a", flags: tuple[str, ...] = ()
    ) -> Path:
        Path(f"{name}.cu").write_text(text)
        key = hashlib.sha256("\0".join([name, text, arch, *flags]).encode()).hexdigest()[:16]

        def compile_here(folder: Path) -> None:
            out, includes = folder / f"{name}.fatbin", [repository / "components/include"]
            compile_object(f"{name}.cu", out, arch, toolkit, includes=includes, flags=flags)

        for path in make_once(f"object-{key}", compile_here).iterdir():
            if not path.name.startswith("."):
                shutil.copy(path, path.name)
        return Path(f"{name}.fatbin")

    return compile_text
