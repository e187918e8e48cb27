"""Fixtures: a GPU with its driver, or a skip with the reason."""

from __future__ import annotations

import pytest

from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.launch.driver import Device, Driver


@pytest.fixture(scope="session")
def driver() -> Driver:
    """The driver with a current context on device 0."""
    try:
        found = Driver()
        if not found.current_context():
            found.make_current(0)
    except PipelinkError as problem:
        item = problem.diagnostics[0]
        pytest.skip(f"no GPU here: {item.found or item.message}")
    return found


@pytest.fixture(scope="session")
def hopper(driver: Driver) -> Device:
    """The device, if it runs sm_90a."""
    device = driver.device(int(driver.call("cuCtxGetDevice")))
    if device.capability != (9, 0):
        pytest.skip(f"needs compute capability 9.0, this is {device.name} {device.capability}")
    return device
