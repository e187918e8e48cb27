"""`pipelink`: the command line, one subcommand per stage.

A command's module is imported when the command runs, so that `pipelink check` starts fast.
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
# command -> its module, where that has another name.  A module defines `run_<command>` for each of
# its commands.
_MODULES = {
    **dict.fromkeys(("check", "place"), "stages"),
    **dict.fromkeys(("map", "diff", "explain", "trace", "record"), "reports"),
}
INPUTS = ("file", "folder", "manifest", "before", "after")  # arguments that name what is read


def _argument(*names: str, **options: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    return names, options


_BUILD = _argument(
    "--build", default="build", help="build directory that caches toolkit self-tests"
)
_FOLDER = _argument("folder", metavar="FOLDER", help="build/<target>/megakernels/<name>")
_KINDS = ".contract.yaml (contract or sidecar), .manifest.json, .fatbin, .cubin, a stage's .json"
_SCRIPTS = {
    "gpu": "correctness and time of every megakernel on a GPU",
    "host": "check, place, swap and null build on this machine",
    "tables": "docs/results.md from benchmarks/results/",
}
_LISTED = "; ".join(f"{name}: {text}" for name, text in _SCRIPTS.items())
# command -> its arguments, as `add_argument` takes them
ARGUMENTS = {
    "doctor": [_BUILD],
    "check": [
        _argument("file", metavar="FILE", help="<name>.program.json or <name>.spec.json"),
        _argument("--arch", help="target, for a .spec.json (default: its first)"),
    ],
    "place": [
        _argument("file", metavar="FILE", help="<name>.program.json, or its build folder"),
        _argument("-o", "--output", help="where to write <name>.placement.json; - for stdout"),
        _argument("--keep", metavar="PLACEMENT", help="keep this earlier placement where possible"),
    ],
    "map": [_FOLDER],
    "link": [
        _FOLDER,
        _argument("-o", "--output", required=True, metavar="OUT", help="folder to write to"),
        _argument("--linker", choices=("nvlink", "nvjitlink"), default="nvlink"),
        _argument("--runtime", help="device runtime to link (default: the program's)"),
    ],
    "diff": [
        _argument("before", metavar="A", help="build folder of a megakernel"),
        _argument("after", metavar="B", help="build folder of a megakernel"),
    ],
    "explain": [_argument("codes", nargs="*", metavar="CODE", help="PL0202, 202, or its name")],
    "inspect": [_argument("file", metavar="FILE", help=_KINDS), _BUILD],
    "run": [
        _argument("manifest", metavar="MANIFEST", help="<name>.manifest.json, or its folder"),
        _argument("values", nargs="*", metavar="NAME=VALUE", help="sizes and scalars"),
        _argument("--times", type=int, default=20, help="timed launches (default 20)"),
        _argument("--cubin", help="another cubin with the same interface, such as a twin"),
    ],
    "trace": [
        _argument("file", metavar="FILE", help="JSON file written by `Kernel.trace(file=...)`"),
        _argument(
            "-o", "--output", metavar="OUT", help="also write the trace events for ui.perfetto.dev"
        ),
    ],
    "record": [
        _argument("file", metavar="FILE", help="JSON file written by `Kernel.record(file=...)`")
    ],
    "bench": [
        _argument("script", choices=_SCRIPTS, metavar="SCRIPT", help=_LISTED),
        _argument("rest", nargs=argparse.REMAINDER, help="arguments of the script"),
    ],
}


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
        command = arguments.command
        module = importlib.import_module(f"pipelink_rules.cli.{_MODULES.get(command, command)}")
        return int(getattr(module, f"run_{command}")(arguments))


class _Help(argparse.HelpFormatter):
    """Help text as wide as the terminal, of fixed width in a file."""

    def __init__(self, prog: str) -> None:
        from pipelink_rules.diagnostics.text_table import output_width

        super().__init__(prog, width=output_width(100))


class _CommandParser(argparse.ArgumentParser):
    """The parser of one command: words that it does not know are errors of the command."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
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
        command = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            formatter_class=_Help,
            allow_abbrev=False,
        )
        _add_global_options(command, argparse.SUPPRESS, argparse.SUPPRESS)
        for names, options in ARGUMENTS[name]:
            command.add_argument(*names, **options)
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
