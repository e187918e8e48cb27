"""What is a megakernel once the driver has it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pipelink_rules.launch.driver import Device


@dataclass(frozen=True)
class Loaded:
    """The entry in one context."""

    context: int
    device: Device
    function: Any
    clusters: int = 0  # that run at a time; 0 = no clusters
