"""A placement that was edited, or belongs to another program, gets no glue and no map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from shipped_declarations import placement_of, program_of

from pipelink_rules.actions.stage_actions import write_glue
from pipelink_rules.cli import main
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.codec import write_json
from pipelink_rules.model.placement import Placement
from pipelink_rules.model.program import Program
from pipelink_rules.place.place import place
from pipelink_rules.place.problem import placement_problem

NAME = "gemm_bias_gelu_epilogue_warps"
EDITS: dict[str, Callable[[Placement], Placement]] = {
    "another megakernel": lambda _: placement_of("scaled_add"),
    "stages": lambda p: replace(p, stages=tuple((n, 33) for n, _ in p.stages)),
    "an item over another": lambda p: replace(p, offsets=tuple((n, 0) for n, _ in p.offsets)),
    "not aligned": lambda p: replace(p, offsets=tuple((n, at + 8) for n, at in p.offsets)),
    "barriers": lambda p: replace(p, barriers=tuple((n, 0) for n, _ in p.barriers)),
    "warps": lambda p: replace(p, warps=tuple((n, 0) for n, _ in p.warps)),
    "threads": lambda p: replace(p, threads=p.threads + 32),
    "threads beyond counting": lambda p: replace(p, threads=2**62),
    "a warp beyond counting": lambda p: replace(p, warps=tuple((n, 2**62) for n, _ in p.warps)),
    "entry registers": lambda p: replace(p, entry_registers=p.entry_registers + 8),
    "setmaxnreg": lambda p: replace(
        p, warpgroups=tuple(replace(group, registers=240) for group in p.warpgroups)
    ),
    "size": lambda p: replace(p, shared_bytes=p.shared_bytes // 2),
}


def written(folder: Path, program: Program, placement: Placement) -> tuple[Path, Path]:
    paths = folder / f"{NAME}.program.json", folder / f"{NAME}.placement.json"
    write_json(paths[0], program)
    write_json(paths[1], placement)
    return paths


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_placement_is_refused(
    edit: Callable[[Placement], Placement], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = written(tmp_path, program_of(NAME), edit(placement_of(NAME)))
    with pytest.raises(PipelinkError) as refused:
        write_glue(*paths, tmp_path / "glue.cu")
    assert [finding.code for finding in refused.value.diagnostics] == ["PL0107"]
    assert refused.value.diagnostics[0].labels[0].span.file == str(paths[1])
    assert not (tmp_path / "glue.cu").exists()
    assert main(["map", str(tmp_path)]) != 0
    assert "PL0107" in capsys.readouterr().err


def test_stages_that_hang_are_refused(tmp_path: Path) -> None:
    """A placement that solves its problem, of a program whose range of stages was edited."""
    program = program_of("gemm")
    single = (replace(item, minimum=1, maximum=1) for item in program.channels)
    edited = replace(program, channels=tuple(single))
    with pytest.raises(PipelinkError) as refused:
        write_glue(
            *written(tmp_path, edited, place(placement_problem(edited))), tmp_path / "glue.cu"
        )
    assert [finding.code for finding in refused.value.diagnostics] == ["PL0401"]


def test_the_placement_itself_is_taken(tmp_path: Path) -> None:
    write_glue(*written(tmp_path, program_of(NAME), placement_of(NAME)), tmp_path / "glue.cu")
    assert (tmp_path / "glue.cu").is_file()
