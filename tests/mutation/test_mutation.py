"""A seeded sample of all mutants: refused with a code of its kind, or right for a reason."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import shipped_declarations
import yaml
from reasons import CLASSES
from valid import findings_of
from whole import Outcome, mutants, outcome

from benchmarks.validation import mutation, page

ROOT = Path(__file__).resolve().parents[2]

SAMPLE = 12  # mutants of each megakernel
RESULTS = json.loads((page.VALIDATION / "mutation.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("megakernel", sorted(shipped_declarations.megakernels()))
def test_mutants_are_refused_or_right_for_a_reason(megakernel: str) -> None:
    sample = random.Random(f"sample {megakernel}").sample(mutants(megakernel), SAMPLE)
    for mutant in sample:
        found = outcome(megakernel, mutant)
        known = RESULTS["kinds"][mutant.kind]
        if found.stage:
            assert set(found.codes) & set(known["codes"]), found.text
        else:
            assert found.reason in known["equivalent"], found.text


def test_the_full_run_left_no_survivor() -> None:
    assert RESULTS["survivors"] == []
    assert len(RESULTS["megakernels"]) >= 10
    codes = {code for table in RESULTS["kinds"].values() for code in table.get("codes", {})}
    assert not [code for code in codes if code.startswith("PL99")]


def test_every_class_has_a_reason() -> None:
    reasons = yaml.safe_load(page.REASONS.read_text(encoding="utf-8"))
    assert list(reasons) == list(CLASSES)
    used = {name for t in RESULTS["megakernels"].values() for name in t["equivalent"]}
    assert used == set(CLASSES)


def test_survivors_are_reported() -> None:
    """A hole would be counted, named and make the run fail."""
    hole = Outcome("gemm", "", "lag", "roles", "1", "0", "", (), "")
    made = mutation.summary([hole])
    assert made["survivors"] == [hole.text]
    assert made["kinds"]["lag"]["survivors"] == {"all": 1}


@pytest.mark.parametrize("start", [0, 1000])
def test_right_programs_have_no_finding(start: int) -> None:
    """By construction; 600 of them in benchmarks/validation/interleavings.py."""
    assert [line for seed in range(start, start + 12) for line in findings_of(seed)] == []


def test_page_shows_the_results() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == page.page(), "run benchmarks/validation/page.py"
