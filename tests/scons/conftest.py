"""Projects for the tests of the build, built once and copied."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from builds import Project  # noqa: E402
from fake_toolkit import make_toolkit  # noqa: E402


@pytest.fixture(scope="session")
def fake_toolkit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tools that record what they are called with."""
    return make_toolkit(tmp_path_factory.mktemp("toolkit") / "cuda")


@pytest.fixture(scope="session")
def source_project(tmp_path_factory: pytest.TempPathFactory, fake_toolkit: Path) -> Project:
    """The small project, never built; not to be changed."""
    root = tmp_path_factory.mktemp("source") / "project"
    return Project(HERE / "project", fake_toolkit).copy(root)


@pytest.fixture(scope="session")
def built_project(tmp_path_factory: pytest.TempPathFactory, source_project: Project) -> Project:
    """The small project, built; not to be changed."""
    project = source_project.copy(tmp_path_factory.mktemp("built") / "project")
    project.build()
    return project


@pytest.fixture
def fresh(source_project: Project, tmp_path: Path) -> Project:
    """A copy that has not been built."""
    return source_project.copy(tmp_path / "project")


@pytest.fixture
def built(built_project: Project, tmp_path: Path) -> Project:
    """A copy that has been built."""
    return built_project.copy(tmp_path / "built")
