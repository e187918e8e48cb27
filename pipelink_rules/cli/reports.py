"""Commands that read files of a build and print: `map`, `diff`, `explain`, `trace`, `record`."""

import argparse
import json
import sys
from pathlib import Path

from pipelink_rules.cli.command_io import megakernel_in, read_json
from pipelink_rules.model.recording import Recording


def run_map(arguments: argparse.Namespace) -> int:
    """Print the map; without an audit (nothing was linked) only the placement."""
    from pipelink_rules.actions.link_actions import link_of
    from pipelink_rules.report.map import render_map

    file = megakernel_in(arguments.folder, ".program.json")
    link = link_of(file.with_name(file.name.removesuffix(".program.json")))
    sys.stdout.write(render_map(link.program, link.placement, link.audit, link.allowed))
    return 0


def run_diff(arguments: argparse.Namespace) -> int:
    """Print the differences."""
    from pipelink_rules.actions.link_actions import read_link
    from pipelink_rules.report.diff import diff_links

    sys.stdout.write(diff_links(read_link(arguments.before), read_link(arguments.after)))
    return 0


def run_explain(arguments: argparse.Namespace) -> int:
    """Print the pages."""
    from pipelink_rules.diagnostics.catalogue import explain, list_codes

    pages = [explain(word) for word in arguments.codes] or [list_codes()]
    sys.stdout.write("\n".join(pages))
    return 0


def run_trace(arguments: argparse.Namespace) -> int:
    """Print the summary; write the trace events to `--output`."""
    from pipelink_rules.files.atomic import write_text
    from pipelink_rules.report.chrome_trace import chrome_trace
    from pipelink_rules.report.stalls import stall_report

    recording = read_json(Path(arguments.file), Recording)
    sys.stdout.write(stall_report(recording))
    if arguments.output:
        write_text(arguments.output, json.dumps(chrome_trace(recording)) + "\n")
        sys.stdout.write(f"{arguments.output}: open it at https://ui.perfetto.dev\n")
    return 0


def run_record(arguments: argparse.Namespace) -> int:
    """Print the comparison; return 1 if a role differs or the launch failed."""
    from pipelink_rules.launch.compare_recording import agrees, compare, report

    recording = read_json(Path(arguments.file), Recording)
    results = compare(recording)
    sys.stdout.write(report(recording, results))
    return 0 if agrees(results) and not recording.problem else 1
