"""The folders that benchmarks read and write."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
BUILD = ROOT / "build"
RESULTS = ROOT / "benchmarks" / "results"
