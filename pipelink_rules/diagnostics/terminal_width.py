"""How wide may output be?  As wide as the terminal it goes to; a file has no width.

COLUMNS is an environment variable: it describes the terminal of whoever started us, and says
nothing where the output goes to a file or to another program.
"""

from __future__ import annotations

import shutil
import sys

UNBOUNDED = 10_000  # columns; nothing that is printed is as wide


def output_width(otherwise: int = UNBOUNDED, least: int = 40) -> int:
    """Columns of the terminal that standard output is, at least `least`; else `otherwise`."""
    if not sys.stdout.isatty():
        return otherwise
    return max(least, shutil.get_terminal_size((otherwise, 24)).columns)
