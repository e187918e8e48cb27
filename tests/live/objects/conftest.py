"""What the tests of single objects share: a build folder and the release runtime in it."""

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here runs the real compiler and linker."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.live)


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory, toolkit: Toolkit, repository: Path) -> Path:
    """The release runtime for sm_90a."""
    out = tmp_path_factory.mktemp("runtime") / "release.fatbin"
    with contextlib.chdir(repository):
        compile_object(
            "components/runtime/release.cu",
            out,
            "sm_90a",
            toolkit,
            includes=["components/include"],
        )
    return out


@pytest.fixture(scope="session")
def object_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Objects by what they were compiled from."""
    return tmp_path_factory.mktemp("objects")


@pytest.fixture
def cuda(
    tmp_path: Path,
    object_cache: Path,
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
        made = object_cache / key / f"{name}.fatbin"
        if not made.exists():
            includes = [repository / "components/include"]
            compile_object(f"{name}.cu", made, arch, toolkit, includes=includes, flags=flags)
        for path in made.parent.iterdir():
            shutil.copy(path, path.name)
        return Path(made.name)

    return compile_text
