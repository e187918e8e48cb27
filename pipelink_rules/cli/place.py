"""`pipelink place FILE`: a program's resources, solved; nothing is linked."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pipelink_rules.cli.locate_inputs import megakernel_in, root_of
from pipelink_rules.cli.report import read_json
from pipelink_rules.files.codec import to_json, write_json
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of `place`."""
    parser.add_argument("file", metavar="FILE", help="<name>.program.json, or its build folder")
    parser.add_argument("-o", "--output", help="where to write <name>.placement.json; - for stdout")
    parser.add_argument("--keep", metavar="PLACEMENT", help="a placement to change little of")


def run(arguments: argparse.Namespace) -> int:
    """Places, verifies without the solver, and prints or writes."""
    from pipelink_rules.place.place import place
    from pipelink_rules.place.problem import placement_problem
    from pipelink_rules.place.verify import verify

    file = megakernel_in(arguments.file, ".program.json")
    root_of(arguments, file)
    program = read_json(file, Program)
    previous = read_json(arguments.keep, Placement) if arguments.keep else None
    problem = placement_problem(program)
    placement = place(problem, previous)
    faults = verify(problem, placement)
    if faults:
        raise AssertionError("; ".join(faults))
    if arguments.output == "-":
        sys.stdout.write(to_json(placement))
        return 0
    if arguments.output:
        write_json(Path(arguments.output), placement)
    sys.stdout.write(described(program, placement))
    return 0


def described(program: Program, placement: Placement) -> str:
    """The placement without a link: memory and warps."""
    from pipelink_rules.report.map import placement_text

    return placement_text(program, placement)
