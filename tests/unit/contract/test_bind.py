"""Binding: parameters become numbers everywhere, and everything impossible is found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from sample_contract import SAMPLE

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.codegen_flags import normal_flags
from pipelink_rules.contract.load import load_contract, parse_contract
from pipelink_rules.contract.parse_params import violated_limit
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.expression.expression import names
from pipelink_rules.model.contract import Contract, Param
from pipelink_rules.model.source_span import Expr, Span
from tests import shipped_declarations


def sample(*changes: tuple[str, str]) -> Contract:
    text = SAMPLE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return parse_contract(text, "s.contract.yaml")


def codes(contract: Contract, arguments: dict[str, Any], flags: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(PipelinkError) as caught:
        bind(contract, arguments, flags)
    return [item.code for item in caught.value.diagnostics]


def expressions(noun: Any) -> Iterator[Expr]:
    if isinstance(noun, Expr):
        yield noun
    elif isinstance(noun, tuple):
        for item in noun:
            yield from expressions(item)
    elif dataclasses.is_dataclass(noun):
        for field in dataclasses.fields(noun):
            yield from expressions(getattr(noun, field.name))


def test_parameters_are_gone_after_binding() -> None:
    contract = sample()
    variant = bind(contract, {"D": 256, "T": "f16"})
    assert variant.arguments == (("D", 256), ("ROWS", 4), ("T", "f16"))
    params = {param.name for param in contract.params}
    for expr in expressions(variant.contract):
        assert not names(expr) & params, expr
    (tile,) = variant.contract.port("x").members
    assert tile.dtype == "f16"
    assert [item.literal for item in tile.shape] == [4, 256]
    assert variant.contract.role("compute").warps.literal == 4
    assert variant.contract.port("x").where("arrivals") is not None


def smallest(param: Param) -> int | str:
    """A value that the parameter allows."""
    return next(
        value for value in (*param.choices, *range(1, 1 << 20)) if not violated_limit(param, value)
    )


def test_every_shipped_component_binds(repository: Any) -> None:
    tiles = {"TM": 128, "TN": 128, "TK": 64, "WG": 2}
    for path in sorted((repository / "components").rglob("*.contract.yaml")):
        contract = load_contract(path)
        given = {
            param.name: tiles.get(param.name) or smallest(param)
            for param in contract.params
            if param.default is None
        }
        variant = bind(contract, given)
        assert len(variant.digest) == 12
        params = {param.name for param in contract.params}
        assert not any(names(expr) & params for expr in expressions(variant.contract))


@pytest.mark.parametrize(
    ("minimum", "want", "expected"),
    [("40", "40", (40, 40)), ("41", "90", (48, 96)), ("64", "40", (64, 64)), ("8", "8", (24, 24))],
)
def test_registers_are_what_setmaxnreg_takes(
    minimum: str, want: str, expected: tuple[int, int]
) -> None:
    contract = sample(("{min: 40}", f"{{min: {minimum}, want: {want}}}"))
    registers = bind(contract, {"D": 64}).contract.role("compute").registers
    assert (registers.minimum.literal, registers.want.literal) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, ["PL0024"]),
        ({"D": 64, "E": 1}, ["PL0023"]),
        ({"D": 64, "R": 1}, ["PL0023"]),
        ({"D": 12}, ["PL0026"]),
        ({"D": 0}, ["PL0026"]),
        ({"D": 16384}, ["PL0026"]),
        ({"D": 64, "ROWS": 3}, ["PL0026"]),
        ({"D": 64, "T": "f32"}, ["PL0026"]),
        ({"D": "64"}, ["PL0025"]),
        ({"D": 64.0}, ["PL0025"]),
        ({"D": True}, ["PL0025"]),
        ({"D": 64, "T": 2}, ["PL0025"]),
        ({"D": 64, "T": "fp16"}, ["PL0025"]),
        ({"D": 8192, "ROWS": 8}, ["PL0027"]),
        ({"E": 1, "ROWS": 3, "T": "fp16"}, ["PL0023", "PL0026", "PL0024", "PL0025"]),
    ],
)
def test_refused_arguments(arguments: dict[str, Any], expected: list[str]) -> None:
    assert codes(sample(), arguments) == expected


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("warps: ROWS", "warps: ROWS - 4"),
        ("warps: ROWS", "warps: ROWS * 9"),
        ("warps: ROWS", "split: warpgroup\n    warps: ROWS + 1"),
        ("min: 40", "min: D * 5"),
        ("{min: 40}", "{min: 40, entry: 256}"),
        ("arrivals: ROWS", "arrivals: ROWS - 4"),
        ("shape: [ROWS, D]", "shape: [ROWS, D - 64]"),
        ("shape: [ROWS, D]", "shape: [ROWS, D], swizzle: 64"),
        ("shape: [ROWS, D]", "shape: [ROWS, D], swizzle: D + 1"),
        ("shape: [ROWS, D]", "shape: [ROWS, D], swizzle: ROWS + 1"),
        ("arrivals: ROWS", "rate: ROWS - 4"),
        ("ports:\n", "buffers: {b: {role: compute, bytes: 0}}\nports:\n"),
        ("ports:\n", "buffers: {b: {role: compute, bytes: 100, stages: 3}}\nports:\n"),
        ("ports:\n", "named_barriers: {b: {roles: [compute], count: ROWS * 30}}\nports:\n"),
        (
            "ports:\n",
            "ports:\n  f: {space: registers, direction: in, role: compute, fragment: wgmma_m64, "
            "dtype: f32, shape: [D, 12]}\n",
        ),
        (
            "ports:\n",
            "ports:\n  f: {space: registers, direction: in, role: compute, fragment: wgmma_m64, "
            "dtype: T, shape: [D, 16]}\n",
        ),
        (
            "ports:\n",
            "ports:\n  f: {space: global, direction: in, role: compute, dtype: T, shape: [R, D], "
            "tile: {box: [300, D]}}\n",
        ),
    ],
)
def test_impossible_numbers(old: str, new: str) -> None:
    assert codes(sample((old, new)), {"D": 64}) == ["PL0029"]


def test_expression_without_a_value() -> None:
    assert codes(sample(("min: 40", "min: 40 // (ROWS - 4)")), {"D": 64}) == ["PL0032"]


def test_place_of_the_declaration_is_shown() -> None:
    place = Span("SConscript", 7, 3, 9)
    with pytest.raises(PipelinkError) as caught:
        bind(sample(), {"D": 12}, place=place)
    (found,) = caught.value.diagnostics
    assert found.labels[0].span == place
    assert found.labels[1].span.file == "s.contract.yaml"
    assert "8 or 16" in found.suggestions[0]


def test_flags() -> None:
    assert normal_flags([]) == ()
    assert normal_flags(["-ftz=true", "fmad=true", "prec-div"]) == ("ftz=true",)
    assert normal_flags(["--ftz=true", "ftz=false"]) == ()
    assert normal_flags(["--use_fast_math"]) == ("ftz=true", "prec-div=false", "prec-sqrt=false")
    assert normal_flags(["use_fast_math", "prec_div=true"]) == ("ftz=true", "prec-sqrt=false")
    for flag in ("ftz=1", "maxrregcount=3", "", "ftz=true,false"):
        with pytest.raises(PipelinkError) as caught:
            normal_flags([flag])
        assert caught.value.diagnostics[0].code == "PL0028"


def test_required_flags() -> None:
    strict = sample(("ports:\n", "numeric: {flags: {ftz: false, fmad: false}}\nports:\n"))
    assert codes(strict, {"D": 64}) == ["PL1101"]  # fmad is on by default
    assert codes(strict, {"D": 64}, ("ftz", "fmad=false")) == ["PL1101"]
    assert bind(strict, {"D": 64}, ("fmad=false",)).flags == ("fmad=false",)


def test_digest_follows_what_the_object_depends_on() -> None:
    base = bind(sample(), {"D": 64})
    assert bind(sample(), {"D": 64, "ROWS": 4}).digest == base.digest
    assert bind(sample(("Multiply", "Scale")), {"D": 64}).digest == base.digest
    assert bind(sample(("contract: 2", "# note\ncontract: 2")), {"D": 64}).digest == base.digest
    others = [
        bind(sample(), {"D": 72}),
        bind(sample(), {"D": 64, "ROWS": 8}),
        bind(sample(), {"D": 64, "T": "f16"}),
        bind(sample(), {"D": 64}, ("ftz",)),
        bind(sample(("  factor:", "  factors:")), {"D": 64}),
    ]
    assert len({base.digest, *(item.digest for item in others)}) == 6


@pytest.mark.parametrize("columns", [16, 32, 64])
def test_a_swizzle_may_follow_a_parameter(columns: int) -> None:
    """A store whose pieces are W columns wide swizzles by the length of their rows."""
    contract = shipped_declarations.contracts()["//components/epilogue:tma_store"]
    variant = bind(contract, {"TM": 128, "TN": 2 * columns, "TK": 64, "W": columns})
    tile = variant.contract.port("C").tile
    assert tile is not None
    assert (tile.swizzle, tile.swizzle_by) == (2 * columns, None)
    assert [extent.literal for extent in tile.box] == [16, columns]
    assert variant.contract.buffers[0].align == 1024  # that of the widest span


@pytest.mark.parametrize("word", ["W", "E * 2", "warp", "M"])
def test_a_swizzle_of_an_unknown_name(word: str) -> None:
    with pytest.raises(PipelinkError, match="PL0031"):
        sample(("shape: [ROWS, D]", f"shape: [ROWS, D], swizzle: {word}"))
