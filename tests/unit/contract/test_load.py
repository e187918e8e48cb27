"""Contracts from text: what is read, where it was, and all findings at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_contract import SAMPLE

from pipelink_rules.contract.load import load_contract, parse_contract
from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.model.contract import Contract, Operation, Repeat
from pipelink_rules.model.source_span import Expr, Span


def read(*changes: tuple[str, str]) -> Contract:
    text = SAMPLE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return parse_contract(text, "s.contract.yaml")


def findings(*changes: tuple[str, str]) -> list[Diagnostic]:
    with pytest.raises(PipelinkError) as caught:
        read(*changes)
    return list(caught.value.diagnostics)


def codes(*changes: tuple[str, str]) -> list[str]:
    return [item.code for item in findings(*changes)]


def plain(op: Operation | Repeat) -> tuple[object, ...]:
    if isinstance(op, Repeat):
        return (op.count.text, [plain(item) for item in op.body])
    return (op.verb, op.target)


def test_sample_is_read_as_written() -> None:
    contract = read()
    assert (contract.component, contract.version, contract.archs) == (
        "scale_rows",
        "1.0.0",
        ("sm_90a",),
    )
    rows, d, t = contract.params
    assert (rows.choices, rows.default, rows.type) == ((1, 2, 4, 8), 4, "int")
    assert (d.minimum, d.maximum, d.multiple_of, d.default) == (8, 8192, 8, None)
    assert (t.type, t.choices, t.default) == ("dtype", ("bf16", "f16"), "bf16")
    role = contract.role("compute")
    assert [plain(op) for op in role.body] == [
        ("wait", "x"),
        ("read", "x"),
        ("acquire", "y"),
        ("rows", [("write", "y")]),
        ("release", "x"),
        ("commit", "y"),
    ]
    assert (role.converged, role.split, role.uses_mma) == ("warp", "role", False)
    registers = role.registers
    assert (str(registers.minimum), str(registers.want), str(registers.entry)) == ("40", "40", "24")
    x = contract.port("x")
    assert (x.space, x.direction, x.proxy, x.rate.text, x.tx_bytes) == (
        "ring",
        "in",
        "generic",
        "1",
        None,
    )
    (tile,) = x.members
    assert (tile.name, tile.dtype, [item.text for item in tile.shape]) == (
        "tile",
        "T",
        ["ROWS", "D"],
    )
    assert contract.work is not None
    (rows_field,) = contract.work.fields
    assert (rows_field.name, str(rows_field.minimum), str(rows_field.maximum)) == (
        "rows",
        "1",
        "ROWS",
    )


def test_every_clause_keeps_its_place() -> None:
    contract = read()
    lines = SAMPLE.split("\n")

    def at(span: Span | None) -> str:
        assert span is not None and span.file == "s.contract.yaml"
        return lines[span.line - 1][span.column - 1 : span.column - 1 + span.length]

    port, role = contract.port("x"), contract.role("compute")
    assert at(port.where("arrivals")) == "ROWS"
    assert at(port.where("direction")) == "in"
    assert at(port.where("tx_bytes")) == "x"  # left out: the port itself
    assert at(role.where("warps")) == "ROWS"
    assert at(role.registers.minimum.span) == "40"
    assert at(role.body[0].span) == "wait x"
    assert at(contract.where[0].span) == "ROWS * D * sizeof(T) <= 65536"
    assert at(contract.params[1].span) == "D"
    assert at(port.members[0].shape[1].span) == "D"
    assert at(contract.span) == "component"


def test_quoted_expression_is_placed_inside_its_quotes() -> None:
    contract = read(("warps: ROWS", 'warps: "max(ROWS, 1)"'))
    span = contract.role("compute").warps.span
    assert span is not None
    assert span.length == len("max(ROWS, 1)")
    assert SAMPLE.split("\n")[span.line - 1].index("ROWS") + 2 == span.column


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("release x lag 2", Operation("release", "x", lag=2)),
        ("await store 0 full", Operation("await", "store", full=True)),
        ("await mma 1", Operation("await", "mma", count=1)),
        ("fence async", Operation("fence", "async")),
        ("store x -> C", Operation("store", "x", source="C")),
        ("copy X -> z.t", Operation("copy", "z", member="t", source="X")),
        ("write  buf", Operation("write", "buf")),
        ("sync pair", Operation("sync", "pair")),
    ],
)
def test_operations(text: str, expected: Operation) -> None:
    contract = read(
        ("- wait x", f"- {text}"),
        (
            "ports:\n",
            "buffers: {buf: {role: compute, bytes: 16}}\n"
            "named_barriers: {pair: {roles: [compute], count: 32}}\n"
            "ports:\n"
            "  X: {space: global, direction: in, role: compute, dtype: T, shape: [R, D]}\n"
            "  C: {space: global, direction: out, role: compute, dtype: T, shape: [R, D]}\n"
            "  z: {space: ring, direction: out, role: compute, tx_bytes: 16, proxy: async, "
            "item: {t: {dtype: T, shape: [D]}}}\n",
        ),
    )
    op = contract.role("compute").body[0]
    assert isinstance(op, Operation)
    assert op == Operation(**{**vars(expected), "span": op.span})


def test_layout_of_a_tile() -> None:
    contract = read(
        ("{dtype: T, shape: [ROWS, D]}}\n  y", "{dtype: T, shape: [ROWS, D], swizzle: 64}}\n  y"),
    )
    assert contract.port("x").members[0].layout.swizzle == 64
    nested = read(("shape: [ROWS, D]", "shape: [ROWS, D], strides: [[[8, D], [2, 64]], 1]"))
    first, second = nested.port("x").members[0].layout.strides
    assert isinstance(first, tuple) and isinstance(second, Expr)
    assert [(a.text, b.text) for a, b in first] == [("8", "D"), ("2", "64")]


def test_findings_come_together_in_the_order_of_the_file() -> None:
    found = findings(
        ("summary:", "sumary:"),
        ("default: 4", "default: 3"),
        ("- wait x", "- wait z"),
        ("role: compute\n", "role: computer\n"),
    )
    assert [item.code for item in found] == ["PL0005", "PL0017", "PL0015", "PL0016"]
    assert [item.labels[0].span.line for item in found] == sorted(
        item.labels[0].span.line for item in found
    )


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("contract: 2", "contract: 3", "PL0004"),
        ("contract: 2", "contract: 1", "PL0004"),
        ("contract: 2", "contract: []", "PL0007"),
        ("contract: 2", "contract: '1.0'", "PL0004"),
        ("contract: 2\n", "", "PL0006"),
        ("arch: [sm_90a]", "arch: []", "PL0007"),
        ("arch: [sm_90a]", "arch: sm_90a", "PL0007"),
        ("min: 8,", "min: 0x8,", "PL0007"),
        ("min: 8,", "min: 08,", "PL0007"),
        ("min: 8,", "min: '8',", "PL0007"),
        ("min: 8,", "min: 99999999999999,", "PL0007"),
        ("min: 8,", "min: 9999999999,", "PL0017"),
        ("min: 8,", "min: ,", "PL0007"),
        ("type: dtype, in", "type: dtype, min: 3, in", "PL0018"),
        ("default: bf16", "default: f32", "PL0017"),
        ("in: [bf16, f16]", "in: [bf16, half]", "PL0009"),
        ("tile: [ROWS]", "tile: []", "PL0007"),
        ("tile: [ROWS]", "tile: [R]", "PL0031"),
        ("kind: row_block", "kind: row block", "PL0012"),
        ("direction: in\n  tile", "direction: up\n  tile", "PL0009"),
        ("direction: in\n  tile", "direction: out\n  tile", "PL0006"),
        ("max: ROWS}}", "value: R}}", "PL0018"),
        ("warps: ROWS", "warps: ROWS\n    converged: block", "PL0009"),
        ("warps: ROWS", "warps: ROWS\n    scheduler: yes", "PL0007"),
        ("registers: {min: 40}", "registers: 40", "PL0007"),
        ("registers: {min: 40}", "registers: {least: 40}", "PL0005"),
        ("- wait x", "- [wait x]", "PL0007"),
        ("- wait x", "- wait factor", "PL0015"),
        ("- wait x", "- ''", "PL0014"),
        ("- wait x", "- release x lag -1", "PL0014"),
        ("- wait x", "- await mma 1 full", "PL0014"),
        ("- wait x", "- copy X - > y.tile", "PL0014"),
        ("repeat: rows", "repeat: R", "PL0031"),
        ("body: [write y]", "body: []", "PL0007"),
        ("body: [write y]", "bodies: [write y]", "PL0005"),
        ("type: f32, role", "type: f64, role", "PL0009"),
        ("type: f32, role", "role", "PL0006"),
        ("space: scalar", "space: scalar, direction: out", "PL0018"),
        ("arrivals: ROWS", "arrivals: rows", "PL0031"),
        ("arrivals: ROWS", "proxy: tensor", "PL0009"),
        ("arrivals: ROWS", "stages: {min: 2}", "PL0018"),
        ("item: {tile: {dtype: T, shape: [ROWS, D]}}", "item: {}", "PL0007"),
        ("item: {tile:", "item: {double:", "PL0012"),
        ("shape: [ROWS, D]", "shape: [ROWS, D], swizzle: 16", "PL0017"),
        ("shape: [ROWS, D]", "shape: [ROWS, D], strides: [1]", "PL0017"),
        ("shape: [ROWS, D]", "shape: [ROWS, D], strides: [[1], 1]", "PL0007"),
        ("dtype: T, shape", "dtype: t, shape", "PL0009"),
        ("dtype: T, shape", "shape", "PL0006"),
        ("factor:", "sizeof:", "PL0012"),
        ("factor:", "pl_factor:", "PL0012"),
        ("factor:", "fac__tor:", "PL0012"),
        ("factor:", "facteur_é:", "PL0012"),
        ("factor:", f"{'f' * 49}:", "PL0012"),
        ("factor:", "ROWS:", "PL0013"),
        ("factor:", "factor: {space: scalar, type: f32, role: compute}\n  factor:", "PL0013"),
        ("ports:\n", "buffers: {x: {role: compute, bytes: 4}}\nports:\n", "PL0013"),
        ("ports:\n", "buffers: {b: {role: comput, bytes: 4}}\nports:\n", "PL0016"),
        ("ports:\n", "buffers: {b: {role: compute, bytes: 4, align: 3}}\nports:\n", "PL0017"),
        ("ports:\n", "named_barriers: {b: {roles: [c], count: 32}}\nports:\n", "PL0016"),
        ("ports:\n", "numeric: {nan: ignore}\nports:\n", "PL0009"),
        ("ports:\n", "numeric: {flags: {fast: true}}\nports:\n", "PL0005"),
        ("ports:\n", "requires: [ROWS % 2 == 0, rows > 1]\nports:\n", "PL0031"),
        ("- ROWS * D", "- R * D", "PL0031"),
        ("version: 1.0.0", "version: v1", "PL0007"),
        ("version: 1.0.0", "version: [1]", "PL0007"),
    ],
)
def test_one_mistake_is_one_finding(old: str, new: str, code: str) -> None:
    assert codes((old, new)) == [code]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "PL0006"),
        ("- a list", "PL0007"),
        ("just text", "PL0007"),
        ("a: &x 1\nb: *x\n", "PL0003"),
        ("a: !!python/object:os.system 1\n", "PL0003"),
        ("a: !x 1\n", "PL0003"),
        ("? [a, b]\n: 1\n", "PL0003"),
        ("a: 1\n---\nb: 2\n", "PL0003"),
        ("a: " + "[" * 30 + "]" * 30, "PL0003"),
        ("[" * 100_000, "PL0003"),
        ("a: {b: 1", "PL0002"),
        ("a: 'b", "PL0002"),
        ("a: \x07\n", "PL0002"),
        ('a: "\\UFFFFFFFF"\n', "PL0002"),
        ("%YAML 9.0\n---\na: 1\n", "PL0002"),
        ("contract: 2\n" + "".join(f"k{n}: 1\n" for n in range(12_000)), "PL0003"),
    ],
)
def test_texts_that_are_no_contract(text: str, code: str) -> None:
    with pytest.raises(PipelinkError) as caught:
        parse_contract(text, "s.contract.yaml")
    assert {item.code for item in caught.value.diagnostics} == {code}


def test_findings_of_one_file_are_limited() -> None:
    text = SAMPLE + "".join(f"k{n}: 1\n" for n in range(3000))
    with pytest.raises(PipelinkError) as caught:
        parse_contract(text, "s.contract.yaml")
    assert len(caught.value.diagnostics) == 100


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfec\x00", b"a: \xe4\n", b"x" * (2 << 20), None],
    ids=["utf16", "latin1", "huge", "none"],
)
def test_files_that_cannot_be_read(tmp_path: Path, data: bytes | None) -> None:
    path = tmp_path / "s.contract.yaml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(PipelinkError) as caught:
        load_contract(path)
    assert [item.code for item in caught.value.diagnostics] == ["PL0001"]
