"""Tensor memory in a contract: its port, its operations, and what neither can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.header import emit_header
from pipelink_rules.contract.item_layout import tensor_columns
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.contract import Contract, Operation, Repeat

PARTS = Path(__file__).resolve().parents[2] / "golden_stages" / "check_components"
ACCUMULATE, DRAIN = (
    (PARTS / f"{name}.contract.yaml").read_text(encoding="utf-8")
    for name in ("accumulate", "drain")
)


def read(text: str, *edits: tuple[str, str]) -> Contract:
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return parse_contract(text, "c.contract.yaml")


def codes(text: str, *edits: tuple[str, str], **arguments: int) -> list[str]:
    try:
        contract = read(text, *edits)
        if arguments:
            bind(contract, arguments)
    except PipelinkError as problem:
        return [item.code for item in problem.diagnostics]
    return []


def test_operations() -> None:
    role = read(ACCUMULATE).role("mma")
    assert not role.uses_mma  # that is wgmma
    _, fence, loop, last = role.body
    assert isinstance(loop, Repeat) and isinstance(fence, Operation) and isinstance(last, Operation)
    _, mma, done = loop.body
    assert isinstance(mma, Operation) and isinstance(done, Operation)
    assert (fence.verb, fence.target) == ("fence", "tensor after")
    assert (mma.verb, mma.target, mma.source, mma.wgmma) == ("mma", "ab", "acc", False)
    assert (done.verb, done.target, done.source) == ("commit", "ab", "mma")
    assert (last.verb, last.target, last.source) == ("commit", "acc", "mma")
    awaits = read(DRAIN).role("store").body[2]
    assert isinstance(awaits, Repeat) and isinstance(awaits.body[1], Operation)
    assert (awaits.body[1].verb, awaits.body[1].target) == ("await", "tensor load")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("mma ab -> acc", "mma ab -> ab", "PL0015"),
        ("mma ab -> acc", "mma acc -> ab", "PL0015"),
        ("mma ab -> acc", "mma ab ->", "PL0014"),
        ("mma ab -> acc", "mma acc", "PL0015"),
        ("- wait ab", "- wait acc", "PL0015"),
        ("- acquire acc", "- expect acc", "PL0015"),
        ("- acquire acc", "- copy acc -> acc.x", "PL0015"),
        ("commit mma -> ab", "commit ab", "PL0015"),
        ("commit mma -> ab", "commit mma", "PL0015"),
        ("commit mma -> ab", "commit store -> ab", "PL0014"),
        ("commit mma -> ab", "commit -> ab", "PL0014"),
        ("fence tensor after", "fence tensor", "PL0014"),
        ("fence tensor after", "await tensor mma", "PL0014"),
        ("fence tensor after", "await tensor load 1", "PL0014"),
        ("arrivals: 1\n    stages", "proxy: async\n    stages", "PL0018"),
        ("arrivals: 1\n    stages", "tx_bytes: 64\n    stages", "PL0018"),
        ("    dtype: f32\n", "", "PL0006"),
        ("shape: [TM, TN]\n\n", "shape: [TM, TN, 1]\n\n", "PL0017"),
        ("    shape: [TM, TN]\n\n", "    item: {x: {dtype: f32, shape: [TM, TN]}}\n\n", "PL0018"),
    ],
)
def test_refused(old: str, new: str, code: str) -> None:
    assert code in codes(ACCUMULATE, (old, new))


def test_readers_do_not_choose_stages() -> None:
    assert codes(DRAIN, ("arrivals: 4,", "arrivals: 4, stages: {max: 1},")) == ["PL0018"]


@pytest.mark.parametrize(
    ("lanes", "columns", "good"),
    [(128, 256, True), (128, 16, True), (64, 128, False), (256, 128, False), (128, 8, False),
     (128, 272, False), (128, 24, False)],
)  # fmt: skip
def test_one_accumulator_of_the_instruction(lanes: int, columns: int, good: bool) -> None:
    found = codes(ACCUMULATE, TM=lanes, TN=columns, TK=64)
    assert found == ([] if good else ["PL0029"])


def test_only_f32_accumulators() -> None:
    assert codes(ACCUMULATE, ("dtype: f32", "dtype: T"), TM=128, TN=64, TK=64) == ["PL0029"]


def test_columns_and_header() -> None:
    variant = bind(read(ACCUMULATE), {"TM": 128, "TN": 192, "TK": 64})
    assert tensor_columns(variant.contract.port("acc")) == 192
    header = emit_header(variant)
    assert "pipelink::Ring acc;" in header and "pipelink::Cursor acc;" in header
