"""Does the checker find what is wrong, and only that?  docs/validation.md.

Mutants, model checker, fuzzer and copies of the repository are those of the tests.
"""

from __future__ import annotations

import sys

from benchmarks.paths import TESTS

sys.path[:0] = [str(folder) for folder in (TESTS, TESTS / "mutation", TESTS / "fuzz")]
