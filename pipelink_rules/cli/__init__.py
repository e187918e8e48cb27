"""`pipelink`: every stage from the command line, each entered from the file of the stage before.

Only the module of the command asked for is imported, so that `pipelink check` starts fast.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from pipelink_rules import __version__

# command -> what it does.  The module is pipelink_rules.cli.<command>.
COMMANDS = {
    "doctor": "what this machine offers: toolkits, compiler, GPU, and why others were refused",
    "check": "check a composition: a .spec.json or .program.json",
    "place": "place a program: .program.json -> .placement.json",
    "map": "print the link map of a built megakernel",
    "link": "link the objects of a built megakernel again, with another linker or runtime",
    "diff": "what changed between two links",
    "explain": "explain a diagnostic code",
    "inspect": "show what is in a contract, sidecar, object, cubin, manifest or stage file",
    "run": "run a linked megakernel on random inputs",
    "trace": "who waits for whom in a traced launch, and its trace for Perfetto",
    "record": "compare a recorded launch with the contracts of its components",
    "bench": "run the benchmarks of a checkout",
}


INPUTS = ("file", "folder", "manifest", "before", "after")  # arguments that name what is read


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point; returns the exit code (0 ok, 1 user, 2 usage, 3 contract, 4 our bug)."""
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

    name = next((word for word in words if word in COMMANDS), "")
    if name in COMMANDS:
        parser = argparse.ArgumentParser(
            prog=f"pipelink {name}", description=COMMANDS[name] + ".", formatter_class=_Help
        )
        _common(parser)
        module = importlib.import_module(f"pipelink_rules.cli.{name}")
        module.add_arguments(parser)
        words.remove(name)
        arguments = parser.parse_args(words)
    else:
        arguments = _overview().parse_args(words or ["--help"])  # a usage error, help or version
        return 2
    from pipelink_rules.cli.report import report, report_internal_error

    try:
        return perform(module.run, arguments)
    except PipelinkError as problem:
        return report(problem.diagnostics, arguments)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as problem:
        if os.environ.get("PIPELINK_TRACEBACK") == "1":
            raise
        return report_internal_error(problem, name, arguments)


def perform(run: Callable[[argparse.Namespace], int], arguments: argparse.Namespace) -> int:
    """Runs a command; a file that contradicts itself is a finding about that file."""
    from pipelink_rules.files.bad_input import reporting_bad_input

    values = vars(arguments)
    files = [values[name] for name in INPUTS if isinstance(values.get(name), str)]
    if not files:
        return int(run(arguments))
    with reporting_bad_input(*files):
        return int(run(arguments))


class _Help(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal; in a file always the same."""

    def __init__(self, prog: str) -> None:
        from pipelink_rules.diagnostics.terminal_width import output_width

        super().__init__(prog, width=output_width(100))


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--diag",
        choices=("text", "json", "sarif"),
        default="text",
        help="findings as text on stderr (default), or on stdout as one document of JSON or SARIF",
    )
    parser.add_argument(
        "--root",
        default=None,
        metavar="DIR",
        help="top of the repository (default: the nearest folder above with an SConstruct)",
    )


def _overview() -> argparse.ArgumentParser:
    width = max(len(name) for name in COMMANDS)
    listed = "\n".join(f"  {name:{width}}  {text}" for name, text in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="pipelink",
        description="A linker for GPU kernel components.",
        epilog=f"commands:\n{listed}\n\n`pipelink COMMAND --help` says more about each.",
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=f"pipelink {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="see below")
    return parser
