"""How does a command end?  Findings as text or as a document, and the exit code they mean."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable

from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.diagnostics.render import exit_code, render_json, render_text
from pipelink_rules.files.codec import read_json as read_json  # every command reads its input so


def report(
    diagnostics: Iterable[Diagnostic], arguments: argparse.Namespace, outcome: str = ""
) -> int:
    """Prints the findings as asked; the exit code."""
    found = tuple(diagnostics)
    if arguments.diag == "json":
        sys.stdout.write(render_json(found))
    elif arguments.diag == "sarif":
        from pipelink_rules.diagnostics.sarif import render_sarif

        sys.stdout.write(render_sarif(found))
    elif found:
        root = arguments.root or None
        colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
        sys.stdout.flush()
        sys.stderr.write(render_text(found, colour=colour, root=root, outcome=outcome))
    return exit_code(found)


def report_internal_error(problem: Exception, command: str, arguments: argparse.Namespace) -> int:
    """PL9901 instead of a traceback."""
    return report(
        (
            Diagnostic(
                "PL9901",
                f"pipelink {command} met a mistake of its own: {type(problem).__name__}",
                found=str(problem)[:300] or type(problem).__name__,
                helps=(
                    "please report it, with the input file and the output of "
                    f"PIPELINK_TRACEBACK=1 pipelink {command} ...",
                ),
                subject=command,
            ),
        ),
        arguments,
    )
