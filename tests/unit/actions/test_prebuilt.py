"""Which delivered variant an instance means."""

from __future__ import annotations

import pytest

from pipelink_rules.actions.prebuilt import Prebuilt, choose
from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.program import InstanceSpec, MegakernelSpec
from pipelink_rules.model.variant import Variant

CONTRACT = parse_contract(
    """
contract: 2
component: rows
version: 1.0.0
summary: Deal rows.
arch: [sm_90a]
params: {ROWS: {type: int}, KIND: {type: int, default: 0}}
symbols: {R: {min: 1}}
work: {kind: rows, direction: out, tile: [ROWS], tiles: R, fields: {row: {min: 0}}}
roles: {next: {scheduler: true}}
""",
    "rows.contract.yaml",
)


def delivered(**arguments: int) -> Prebuilt:
    variant: Variant = bind(CONTRACT, arguments)
    return Prebuilt(variant, (("sm_90a", "rows.contract.yaml"),))


def spec(**arguments: int) -> MegakernelSpec:
    return MegakernelSpec("m", (InstanceSpec("r", "//:rows", tuple(arguments.items())),))


def test_parameters_of_the_declaration_choose() -> None:
    two, four = delivered(ROWS=2), delivered(ROWS=4)
    found, chosen = choose(spec(ROWS=4), {"//:rows": [two, four]}, {}, {})
    assert chosen == {"r": four}
    assert found.instances[0].arguments == (("KIND", 0), ("ROWS", 4))


def test_the_only_variant_needs_no_parameters() -> None:
    two = delivered(ROWS=2)
    assert choose(spec(), {"//:rows": [two]}, {}, {})[1] == {"r": two}


def test_none_fits() -> None:
    with pytest.raises(PipelinkError) as caught:
        choose(spec(ROWS=8), {"//:rows": [delivered(ROWS=2), delivered(ROWS=4)]}, {}, {})
    (found,) = caught.value.diagnostics
    assert found.code == "PL1310" and found.expected == "ROWS=8"
    assert found.found == "KIND=0 ROWS=2; KIND=0 ROWS=4"


def test_several_fit() -> None:
    variants = [delivered(ROWS=4, KIND=0), delivered(ROWS=4, KIND=1)]
    with pytest.raises(PipelinkError) as caught:
        choose(spec(ROWS=4), {"//:rows": variants}, {}, {})
    assert [item.code for item in caught.value.diagnostics] == ["PL1310"]


def test_instances_with_sources_are_left_alone() -> None:
    declared = spec(ROWS=4)
    assert choose(declared, {}, {"//:rows": CONTRACT}, {}) == (declared, {})
