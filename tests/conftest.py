"""What all tests share: the path to the package, options, and what the machine must offer."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parent.parent
if str(REPOSITORY) not in sys.path:  # also without an installation
    sys.path.insert(0, str(REPOSITORY))

# Examples are the same in every run: a failure is met by whoever caused it.
settings.register_profile("pipelink", deadline=None, derandomize=True, database=None)
settings.load_profile("pipelink")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest --update-golden` rewrites the expected texts; look at the diff before committing."""
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite tests/golden/**/expect.*"
    )


@pytest.fixture(scope="session")
def repository() -> Path:
    """The top folder of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def toolkit(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The CUDA toolkit; tests that need it are skipped where there is none that links."""
    from pipelink_rules.diagnostics.diagnostic import PipelinkError
    from pipelink_rules.toolkit.find import find_toolkit

    try:
        return find_toolkit(tmp_path_factory.mktemp("toolkit"))
    except PipelinkError as problem:
        pytest.skip(f"no usable CUDA toolkit: {problem}")
