"""Counts, ranges and sizes that agree almost everywhere: decided for all values, with an example.

Every kind has rows that must be refused and rows that must not.  A row edits a golden base.
"""

from __future__ import annotations

from typing import Any

import pytest
from programs import findings

LOOP, RATE = "- repeat: k_blocks", "rate: k_blocks"
VALUE = 'k_blocks: {value: "ceildiv(K, TK)"}'
BYTES = "tx_bytes: rows * D * sizeof(T)"


def codes(base: str, edits: dict[str, Any]) -> list[str]:
    return [item.code for item in findings(base, **edits)]


def notes(base: str, edits: dict[str, Any]) -> str:
    return "\n".join(note for item in findings(base, **edits) for note in item.notes)


TRIPS = {  # count of the consumer -> an example
    "min(k_blocks, 20)": "k_blocks=21: 21 items produced, 20 consumed",
    "min(k_blocks, 400000)": "k_blocks=400001: 400001 items produced, 400000 consumed",
    "max(k_blocks - 3, 0)": "k_blocks=1: 1 item produced, 0 consumed",
    "k_blocks - 1": "k_blocks=1: 1 item produced, 0 consumed",
    "k_blocks + 1": "k_blocks=1: 1 item produced, 2 consumed",
    "k_blocks * (k_blocks != 77)": "k_blocks=77: 77 items produced, 0 consumed",
    "k_blocks + k_blocks // 100000": "k_blocks=100000: 100000 items produced, 100001 consumed",
    "k_blocks - k_blocks // 1048576": "k_blocks=1048576: 1048576 items produced, 1048575 consumed",
    "k_blocks // 2 * 2": "k_blocks=1: 1 item produced, 0 consumed",
    "k_blocks % 1000000": "k_blocks=1000000: 1000000 items produced, 0 consumed",
    "max(k_blocks, 2)": "k_blocks=1: 1 item produced, 2 consumed",
    "1": "k_blocks=2: 2 items produced, 1 consumed",
}


@pytest.mark.parametrize("count", TRIPS)
def test_another_number_of_trips(count: str) -> None:
    edits = {"mma": [[LOOP, f"- repeat: {count}"]]}
    assert "PL1002" in codes("gemm", edits)
    assert TRIPS[count] in notes("gemm", edits)


@pytest.mark.parametrize("count", TRIPS)
def test_another_rate(count: str) -> None:
    assert codes("gemm", {"mma": [[RATE, f"rate: {count}"]]}) == ["PL1002"]
    assert codes("gemm", {"load": [[RATE, f"rate: {count}"]]}) == ["PL1002"]
    both = {name: [[RATE, f"rate: {count}"]] for name in ("load", "mma")}
    assert codes("gemm", both) == ["PL1002"]  # the roles perform another


@pytest.mark.parametrize(
    "count",
    [
        "min(k_blocks, 33554432)",  # ceildiv(2^31 - 1, 64)
        "min(k_blocks, 20) + max(k_blocks - 20, 0)",
        "k_blocks // 2 + (k_blocks + 1) // 2",
        "2 * k_blocks - k_blocks",
        "k_blocks * (k_blocks > 0)",
        "(k_blocks * 3 + 2) // 3",
        "k_blocks + k_blocks // 40000000",
    ],
)
def test_the_same_number_written_otherwise(count: str) -> None:
    edits = {"mma": [[LOOP, f"- repeat: {count}"], [RATE, f"rate: {count}"]]}
    assert codes("gemm", edits) == []


def test_what_cannot_be_decided_is_an_error() -> None:
    count = "(k_blocks * k_blocks + k_blocks) // 2 * 2 - k_blocks * k_blocks"
    (found,) = findings("gemm", mma=[[LOOP, f"- repeat: {count}"], [RATE, f"rate: {count}"]])
    assert found.code == "PL1002" and found.message.startswith("cannot decide whether")
    assert found.suggestions == ("write both counts alike",)


def split(*counts: str) -> dict[str, Any]:
    """The loop of the mainloop in several parts."""
    whole = "      - repeat: k_blocks\n        body:\n          - wait ab\n          - mma ab\n"
    whole += "          - await mma 1\n          - release ab lag 1\n"
    parts = [whole.replace("k_blocks", count) for count in counts]
    return {"mma": [[whole, "".join(parts)]]}


@pytest.mark.parametrize(
    ("counts", "refused"),
    [
        (("min(k_blocks, 20)", "max(k_blocks - 20, 0)"), False),
        (("1", "k_blocks - 1"), False),
        (("k_blocks // 2", "k_blocks - k_blocks // 2"), False),
        (("min(k_blocks, 20)", "max(k_blocks - 21, 0)"), True),
        (("k_blocks // 2", "k_blocks // 2"), True),
        (("2", "k_blocks - 2"), True),  # a count below 0 is 0
    ],
)
def test_loops_in_parts(counts: tuple[str, ...], refused: bool) -> None:
    edits = split(*counts)
    edits["mma"].append(["fields: {k_blocks: {}}", "fields: {k_blocks: {min: 1}}"])
    assert ("PL1002" in codes("gemm", edits)) is refused
    assert refused or codes("gemm", edits) == []


EMPTY = ["{}", "{min: 0, max: 9}", '{value: "K // TK"}', '{value: "ceildiv(K, TK) - 1"}',
         '{value: "K // 65536"}', '{value: "ceildiv(K, TK) % 3"}', '{value: "M % 7"}',
         '{value: "ceildiv(K, TK) * (M != 1000003)"}', '{value: "max(ceildiv(K, TK) - 5, 0)"}',
         '{value: "(K > 4096) * 8"}']  # fmt: skip


@pytest.mark.parametrize("field", EMPTY)
def test_registers_that_a_loop_without_a_trip_leaves(field: str) -> None:
    (found,) = findings("gemm", tiles=[[VALUE, f"k_blocks: {field}"]])
    assert (found.code, found.subject) == ("PL0503", "mma.acc -> store.acc")
    assert "k_blocks=0" in found.found


@pytest.mark.parametrize(
    "field", ["{min: 1}", '{value: "ceildiv(K, TK)"}', '{value: "K // TK + 1"}', "{min: 3, max: 4}"]
)
def test_registers_that_every_work_tile_writes(field: str) -> None:
    assert codes("gemm", {"tiles": [[VALUE, f"k_blocks: {field}"]]}) == []


@pytest.mark.parametrize(
    ("reads", "refused"), [("min(k_blocks, 1)", False), ("1", True), ("min(k_blocks + 1, 1)", True)]
)
def test_a_reader_may_leave_out_what_is_not_written(reads: str, refused: bool) -> None:
    edits = {
        "tiles": [[VALUE, "k_blocks: {}"]],
        "store": [
            ["- read acc", f"- repeat: {reads}\n        body: [read acc]"],
            ["fields: {m: {}, n: {}}", "fields: {m: {}, n: {}, k_blocks: {}}"],
        ],
    }
    assert codes("gemm", edits) == ["PL0503"] * refused


def test_registers_written_in_a_loop_that_may_be_empty() -> None:
    edits = {
        "mma": [
            ["      - write acc\n", "      - repeat: k_blocks // 2\n        body: [write acc]\n"]
        ]
    }
    assert codes("gemm", edits) == ["PL0503"]


@pytest.mark.parametrize("columns", [8, 16, 24, 32, 40, 48, 56])
def test_rows_of_mma_are_as_long_as_the_swizzle(columns: int) -> None:
    found = findings("gemm", SConscript=[['"TK": 64', f'"TK": {columns}']])
    assert [item.code for item in found] == ["PL0601"]
    assert found[0].found == f"rows of {columns * 2} bytes"


@pytest.mark.parametrize("swizzle", [32, 64])
def test_rows_of_another_swizzle(swizzle: int) -> None:
    ends = [[f"shape: [{r}, TK], swizzle: 128}}", f"shape: [{r}, TK], swizzle: {swizzle}}}"]
            for r in ("TM", "TN")]  # fmt: skip
    boxes = [[f"box: [{r}, TK], swizzle: 128", f"box: [{r}, TK], swizzle: {swizzle}"]
             for r in ("TM", "TN")]  # fmt: skip
    for columns in (8, 16, 32):
        if columns * 2 <= swizzle:
            edits = {"SConscript": [['"TK": 64', f'"TK": {columns}']]}
            edits |= {"load": [*ends, *boxes], "mma": ends}
            wrong = [] if columns * 2 == swizzle else ["PL0601"]
            assert codes("gemm", edits) == wrong


STORED = "tile: {box: [16, 64], swizzle: 128}"


@pytest.mark.parametrize("span", [64, 128])
@pytest.mark.parametrize("columns", [8, 16, 24, 32, 40, 48, 56])
def test_rows_of_a_box_shorter_than_the_swizzle(span: int, columns: int) -> None:
    """The copy engine pads them, so that a store reads bytes that were never written."""
    if columns * 2 > span:
        return
    edits = {"store": [[STORED, f"tile: {{box: [16, {columns}], swizzle: {span}}}"]]}
    found = [item for item in findings("gemm", **edits) if item.code == "PL0605"]
    assert [item.found for item in found] == [f"rows of {columns * 2} bytes"] * (columns * 2 < span)
    shorter = columns * 2 in (32, 64)
    for item in found:
        assert (f"or set `swizzle: {columns * 2}`" in item.suggestions) == shorter


def test_rows_of_a_box_without_a_swizzle_have_any_length() -> None:
    edits = {"store": [[STORED, "tile: {box: [16, 32]}"]]}
    assert "PL0605" not in codes("gemm", edits)


WHOLE = ["ROWS * D * sizeof(T)", "max(rows, 2) * D * sizeof(T)", "ceildiv(rows, 2) * 2 * D * 2",
         "max(rows, ROWS) * D * sizeof(T)", "ROWS // 2 * D * 2", "(rows + ROWS) // 2 * D * 2",
         "min(ROWS, rows + 1) * D * sizeof(T)", "max(rows, 3) * D * 2",
         "(2 + rows // 4) * D * 2", "(ROWS - rows % 1) * D * 2"]  # fmt: skip


@pytest.mark.parametrize("size", WHOLE)
def test_whole_blocks_read_past_a_tensor(size: str) -> None:
    (found,) = findings("stream", fetch=[[BYTES, f"tx_bytes: {size}"]])
    assert found.code == "PL0612" and "can read past tensor `X`" in found.message


@pytest.mark.parametrize("size", ["rows * D * sizeof(T)", "min(rows, 3) * D * 2", "D * 2"])
def test_blocks_that_a_tensor_has(size: str) -> None:
    assert codes("stream", {"fetch": [[BYTES, f"tx_bytes: {size}"]]}) == []


def test_whole_blocks_of_a_tensor_of_whole_blocks() -> None:
    edits = [[BYTES, f"tx_bytes: {WHOLE[0]}"], ["R: {min: 1}", "R: {min: 1, multiple_of: 4}"]]
    assert codes("stream", {"fetch": edits}) == []


@pytest.mark.parametrize(
    ("size", "refused"),
    [
        ("rows * (D * 2 + 8 * (rows == 3))", True),  # 16 divides it but for 3 rows
        ("rows * D * 2 + (rows == 2) * 8", True),
        ("rows * D * 2 + (rows > 3) * 16", True),  # 16 bytes too many in a full block
        ("rows * D * 2 - (rows > 3) * 16", False),
    ],
)
def test_sizes_of_bulk_copies(size: str, refused: bool) -> None:
    assert codes("stream", {"fetch": [[BYTES, f"tx_bytes: {size}"]]}) == ["PL0612"] * refused


@pytest.mark.parametrize(
    ("value", "limits", "refused"),
    [
        ("ceildiv(K, TK)", "{max: 33554432}", False),
        ("ceildiv(K, TK)", "{max: 33554431}", True),
        ("ceildiv(K, TK)", "{min: 1}", False),
        ("ceildiv(K, TK) + (K == 123456)", "{max: 33554432}", False),
        ("ceildiv(K, TK) - (K == 123456) * 9999", "{}", True),
        ("ceildiv(K, TK) * (K < 999999)", "{min: 1}", True),
        ("min(ceildiv(K, TK), 7) + M // 1000000", "{max: 8}", True),
        ("min(ceildiv(K, TK), 7) + M // 2000000000", "{max: 8}", False),
    ],
)
def test_values_of_the_scheduler(value: str, limits: str, refused: bool) -> None:
    edits = {
        "tiles": [[VALUE, f'k_blocks: {{value: "{value}"}}']],
        "mma": [["k_blocks: {}", f"k_blocks: {limits}"]],
    }
    assert ("PL1001" in codes("gemm", edits)) is refused


@pytest.mark.parametrize("most", ["tile < 77777", "R // ROWS", "ceildiv(R, ROWS) - (R != 99992)"])
def test_an_index_just_beyond_the_counters(most: str) -> None:
    edits = {"deal": [["ceildiv(R, ROWS) - 1", most.replace("tile < 77777", "ceildiv(R, 3)")]]}
    assert codes("total", edits) == ["PL1005"]


@pytest.mark.parametrize(
    ("extra", "refused"),
    [
        ("(k_blocks == 177) * 16", True),
        ("k_blocks // 1000 * 16", True),
        ("k_blocks // 40000000 * 16", False),
        ("(k_blocks < 0) * 16", False),
        ("min(k_blocks, 3) * 16 - 48", True),
    ],
)
def test_bytes_of_tensor_copies_are_constant(extra: str, refused: bool) -> None:
    size = "tx_bytes: (TM + TN) * TK * sizeof(T)"
    edits = {"load": [[size, f"{size} + {extra}"]]}
    assert ("PL0202" in codes("gemm", edits)) is refused
    assert refused or codes("gemm", edits) == []


@pytest.mark.parametrize(
    ("limits", "refused"),
    [
        ("{multiple_of: 1}", False),
        ("{multiple_of: 2}", True),  # K = 64 gives one k-block
        ("{multiple_of: TK}", True),
    ],
)
def test_multiples_of_a_field(limits: str, refused: bool) -> None:
    edits = {"mma": [["k_blocks: {}", f"k_blocks: {limits}"]]}
    assert ("PL1001" in codes("gemm", edits)) is refused


@pytest.mark.parametrize(
    ("condition", "refused"),
    [
        ("k_blocks <= 33554432", False),
        ("k_blocks <= 33554431", True),
        ("k_blocks * TK < 2147483712", False),
        ("k_blocks != 1000", True),
        ("k_blocks == 0 or k_blocks <= 33554432", False),
    ],
)
def test_conditions_of_a_work_tile(condition: str, refused: bool) -> None:
    """A component relies on `where` of its work: the tile scheduler has to meet it."""
    edits = {
        "mma": [["fields: {k_blocks: {}}", f'fields: {{k_blocks: {{}}}}\n  where: ["{condition}"]']]
    }
    assert ("PL1001" in codes("gemm", edits)) is refused
