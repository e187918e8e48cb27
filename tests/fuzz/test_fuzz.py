"""Whatever the input, it is accepted or refused with a code and a place: a sample of the faults.

`python -m benchmarks.validation.fuzz` tries 20,000 inputs of each kind; what it found stays below.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz_kinds import KINDS
from fuzz_verdict import verdict_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

EXAMPLES = 30
SLOW = (
    *("program", "program to place", "program to link", "placement", "earlier placement"),
    *("compared program", "audit", "spec", "declaration"),
)

# (kind, seed): each was another exception, a hang or a finding without a place once.
FOUND = [
    ("declaration", 11),  # a line break in a message
    ("declaration", 169),  # half of a surrogate pair
    ("spec", 19),  # a finding without a place
    ("spec", 61),
    ("program", 71),  # names that lead nowhere
    ("program", 226),
    ("program", 500292),  # a hand-over in 2**63 shares
    ("program to place", 23),
    ("program to place", 48),  # a size of 2**63 bytes
    ("program to place", 204),  # a role of 2**63 registers, counted down by 8
    ("program to link", 38),
    ("program to link", 142),
    ("program, other names", 73),  # `await` of what is none of its kinds
    ("program to link, other names", 215),  # a size of a contract that the program does not have
    ("program to link, other names", 260),  # a tile scheduler among the roles
    ("program to link, other names", 1185),  # a ring port without a ring
    ("compared program, other names", 163),  # a program beside the placement of another
    ("recording, other names", 124),  # 2**31 work tiles
    ("traced recording, other names", 41),  # a warp without events
    ("traced recording, other names", 1041),  # operations on a ring of no stages
    ("placement", 34),
    ("placement", 136),
    ("manifest", 7),  # a null character in the name of the cubin
    ("manifest", 61),  # an expression over a size that is not there
    ("manifest", 98),
    ("manifest", 104),
    ("sidecar", 8),  # not UTF-8
    ("cubin", 41),  # a section that begins at 2**63
    ("ptx", 0),  # a brace that is not closed
    ("ptx", 143),
    ("compiler log", 62),  # a file name with a null character
    ("depfile", 3),
    ("linker log", 2844),  # a number of 5,000 digits
    ("linker log", 11139),  # a symbol with a null character
    ("machine code", 6553),
]


def survives(name: str, seed: int, folder: Path) -> None:
    kind = KINDS[name]
    value = kind.broken(seed)
    verdict = verdict_of(lambda: kind.read(value, folder), str(folder), kind.positions)
    again = f"benchmarks/validation/fuzz.py --kind {name!r} --show {seed}"
    assert verdict.outcome != "fault", f"{verdict.reason}: {again}"


@pytest.mark.parametrize("name", KINDS)
def test_good_input_is_accepted(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    for value in kind.good()[:3]:
        verdict = verdict_of(lambda value=value: kind.read(value, tmp_path), str(tmp_path))
        assert verdict.outcome == "accepted", (verdict.reason, verdict.codes)


@pytest.mark.parametrize("name", KINDS)
def test_broken_input(name: str, tmp_path: Path) -> None:
    @settings(
        max_examples=EXAMPLES // (1 + (name.partition(",")[0] in SLOW)),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.integers(0, 2**32))
    def each(seed: int) -> None:
        survives(name, seed, tmp_path)

    each()


@pytest.mark.parametrize(("name", "seed"), FOUND)
def test_what_was_found(name: str, seed: int, tmp_path: Path) -> None:
    survives(name, seed, tmp_path)
