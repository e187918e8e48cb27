"""Mutants of the modules that judge others: the results of the full run, and a sample of it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from python_mutants import mutants

from benchmarks.validation import python_mutation

ROOT = Path(__file__).resolve().parents[2]
RESULTS = json.loads(python_mutation.OUT.read_text(encoding="utf-8"))
REASONS = yaml.safe_load(python_mutation.REASONS.read_text(encoding="utf-8"))
SAMPLE = 3  # mutants of a module, others for every text of it
LEAST = 0.95  # killed


@pytest.mark.parametrize("module", RESULTS)
def test_the_full_run_killed_nearly_all_and_explains_the_others(module: str) -> None:
    entry = RESULTS[module]
    assert entry["killed"] >= LEAST * entry["mutants"]
    assert entry["mutants"] == entry["killed"] + len(entry["survivors"])
    for survivor in entry["survivors"]:
        assert survivor["reason"] == REASONS[module][survivor["key"]]


@pytest.mark.parametrize("module", RESULTS)
def test_a_sample_is_killed(module: str) -> None:
    source = python_mutation.path_of(module).read_text(encoding="utf-8")
    keys = [mutant.key for mutant in mutants(source) if mutant.key not in REASONS[module]]
    sample = sorted(keys, key=lambda key: hashlib.sha256((key + source).encode()).digest())[:SAMPLE]
    arguments = [module, "--tests", *RESULTS[module]["tests"], "--only", *sample]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.validation.python_mutation", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    verdicts = done.stdout.splitlines()
    assert len(verdicts) == len(sample)
    assert [line for line in verdicts if not line.startswith("killed ")] == []


def test_every_operator_changes_what_it_says() -> None:
    source = """
def f(a, b=1):
    'a text'
    if a < b and not a in (1, 2):
        return max(a, b) + g(a, b, key=True)
    for x in [y for y in a if y]:
        continue
"""
    found = [mutant.text for mutant in mutants(source)]
    assert len(found) == len(set(found)) + 2  # 1 and 2, and 2 and 1: `b=1` and `(1, 2)`
    for text in (
        "compare: a < b -> a <= b",
        "compare: a in (1, 2) -> a not in (1, 2)",
        "negate: if a < b and (not a in (1, 2)): ... -> if not (a < b and (not a in (1, 2))): ...",
        "and/or: a < b and (not a in (1, 2)) -> a < b or not a in (1, 2)",
        "drop an operand: a < b and (not a in (1, 2)) -> a < b",
        "drop a sign: not a in (1, 2) -> a in (1, 2)",
        "arithmetic: max(a, b) + g(a, b, key=True) -> max(a, b) - g(a, b, key=True)",
        "extreme: max -> min",
        "swap arguments: g(a, b, key=True) -> g(b, a, key=True)",
        "drop an argument: g(a, b, key=True) -> g(a, b)",
        "constant: True -> False",
        "remove: continue -> pass",
    ):
        assert text in found, text
    assert not [text for text in found if "a text" in text or "swap arguments: max" in text]
