"""Commands that read files of a build and print: `map`, `diff`, `explain`, `trace`, `record`."""

import argparse
import json
import sys
from pathlib import Path

from pipelink_rules.cli.command_io import megakernel_in, read_json, stem_of
from pipelink_rules.model.linked_kernel import Audit
from pipelink_rules.model.program import Program
from pipelink_rules.model.recording import Recording


def add_map_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `map`."""
    parser.add_argument("folder", metavar="FOLDER", help="build/<target>/megakernels/<name>")


def run_map(arguments: argparse.Namespace) -> int:
    """Print the map; without an audit (nothing was linked) only the placement."""
    from pipelink_rules.actions.stage_actions import allowed_findings
    from pipelink_rules.place.problem import read_placement
    from pipelink_rules.report.map import placement_text, render_map

    file = megakernel_in(arguments.folder, ".program.json")
    stem, folder = stem_of(file, ".program.json"), file.parent
    program = read_json(file, Program)
    placed = folder / f"{stem}.placement.json"
    placement = read_placement(placed, program)
    allowed = allowed_findings(program, placement, folder / f"{stem}.check.json")
    audit = folder / f"{stem}.audit.json"
    if audit.is_file():
        sys.stdout.write(render_map(program, placement, read_json(audit, Audit), allowed))
    else:
        sys.stdout.write(placement_text(program, placement, allowed))
    return 0


def add_diff_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `diff`."""
    parser.add_argument("before", metavar="A", help="build folder of a megakernel")
    parser.add_argument("after", metavar="B", help="build folder of a megakernel")


def run_diff(arguments: argparse.Namespace) -> int:
    """Print the differences."""
    from pipelink_rules.actions.link_actions import read_link
    from pipelink_rules.report.diff import diff_links

    sys.stdout.write(diff_links(read_link(arguments.before), read_link(arguments.after)))
    return 0


def add_explain_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `explain`."""
    parser.add_argument("codes", nargs="*", metavar="CODE", help="PL0202, 202, or its name")


def run_explain(arguments: argparse.Namespace) -> int:
    """Print the pages."""
    from pipelink_rules.diagnostics.catalogue import explain, list_codes

    pages = [explain(word) for word in arguments.codes] or [list_codes()]
    sys.stdout.write("\n".join(pages))
    return 0


def add_trace_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `trace`."""
    parser.add_argument(
        "file", metavar="FILE", help="JSON file written by `Kernel.trace(file=...)`"
    )
    parser.add_argument(
        "-o", "--output", metavar="OUT", help="also write the trace events for ui.perfetto.dev"
    )


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


def add_record_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `record`."""
    parser.add_argument(
        "file", metavar="FILE", help="JSON file written by `Kernel.record(file=...)`"
    )


def run_record(arguments: argparse.Namespace) -> int:
    """Print the comparison; return 1 if a role differs or the launch failed."""
    from pipelink_rules.launch.compare_recording import agrees, compare, report

    recording = read_json(Path(arguments.file), Recording)
    results = compare(recording)
    sys.stdout.write(report(recording, results))
    return 0 if agrees(results) and not recording.problem else 1
