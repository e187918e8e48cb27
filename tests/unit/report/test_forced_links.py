"""The table of forced links: every mistake is refused with its code, every edit still fits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import shipped_declarations
import yaml

from benchmarks.validation import accepted_mutants, edit_artifacts, refused_cases, repository_copy
from benchmarks.validation.result_files import read
from pipelink_rules.glue.emit import emit_glue
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.place.verify import verify

ROOT = Path(__file__).parents[3]
TESTS = ROOT / "tests"
sys.path += [str(TESTS / "mutation"), str(TESTS / "unit" / "launch")]

from manifests import GEMM  # noqa: E402

CASES = refused_cases.cases()
CHECKED = [case for case in CASES if case.checked]
DRAWN = accepted_mutants.drawn(read(accepted_mutants.MUTATION)["trials"])


def test_many_mistakes_of_many_kinds() -> None:
    assert len(CASES) >= 30 and len({case.name for case in CASES}) == len(CASES)
    assert len({code for case in CASES for code in case.codes}) >= 18
    for case in CASES:
        assert case.checked or case.later, f"{case.name} changes nothing"


@pytest.mark.parametrize("case", CHECKED, ids=lambda case: case.name)
def test_the_check_refuses_each_with_its_codes(case: refused_cases.Case) -> None:
    assert refused_cases.findings_of(case) == set(case.codes)


@pytest.mark.parametrize("case", CHECKED, ids=lambda case: case.name)
def test_the_machine_code_is_wrong_too(case: refused_cases.Case) -> None:
    """Not only the contract: something that the compiler, the glue or the driver reads."""
    source = any("source" in parts for parts in case.edits.values())
    numbers = bool(case.declaration or case.placement or case.glue or case.boxes)
    # The placement and the header carry these to the machine code.
    clauses = any(
        word in old + new and old != new
        for parts in case.edits.values()
        for old, new in parts.get("contract", [])
        for word in ("count:", "swizzle", "rate", "scope")
    )
    assert source or numbers or clauses


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.placement or case.glue], ids=lambda case: case.name
)
def test_edits_of_generated_files_fit(case: refused_cases.Case) -> None:
    program, placement = (
        made(case.megakernel)
        for made in (shipped_declarations.program_of, shipped_declarations.placement_of)
    )
    made = edit_artifacts.replaced(placement, case.placement)
    assert (made != placement) == bool(case.placement)
    text = emit_glue(program, made)
    assert refused_cases.edited(text, case.glue, case.name) != text or not case.glue
    if case.placement:  # the verifier says so, for the contracts as they are
        assert verify(placement_problem(program), made)


def test_an_edit_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 times"):
        refused_cases.edited("abc", [["x", "y"]], "here")
    with pytest.raises(ValueError, match="2 times"):
        refused_cases.edited("abab", [["b", "c"]], "here")


def test_codes_are_allowed_for_the_link_alone() -> None:
    for case in CHECKED:
        assert "allow" not in refused_cases.declaration_of(case, allowed=False)
        allowed = dict(refused_cases.declaration_of(case, allowed=True).get("allow", {}))
        assert set(allowed) == (set() if case.inconclusive else set(case.codes))


@pytest.mark.parametrize("name", sorted(shipped_declarations.megakernels()))
def test_a_written_declaration_says_the_same(name: str) -> None:
    declaration = shipped_declarations.megakernels()[name]
    seen: dict[str, Any] = {}

    class Env:
        def Megakernel(self, **keywords: Any) -> None:
            seen.update(keywords)

    text = repository_copy.sconscript_of(declaration)
    exec(text, {"Import": lambda *names: None, "env": Env()})
    assert seen == declaration


def test_boxes_of_tensor_maps() -> None:
    changed = edit_artifacts.with_boxes(GEMM, {"a": [64, 64]})
    assert [item.box for item in changed.parameters[:2]] == [(64, 64), (256, 64)]
    assert edit_artifacts.with_boxes(GEMM, {}) == GEMM


def test_trials_are_drawn_by_seed() -> None:
    lines = [f"trial {number}" for number in range(100)]
    order = accepted_mutants.drawn(lines)
    assert order == accepted_mutants.drawn(lines) and sorted(order) == sorted(lines) != order
    assert order != accepted_mutants.drawn(lines, seed=4)
    assert accepted_mutants.drawn(lines, count=10)[:10] != sorted(order)[:10]


def test_every_trial_can_be_found_and_written() -> None:
    for text in DRAWN[:30]:
        megakernel, mutant = accepted_mutants.found_by(text)
        ((name, written),) = accepted_mutants.files_of(megakernel, mutant).items()
        assert (ROOT / name).is_file() and written != (ROOT / name).read_text(encoding="utf-8")
        if name.endswith(".yaml"):
            assert yaml.safe_load(written) != yaml.safe_load((ROOT / name).read_text("utf-8"))
    with pytest.raises(ValueError, match="no mutant"):
        accepted_mutants.found_by("gemm: declaration stages: as declared -> 77")
