"""Locate the files that ship with the package: components, the device ABI, the error pages.

In a checkout and an editable install they are beside the package, at the top of the repository.
A wheel contains a copy inside the package (`_shipped`), written by `pipelink_rules.wheel`.
"""

from functools import cache
from pathlib import Path

SHIPPED = ("components", "docs/errors")  # folders of the repository that a wheel carries
COPY = "_shipped"


@cache
def shipped_root() -> Path:
    """Return the folder that holds `components/` and `docs/errors/`."""
    package = Path(__file__).resolve().parent.parent
    copy = package / COPY
    return copy if (copy / "components").is_dir() else package.parent


def shipped(*parts: str) -> Path:
    """Return a file or folder that comes with the package: `shipped("components", "include")`."""
    return shipped_root().joinpath(*parts)
