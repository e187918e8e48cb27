"""The search for the smallest register count, against a table of all counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelink_rules.compile.register_probe import Attempt, only_kernel, smallest, with_registers
from pipelink_rules.toolkit.ptxas_log import AssemblerLog

LOWEST, LIMIT = 24, 240
COUNTS = list(range(LOWEST, LIMIT + 8, 8))


class Assembler:
    """Fits according to a table; counts the requested counts."""

    def __init__(self, fits: dict[int, bool], used: int = LIMIT):
        self.fits, self.used, self.requested = fits, used, []

    def __call__(self, counts: list[int]) -> list[Attempt]:
        assert counts == sorted(set(counts))
        self.requested += counts
        log = AssemblerLog((), ())
        return [Attempt(True, self.fits[count], min(count, self.used), log) for count in counts]


@given(st.sampled_from([*COUNTS, 999]), st.sampled_from(COUNTS), st.integers(0, 1))
def test_the_border_is_found_from_any_guess(border: int, guess: int, tight: int) -> None:
    fits = {count: count >= border for count in COUNTS}
    # ptxas may use all it may, or stop at what it needs.
    assembler = Assembler(fits, LIMIT if tight else min(border, LIMIT))
    expected = border if border <= LIMIT else 0
    assert smallest(assembler, LOWEST, LIMIT, guess) == expected
    assert len(set(assembler.requested)) <= 16


@given(st.sampled_from(COUNTS))
def test_an_exact_contract_is_settled_by_few_runs(border: int) -> None:
    fits = {count: count >= border for count in COUNTS}
    assembler = Assembler(fits, used=border)
    assert smallest(assembler, LOWEST, LIMIT, border) == border
    assert len(set(assembler.requested)) <= 3


@given(st.sampled_from(COUNTS), st.sampled_from(COUNTS))
def test_fits_below_a_gap_are_no_answer(hole: int, guess: int) -> None:
    """ptxas was seen to fit 144 registers and to spill with 152 to 200."""
    fits = dict.fromkeys(COUNTS, True)
    for count in range(hole, min(hole + 48, LIMIT), 8):
        fits[count] = False
    found = smallest(Assembler(fits), LOWEST, LIMIT, guess)
    assert fits[found]
    following = [count for count in COUNTS if count > found]
    assert all(fits[count] for count in following[:2])


def test_registers_are_put_behind_the_thread_count_once() -> None:
    text = ".visible .entry k(\n)\n.maxntid 128, 1, 1\n{\nret;\n}\n"
    assert with_registers(text, 64) == text.replace("1, 1\n", "1, 1\n.maxnreg 64\n")


def test_other_kernels_are_taken_out() -> None:
    kernel = ".visible .entry {0}(\n.param .b64 {0}_p\n)\n.maxntid 32, 1, 1\n{{\n{{ ret; }}\n}}\n"
    table = ".global .b8 table[4] = {1};\n"
    text = table + kernel.format("one") + kernel.format("two") + kernel.format("three")
    assert only_kernel(text, "two").split() == (table + kernel.format("two")).split()
