"""The same problem gives the same bytes, in any process and any order."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

from pipelink_rules.files.codec import read_json, to_json, write_json
from pipelink_rules.model.placement import (
    Placement,
    PlacementProblem,
)
from pipelink_rules.place.place import place
from tests.unit.place.problems import decode, gemm, stream

PROGRAM = """
import sys
if sys.argv[1] == "junk":
    import z3
    for number in range(3):
        solver = z3.Solver()
        solver.add([z3.Int(f"k{i}") + number < z3.Int(f"s{i}") * i for i in range(40)])
        solver.check()
from pipelink_rules.files.codec import to_json
from pipelink_rules.place.place import place
from tests.unit.place.problems import decode, gemm, stream
sys.stdout.write("".join(to_json(place(p)) for p in (gemm(), stream(16), decode(4))))
"""


def test_same_bytes_across_hash_seeds_and_junk_contexts() -> None:
    here = "".join(to_json(place(problem)) for problem in (gemm(), stream(16), decode(4)))
    for seed, junk in (("1", "no"), ("77", "junk")):
        there = subprocess.run(
            [sys.executable, "-c", PROGRAM, junk],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(p or "." for p in sys.path)},
        )
        assert there.stdout == here


def test_the_order_of_declaration_does_not_matter() -> None:
    problem = stream(16)
    turned = replace(
        problem,
        items=problem.items[::-1],
        stages=problem.stages[::-1],
        roles=problem.roles[::-1],
        mbarriers_per_stage=problem.mbarriers_per_stage[::-1],
    )
    assert place(turned) == place(problem)


def test_placements_are_files(tmp_path: object) -> None:
    placement = place(gemm())
    path = write_json(f"{tmp_path}/gemm.placement.json", placement)
    assert read_json(path, Placement) == placement
    path = write_json(f"{tmp_path}/gemm.problem.json", gemm())
    assert read_json(path, PlacementProblem) == gemm()


def test_solver_is_imported_only_when_needed() -> None:
    code = "import sys, pipelink_rules.place.place; sys.exit('z3' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(p or "." for p in sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environment).returncode == 0
