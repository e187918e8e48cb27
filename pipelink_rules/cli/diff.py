"""`pipelink diff A B`: what changed between two links."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `diff`."""
    parser.add_argument("before", metavar="A", help="build folder of a megakernel")
    parser.add_argument("after", metavar="B", help="build folder of a megakernel")


def run(arguments: argparse.Namespace) -> int:
    """Prints the differences."""
    from pipelink_rules.report.diff import diff_folders

    sys.stdout.write(diff_folders(arguments.before, arguments.after))
    return 0
