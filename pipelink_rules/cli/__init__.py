"""`pipelink`: the command line, one subcommand per stage.

A command's module is imported when the command is parsed, so that `pipelink check` starts fast.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from pipelink_rules import __version__

# command -> what it does
COMMANDS = {
    "doctor": "report usable CUDA toolkits, compiler and GPU, and why others were rejected",
    "check": "check a composition (.spec.json or .program.json) without compiling",
    "place": "compute the placement of a program: .program.json -> .placement.json",
    "map": "print the link map of a built megakernel",
    "link": "relink a built megakernel with another linker or runtime",
    "diff": "compare two links of a megakernel",
    "explain": "explain a diagnostic code",
    "inspect": "print a contract, sidecar, object, cubin, manifest or stage file",
    "run": "run a linked megakernel on random inputs and time it",
    "trace": "summarize the stalls of a traced launch, or convert it for Perfetto",
    "record": "compare a recorded launch with its contracts",
    "bench": "run a benchmark of this checkout",
}
# command -> its module, where that has another name.  A module defines `add_<command>_arguments`
# and `run_<command>` for each of its commands.
_MODULES = {
    **dict.fromkeys(("check", "place"), "stages"),
    **dict.fromkeys(("map", "diff", "explain", "trace", "record"), "reports"),
}
INPUTS = ("file", "folder", "manifest", "before", "after")  # arguments that name what is read


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return 0 (ok), 1 (user), 2 (usage), 3 (contract) or 4 (internal error)."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(words)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `pipelink map ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except SystemExit as done:  # argparse
        return done.code if isinstance(done.code, int) else 2


def _run(words: list[str]) -> int:
    from pipelink_rules.diagnostics.diagnostic import PipelinkError

    arguments = parse_arguments(words)
    try:
        return perform(arguments)
    except PipelinkError as problem:
        from pipelink_rules.cli.command_io import report

        return report(problem.diagnostics, arguments)


def parse_arguments(words: Sequence[str]) -> argparse.Namespace:
    """Return the parsed command line; SystemExit after a usage error, --help or --version."""
    parser = _parser()
    arguments = parser.parse_args(words)
    if arguments.command is None:
        parser.print_help()
        parser.exit()
    return arguments


def perform(arguments: argparse.Namespace) -> int:
    """Run a command; raise PipelinkError if it fails."""
    from pipelink_rules.diagnostics.internal_error import reporting_internal_errors

    values = vars(arguments)
    files = [values[name] for name in INPUTS if isinstance(values.get(name), str)]
    with reporting_internal_errors(f"pipelink {arguments.command}", *files):
        run = _function("run_{}", arguments.command)
        return int(run(arguments))


def _function(name: str, command: str) -> Any:
    """Return `run_map` of `pipelink_rules.cli.reports` for "run_{}" and `map`."""
    module = importlib.import_module(f"pipelink_rules.cli.{_MODULES.get(command, command)}")
    return getattr(module, name.format(command))


class _Help(argparse.HelpFormatter):
    """Help text as wide as the terminal, of fixed width in a file."""

    def __init__(self, prog: str) -> None:
        from pipelink_rules.diagnostics.text_table import output_width

        super().__init__(prog, width=output_width(100))


class _CommandParser(argparse.ArgumentParser):
    """The parser of one command, which imports the command's module when it is used."""

    def __init__(self, command: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._command = command

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the words behind the command's name; unknown ones are this command's errors."""
        if self._command:
            _add_global_options(self, argparse.SUPPRESS, argparse.SUPPRESS)
            _function("add_{}_arguments", self._command)(self)
            self._command = ""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pipelink",
        description="A linker for GPU kernel components.",
        epilog="Global options may stand before or after the command.",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"pipelink {__version__}")
    _add_global_options(parser, "text", None)
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="COMMAND", parser_class=_CommandParser
    )
    for name, text in COMMANDS.items():
        commands.add_parser(
            name,
            command=name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            formatter_class=_Help,
            allow_abbrev=False,
        )
    return parser


def _add_global_options(parser: argparse.ArgumentParser, diag: str, root: str | None) -> None:
    """`diag` and `root` are the defaults; a command's parser keeps what was parsed before it."""
    parser.add_argument(
        "--diag",
        choices=("text", "json", "sarif"),
        default=diag,
        help="write diagnostics as text to stderr (default), or as JSON or SARIF to stdout",
    )
    parser.add_argument(
        "--root",
        default=root,
        metavar="DIR",
        help="top of the repository (default: the nearest folder above with an SConstruct)",
    )
