"""What decides the machine code: everything but places and prose."""

from __future__ import annotations

from dataclasses import replace

from pipelink_rules.actions.build_key import Signatures, strip_locations
from pipelink_rules.model.contract import Contract, Param
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import Variant

SPAN = Span("a.contract.yaml", 3, 1)
CONTRACT = Contract(
    "a", "1.0.0", "what it does", ("sm_90a",), params=(Param("T", "int", span=SPAN),)
)
VARIANT = Variant(
    replace(CONTRACT, file="a.contract.yaml", span=SPAN), (("T", 1),), digest="0" * 12
)


def test_places_and_prose_are_gone() -> None:
    moved = replace(
        VARIANT,
        contract=replace(VARIANT.contract, summary="other words", file="b.yaml", span=None),
        prebuilt="delivered/a",
    )
    assert strip_locations(moved) == strip_locations(VARIANT)
    assert strip_locations(VARIANT).contract.params[0].span is None


def test_everything_else_stays() -> None:
    assert strip_locations(replace(VARIANT, arguments=(("T", 2),))) != strip_locations(VARIANT)
    assert strip_locations(replace(VARIANT, flags=("ftz=true",))) != strip_locations(VARIANT)


def test_equal_nouns_have_one_signature() -> None:
    signatures = Signatures()
    assert signatures.of(VARIANT) == signatures.of(replace(VARIANT))
    assert signatures.of(VARIANT) != signatures.of(replace(VARIANT, digest="1" * 12))
