"""The tool of this checkout; other repositories import `pipelink_rules.scons` from the package."""

import sys
from pathlib import Path

_CHECKOUT = str(Path(__file__).resolve().parents[3])
if _CHECKOUT not in sys.path:
    sys.path.insert(0, _CHECKOUT)

from pipelink_rules.scons import exists, generate  # noqa: E402

__all__ = ["exists", "generate"]
