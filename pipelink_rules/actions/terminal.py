"""How do findings look on a terminal?  The renderer of the diagnostics, at the edge."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.diagnostics.render import render_json, render_text
from pipelink_rules.files.atomic import write_text
from pipelink_rules.files.codec import read_json


def render_for_terminal(findings: Iterable[Diagnostic], outcome: str = "") -> str:
    """The text of findings with the lines they are about; coloured on a terminal."""
    colour = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    return render_text(tuple(findings), outcome=outcome, colour=colour)


def write_document(
    path: Path, form: str, findings: Iterable[Diagnostic], kept: Iterable[str] = ()
) -> None:
    """All findings of a build as one file; form: json or sarif.

    kept: files of the check, with the warnings of compositions that did not change.
    """
    found = list(findings)
    for name in kept:
        with suppress(PipelinkError):  # not written, or not by this version
            found += read_json(name, tuple[Diagnostic, ...])
    if form == "sarif":
        from pipelink_rules.diagnostics.sarif import render_sarif

        write_text(path, render_sarif(found))
    else:
        write_text(path, render_json(found))
