"""Build outputs for the tests on a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MEGAKERNELS = ROOT / "build" / "sm_90a" / "megakernels"


def built(name: str) -> Path:
    """Return the manifest of a built megakernel, or skip."""
    path = MEGAKERNELS / name / f"{name}.manifest.json"
    if not path.is_file():
        pytest.skip(f"{name} is not built: run scons megakernels/{name}")
    return path
