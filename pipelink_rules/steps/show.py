"""How do findings look on a terminal?  The renderer of the diagnostics, at the edge."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.diagnostics.render import render_text


def shown(findings: Iterable[Diagnostic], outcome: str = "") -> str:
    """The text of findings with the lines they are about; coloured on a terminal."""
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    return render_text(tuple(findings), outcome=outcome, colour=colour)
