"""Projects for the tests of the build, built once and copied."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from builds import Project  # noqa: E402
from fake_toolkit import make_toolkit  # noqa: E402

MakeOnce = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def fake_toolkit(make_once: MakeOnce) -> Path:
    """Tools that record what they are called with."""
    return make_once("fake-toolkit", lambda folder: make_toolkit(folder / "cuda")) / "cuda"


@pytest.fixture(scope="session")
def source_project(make_once: MakeOnce, fake_toolkit: Path) -> Project:
    """The small project, never built; not to be changed."""
    original = Project(HERE / "project", fake_toolkit)
    folder = make_once("source-project", lambda folder: original.copy(folder / "project"))
    return Project(folder / "project", fake_toolkit)


@pytest.fixture(scope="session")
def built_project(make_once: MakeOnce, source_project: Project) -> Project:
    """The small project, built; not to be changed."""
    folder = make_once(
        "built-project", lambda folder: source_project.copy(folder / "project").build()
    )
    return Project(folder / "project", source_project.toolkit)


@pytest.fixture
def fresh(source_project: Project, tmp_path: Path) -> Project:
    """A copy that has not been built."""
    return source_project.copy(tmp_path / "project")


@pytest.fixture
def built(built_project: Project, tmp_path: Path) -> Project:
    """A copy that has been built."""
    return built_project.copy(tmp_path / "built")
