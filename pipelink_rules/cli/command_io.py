"""Shared by all commands: locating inputs, writing diagnostics, exit codes."""

import argparse
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from pipelink_rules.diagnostics.diagnostic import Diagnostic, error
from pipelink_rules.diagnostics.render import exit_code, render_json, render_text
from pipelink_rules.files.codec import read_json as read_json  # every command reads its input so
from pipelink_rules.model.source_span import Span


def root_of(arguments: argparse.Namespace, file: Path) -> Path:
    """`--root`, or the nearest folder above `file` with an SConstruct, or the working directory."""
    if arguments.root:
        return Path(arguments.root)
    for folder in file.resolve().parents:
        if (folder / "SConstruct").is_file():
            arguments.root = str(folder)
            return folder
    return Path.cwd()


def existing(name: str) -> Path:
    """Return the path; raise PL0010 if it does not exist."""
    path = Path(name)
    if not path.exists():
        raise error(
            "PL0010",
            f"{name} does not exist",
            Span(name),
            suggestions=("run `scons megakernels/NAME` to create it",),
        )
    return path


def megakernel_in(name: str, suffix: str) -> Path:
    """Return the only `*<suffix>` file of a build folder, or the file itself; else raise PL0010."""
    path = existing(name)
    if path.is_file():
        return path
    found = sorted(path.glob(f"*{suffix}"))
    if len(found) == 1:
        return found[0]
    raise error(
        "PL0010",
        f"{name} is not the folder of one built megakernel",
        Span(name),
        expected=f"one *{suffix}",
        found=", ".join(item.name for item in found) or "none",
        suggestions=("pass the file, or a folder like build/sm_90a/megakernels/gemm",),
    )


def report(
    diagnostics: Iterable[Diagnostic], arguments: argparse.Namespace, outcome: str = ""
) -> int:
    """Print diagnostics in the form that `--diag` selects; return the exit code."""
    found = tuple(diagnostics)
    if arguments.diag == "json":
        sys.stdout.write(render_json(found))
    elif arguments.diag == "sarif":
        from pipelink_rules.diagnostics.sarif import render_sarif

        sys.stdout.write(render_sarif(found))
    elif found:
        root = arguments.root or None
        color = sys.stderr.isatty() and "NO_COLOR" not in os.environ
        sys.stdout.flush()
        sys.stderr.write(render_text(found, color=color, root=root, outcome=outcome))
    return exit_code(found)
