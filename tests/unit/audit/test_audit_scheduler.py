"""A schedule is run over all its items and held to what its contract promises."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipelink_rules.audit.audit_component import audit_component
from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import read_ptx

CONTRACT = """\
contract: 2
component: deal
version: 1.0.0
summary: Deal two parts of every tile.
arch: [sm_90a]
params: {PARTS: {type: int, default: 2}}
symbols: {R: {min: 1}, S: {min: 1}}
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


def findings(contract: str = CONTRACT, body: str = BODY) -> list[tuple[str, str, str, str]]:
    variant: Variant = replace(bind(parse_contract(contract, "deal.yaml"), {}), digest="0" * 12)
    head = (
        ".version 9.5\n.target sm_90a\n.address_size 64\n"
        f".visible .func {variant.symbol('next')}(\n"
        " .param .b64 f_param_0,\n .param .b32 f_param_1,\n .param .b64 f_param_2\n)\n"
    )
    module = read_ptx(f"{head}{{\n{body}\nret;\n}}\n")
    return [
        (item.code, item.message.rsplit("`")[-2], item.expected, item.found)
        for item in audit_component(module, variant, strict=True).diagnostics
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
