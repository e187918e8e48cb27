"""`pipelink explain PL0202`: the page of a code; without a code, the list of all."""

from __future__ import annotations

import argparse
import sys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `explain`."""
    parser.add_argument("codes", nargs="*", metavar="CODE", help="PL0202, 202, or its name")


def run(arguments: argparse.Namespace) -> int:
    """Prints the pages."""
    from pipelink_rules.diagnostics.catalogue import explain, list_codes

    pages = [explain(word) for word in arguments.codes] or [list_codes()]
    sys.stdout.write("\n".join(pages))
    return 0
