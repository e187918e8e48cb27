"""A schedule is run over all its items and held to what its contract promises."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelink_rules.audit.audit_component import ComponentAudit, audit_component
from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.model.variant import PROVED, Variant
from pipelink_rules.toolkit.ptx import read_ptx

CONTRACT = """\
contract: 2
component: deal
version: 1.0.0
summary: Deal two parts of every tile.
arch: [sm_90a]
params: {PARTS: {type: int, default: 2}}
symbols: {R: {min: 1}, S: {min: 1, max: 1000000}}
work:
  kind: part
  direction: out
  tile: [4]
  tiles: ceildiv(R, 4) * PARTS
  fields:
    tile: {max: "ceildiv(R, 4) - 1"}
    part: {index_within: {field: tile, of: PARTS}, max: PARTS - 1}
    step: {value: "S * 2"}
roles:
  next: {scheduler: true}
"""
# item / tiles and item % tiles, tiles = (R + 3) / 4; then 2 S
BODY = """
    ld.param.u64 %rd1, [f_param_0];
    ld.param.u32 %r1, [f_param_1];
    ld.param.u64 %rd2, [f_param_2];
    ld.u32 %r2, [%rd1];
    ld.u32 %r3, [%rd1+4];
    add.s32 %r4, %r2, 3;
    shr.u32 %r5, %r4, 2;
    div.u32 %r6, %r1, %r5;
    rem.u32 %r7, %r1, %r5;
    st.u32 [%rd2], %r7;
    st.u32 [%rd2+4], %r6;
    shl.b32 %r8, %r3, 1;
    st.u32 [%rd2+8], %r8;
"""


def audited(contract: str = CONTRACT, body: str = BODY) -> ComponentAudit:
    variant: Variant = replace(bind(parse_contract(contract, "deal.yaml"), {}), digest="0" * 12)
    head = (
        ".version 9.5\n.target sm_90a\n.address_size 64\n"
        f".visible .func {variant.symbol('next')}(\n"
        " .param .b64 f_param_0,\n .param .b32 f_param_1,\n .param .b64 f_param_2\n)\n"
    )
    module = read_ptx(f"{head}{{\n{body}\nret;\n}}\n")
    return audit_component(module, variant, strict=True)


def findings(contract: str = CONTRACT, body: str = BODY) -> list[tuple[str, str, str, str]]:
    return [
        (item.code, item.message.rsplit("`")[-2], item.expected, item.found)
        for item in audited(contract, body).diagnostics
    ]


def test_a_schedule_that_keeps_its_word() -> None:
    assert findings() == []


@pytest.mark.parametrize(
    ("old", "new", "field", "expected"),
    [
        ("of: PARTS", "of: 2 * PARTS", "part", "4 tiles with tile=0"),
        ("of: PARTS", "of: 1", "part", "1 tile with tile=0"),
        ("* PARTS", "* PARTS + 1", "part", "at most 1 = 1"),
        ("ceildiv(R, 4) - 1", "ceildiv(R, 4) - 2", "tile", "at most ceildiv(R, 4) - 2 = -1"),
        ("max: PARTS - 1", "min: 1", "part", "at least 1 = 1"),
        ("S * 2", "S * 3", "step", "value S * 3 = 3"),
        ("field: tile", "field: step", "part", "1, the tiles before it with step=4"),
    ],
)
def test_contracts_that_say_something_else(old: str, new: str, field: str, expected: str) -> None:
    assert CONTRACT.count(old) == 1
    ((code, target, wanted, _),) = findings(CONTRACT.replace(old, new))
    assert (code, target) == ("PL0937", field)
    assert wanted == expected


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("st.u32 [%rd2], %r7", "st.u32 [%rd2], %r6", "PL0937"),  # the part as the tile
        ("div.u32 %r6, %r1, %r5", "rem.u32 %r6, %r1, 2", "PL0937"),  # tile by tile
        ("st.u32 [%rd2+8], %r8", "st.u32 [%rd2+8], %r3", "PL0937"),
        ("st.u32 [%rd2+8], %r8", "add.s32 %r8, %r8, 0", "PL0932"),  # never written
        ("shl.b32 %r8, %r3, 1", "ld.u32 %r8, [%rd1+64]", "PL0932"),  # read from somewhere
        ("shl.b32 %r8, %r3, 1", "atom.global.add.u32 %r8, [%rd1], 1", "PL0932"),
    ],
)
def test_code_that_does_something_else(old: str, new: str, code: str) -> None:
    assert BODY.count(old) == 1
    assert [item[0] for item in findings(body=BODY.replace(old, new))] == [code]


BLOCKS = """\
contract: 2
component: deal
version: 1.0.0
summary: Deal blocks of rows.
arch: [sm_90a]
symbols: {R: {min: 1}}
work:
  kind: part
  direction: out
  tile: [4]
  tiles: ceildiv(R, 4)
  fields: {row: {max: R - 1, multiple_of: 4}, rows: {min: 1, max: 4}}
  where: [row + rows <= R]
roles:
  next: {scheduler: true}
"""
# row = 4 item; rows = min(R - row, 4)
ROWS = """
    ld.param.u64 %rd1, [f_param_0];
    ld.param.u32 %r1, [f_param_1];
    ld.param.u64 %rd2, [f_param_2];
    ld.u32 %r2, [%rd1];
    shl.b32 %r3, %r1, 2;
    st.u32 [%rd2], %r3;
    sub.s32 %r4, %r2, %r3;
    min.s32 %r5, %r4, 4;
    st.u32 [%rd2+4], %r5;
"""
SHIFT, SHORT = "    shl.b32 %r3, %r1, 2;\n", "    min.s32 %r5, %r4, 4;\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SHIFT, SHIFT),
        (SHIFT, "mul.lo.s32 %r3, %r1, 4;"),
        (SHIFT, "mad.lo.s32 %r3, %r1, 3, %r1;"),
        (SHIFT, "add.s32 %r6, %r1, %r1; add.s32 %r3, %r6, %r6;"),
        (SHIFT, "shl.b32 %r6, %r1, 3; shr.u32 %r3, %r6, 1;"),
        (SHIFT, "shl.b32 %r6, %r1, 4; sub.s32 %r7, %r6, %r1; sub.s32 %r8, %r7, %r1;"
                "mul.lo.s32 %r9, %r1, 10; sub.s32 %r3, %r8, %r9;"),
        (SHORT, "min.u32 %r5, %r4, 4;"),
        (SHORT, "setp.lt.s32 %p1, %r4, 4; selp.b32 %r5, %r4, 4, %p1;"),
        (SHORT, "setp.gt.u32 %p1, %r4, 3; selp.b32 %r5, 4, %r4, %p1;"),
        (SHORT, "setp.lt.s32 %p1, %r4, 4; mov.u32 %r5, 4; @%p1 mov.u32 %r5, %r4;"),
        (SHORT, "max.s32 %r6, %r4, 1; min.s32 %r5, %r6, 4;"),
    ],
)  # fmt: skip
def test_rows_are_proved_for_every_size(old: str, new: str) -> None:
    found = audited(BLOCKS, ROWS.replace(old, new))
    assert found.diagnostics == ()
    assert [one.verdict for one in found.verdicts] == [PROVED], found.verdicts


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        # Correct for all sizes that are tested: R of at most 1000.
        (SHIFT, "shl.b32 %r3, %r1, 2; setp.gt.u32 %p1, %r1, 300000; @%p1 sub.s32 %r3, %r3, 1;",
                "a multiple of 4"),
        (SHORT, "min.s32 %r5, %r4, 4; setp.eq.u32 %p1, %r1, 288; @%p1 mov.u32 %r5, 0;",
                "at least 1 = 1"),
        (SHORT, "min.s32 %r5, %r4, 4; setp.gt.s32 %p1, %r2, 0x7ffffff0; @%p1 mov.u32 %r5, 5;",
                "at most 4 = 4"),
        (SHORT, "cvt.u16.u32 %rs1, %r4; cvt.u32.u16 %r6, %rs1; min.u32 %r5, %r6, 4;",
                "at least 1 = 1"),
        (SHORT, "add.s32 %r6, %r2, 3; shr.s32 %r6, %r6, 31; min.s32 %r5, %r4, 4;"
                "add.s32 %r5, %r5, %r6;", "at least 1 = 1"),
    ],
)  # fmt: skip
def test_what_no_tested_size_shows_is_refuted(old: str, new: str, shown: str) -> None:
    found = audited(BLOCKS, ROWS.replace(old, new))
    (item,) = found.diagnostics
    assert (item.code, item.severity, item.expected) == ("PL0937", "error", shown)
    assert "R=" in item.found


def test_a_wrap_at_the_largest_size_is_refuted_and_a_bound_of_the_symbol_prevents_it() -> None:
    """2 S leaves an int32 from S = 2^30 on."""
    open_ended = CONTRACT.replace("{min: 1, max: 1000000}", "{min: 1}")
    ((code, target, _, found),) = findings(open_ended)
    assert (code, target) == ("PL0937", "step")
    assert int(found.rpartition("S=")[2]) >= 1 << 30
    assert findings(CONTRACT) == []
