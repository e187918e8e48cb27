"""Where are the files that come with the package: components, the device ABI, the error pages?

A checkout and an editable install find them beside the package, at the top of the repository.
A wheel carries a copy inside the package (`_shipped`), made by `pipelink_rules.wheel`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

SHIPPED = ("components", "docs/errors")  # folders of the repository that a wheel carries
COPY = "_shipped"


@cache
def shipped_root() -> Path:
    """The folder that holds `components/` and `docs/errors/`."""
    package = Path(__file__).resolve().parent.parent
    copy = package / COPY
    return copy if (copy / "components").is_dir() else package.parent


def shipped(*parts: str) -> Path:
    """A file or folder that comes with the package: `shipped("components", "include")`."""
    return shipped_root().joinpath(*parts)
