"""`pipelink trace FILE`: who waits for whom in a traced launch, and the trace for Perfetto."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pipelink_rules.cli.report import read_json
from pipelink_rules.model.recording import Recording


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `trace`."""
    parser.add_argument("file", metavar="FILE", help="what `Kernel.trace` gave, saved as JSON")
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="also write the trace events for ui.perfetto.dev"
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the summary; writes the trace events where asked to."""
    from pipelink_rules.files.atomic import write_text
    from pipelink_rules.report.chrome_trace import chrome_trace
    from pipelink_rules.report.stalls import stall_report

    recording = read_json(Path(arguments.file), Recording)
    sys.stdout.write(stall_report(recording))
    if arguments.output:
        write_text(arguments.output, json.dumps(chrome_trace(recording)) + "\n")
        sys.stdout.write(f"{arguments.output}: open it at https://ui.perfetto.dev\n")
    return 0
