"""`pipelink map FOLDER`: the link map, made from the stage files beside each other."""

from __future__ import annotations

import argparse
import sys

from pipelink_rules.cli.locate_inputs import megakernel_in, stem_of
from pipelink_rules.cli.report import read_json
from pipelink_rules.model.linked_kernel import Audit
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `map`."""
    parser.add_argument("folder", metavar="FOLDER", help="build/<target>/megakernels/<name>")


def run(arguments: argparse.Namespace) -> int:
    """Prints the map; without an audit (nothing was linked) the placement alone."""
    from pipelink_rules.place.problem import placement_problem
    from pipelink_rules.place.verify import demand
    from pipelink_rules.report.map import placement_text, render_map

    file = megakernel_in(arguments.folder, ".program.json")
    stem, folder = stem_of(file, ".program.json"), file.parent
    program = read_json(file, Program)
    placed = folder / f"{stem}.placement.json"
    placement = read_json(placed, Placement)
    demand(placement_problem(program), placement, str(placed))
    audit = folder / f"{stem}.audit.json"
    if audit.is_file():
        sys.stdout.write(render_map(program, placement, read_json(audit, Audit)))
    else:
        sys.stdout.write(placement_text(program, placement))
    return 0
