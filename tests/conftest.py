"""Shared by all tests: options, markers, groups of xdist, and fixtures of the machine.

Tests run on two workers (`-n 2 --dist loadgroup`, see pyproject.toml). What one worker must not do
twice is in one group: `group_of` says which.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parent.parent
TESTS = REPOSITORY / "tests"
if str(REPOSITORY) not in sys.path:  # also without an installation
    sys.path.insert(0, str(REPOSITORY))

# Examples are the same in every run, so a failure shows up in the run that introduced it.
settings.register_profile("pipelink", deadline=None, derandomize=True, database=None)
settings.load_profile("pipelink")

QUICK_FOLDERS = {"unit", "tidy"}
started = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden` and `--time-limit`."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite tests/golden/**/expect.*; read the diff before committing",
    )
    parser.addoption(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="fail a run that passes but takes longer (CI: 900 for all tests, 120 for -m quick)",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the quick subset, and group what shares a build."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0] if TESTS in item.path.parents else ""
        if folder in QUICK_FOLDERS and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.quick)
        group = group_of(item, folder)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))


def group_of(item: pytest.Item, folder: str) -> str | None:
    """Return the xdist group of a test: one worker runs all tests of a group.

    The whole build of this repository, the CuTe components (gigabytes of memory for one compile)
    and the contract mismatches each have one session fixture that takes a minute to build.
    """
    if folder == "contract_mismatch":
        return folder
    if folder == "gpu":
        return folder  # one GPU
    if folder == "live" and item.path.name == "test_raw_ports.py":
        return "cute"
    if folder == "live" and "built" in getattr(item, "fixturenames", ()):
        return "repository_build"
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run over its time limit; pytest's closing line stays the last one."""
    config = session.config
    limit, taken = config.getoption("--time-limit"), time.monotonic() - started
    if limit and not hasattr(config, "workerinput") and taken > limit and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print the time and its limit."""
    limit, taken = config.getoption("--time-limit"), time.monotonic() - started
    if limit:
        verdict = "within" if taken <= limit else "over"
        terminalreporter.write_line(f"{taken:.0f} s, {verdict} the limit of {limit:.0f} s")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The top folder of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def make_once(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, Callable[[Path], object]], Path]:
    """Fill a folder once a test run, in whichever worker needs it first: name, filler -> folder."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base

    def make(name: str, fill: Callable[[Path], object]) -> Path:
        folder = shared / f"once-{name}"
        with FileLock(f"{folder}.lock"):
            if not (done := folder / ".complete").exists():
                folder.mkdir(exist_ok=True)
                fill(folder)
                done.touch()
        return folder

    return make


@pytest.fixture(scope="session")
def toolkit(make_once: Callable[[str, Callable[[Path], object]], Path]) -> Any:
    """The CUDA toolkit; tests that need it are skipped where there is none that links."""
    from pipelink_rules.diagnostics.diagnostic import PipelinkError
    from pipelink_rules.toolkit.find import find_toolkit

    try:
        return find_toolkit(make_once("toolkit", find_toolkit))  # the folder keeps its self-tests
    except PipelinkError as problem:
        pytest.skip(f"no usable CUDA toolkit: {problem}")
