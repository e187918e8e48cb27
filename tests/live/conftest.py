"""One real build of this repository, shared by the tests that inspect it."""

from __future__ import annotations

import pytest
from checkout import Checkout, copy_of_repository


@pytest.fixture(scope="session")
def built(toolkit: object, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """Every megakernel for every target, with both twins."""
    checkout = copy_of_repository(tmp_path_factory.mktemp("repository"))
    done = checkout.run("scons twins=1")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return checkout
