"""`pipelink record FILE`: a recorded launch against the contracts of its components."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pipelink_rules.cli.report import read_json
from pipelink_rules.model.recording import Recording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `record`."""
    parser.add_argument("file", metavar="FILE", help="what `Kernel.record` gave, saved as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Prints the comparison; 1 where a role differs or the launch failed."""
    from pipelink_rules.launch.compare_recording import agrees, compare, report

    recording = read_json(Path(arguments.file), Recording)
    results = compare(recording)
    sys.stdout.write(report(recording, results))
    return 0 if agrees(results) and not recording.problem else 1
