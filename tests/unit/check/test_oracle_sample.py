"""A sample of benchmarks/oracle.py: the graph and the executor agree; the full run did."""

from __future__ import annotations

import json
from pathlib import Path

from unit.check.oracle_comparison import compare

RESULTS = Path(__file__).resolve().parents[3] / "benchmarks/results/proof/oracle.json"


def test_sample_of_the_full_run_agrees() -> None:
    found = compare(range(5000, 5040))
    assert not found.missed and not found.alarms
    assert len(found.verdicts) >= 4 and sum(found.verdicts.values()) == 200


def test_the_full_run_agreed() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert results["compositions"] >= 20_000 and results["valid_programs"] >= 500
    assert not results["missed"] and not results["alarms"]
    assert not results["alarms_at_valid_programs"]
    assert results["verdicts"]["ok"] >= 5_000
