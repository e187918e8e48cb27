"""A contract cannot lie: every component of the corpus is caught, and no honest one is."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from corpus import ARGUMENTS, HARMLESS, LIES, Lie

from pipelink_rules.audit.audit_role import audit_roles
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import Module


def test_the_corpus_is_large() -> None:
    assert len(LIES) >= 60
    assert len({lie.label for lie in LIES}) == len(LIES)


@pytest.mark.parametrize("component", ARGUMENTS)
def test_shipped_components_tell_the_truth(
    component: str, honest: dict[str, Variant], modules: dict[str, Module]
) -> None:
    """Also none is unaudited."""
    assert audit_roles(modules[component], honest[component], strict=True) == []


def test_an_audit_takes_no_time(honest: dict[str, Variant], modules: dict[str, Module]) -> None:
    audit_roles(modules["stream/rms_norm"], honest["stream/rms_norm"])
    start = time.process_time()
    audit_roles(modules["stream/rms_norm"], honest["stream/rms_norm"])
    assert time.process_time() - start < 0.25


@pytest.mark.parametrize("lie", LIES, ids=lambda lie: lie.label)
def test_every_lie_is_caught(
    lie: Lie, lying: Callable[[Lie], Variant], modules: dict[str, Module]
) -> None:
    found = audit_roles(modules[lie.component], lying(lie), strict=True)
    assert [(item.code, item.severity) for item in found] == [(lie.code, "error")]
    assert found[0].expected and found[0].found and found[0].labels


@pytest.mark.parametrize("other", HARMLESS, ids=lambda lie: lie.label)
def test_what_is_no_lie_is_none(
    other: Lie, lying: Callable[[Lie], Variant], modules: dict[str, Module]
) -> None:
    assert audit_roles(modules[other.component], lying(other), strict=True) == []


def test_every_shipped_component_is_here(repository: Path) -> None:
    folder = repository / "components"
    names = {
        str(path.relative_to(folder)).removesuffix(".contract.yaml")
        for path in folder.rglob("*.contract.yaml")
    }
    assert names == {name for name in ARGUMENTS if not name.startswith("raw/")}


def test_what_nobody_can_follow_is_a_warning(
    lying: Callable[[Lie], Variant], modules: dict[str, Module]
) -> None:
    """And an error with `strict`, as above."""
    for lie in (lie for lie in LIES if lie.code == "PL0932"):
        (found,) = audit_roles(modules[lie.component], lying(lie))
        assert (found.code, found.severity) == ("PL0932", "warning")


def test_descriptors_of_tensor_memory_are_those_of_the_contract(
    honest: dict[str, Variant], modules: dict[str, Module]
) -> None:
    """PTX ISA, tcgen05 instruction and shared memory descriptors, field by field."""
    variant = honest["gemm/tcgen05_mainloop"]
    values = dict(variant.arguments)
    fields = (  # first bit, value
        (4, 1),  # accumulators: f32
        (7, 1),  # A: bf16
        (10, 1),  # B: bf16
        (15, 0),  # A is K-major
        (16, 0),  # B is K-major
        (17, int(values["TN"]) >> 3),
        (24, int(values["TM"]) >> 4),
    )
    instruction = sum(value << bit for bit, value in fields)
    shared = sum(
        value << bit
        for bit, value in (
            (16, 1),  # leading offset: unused
            (32, 1024 >> 4),  # between groups of eight rows
            (46, 1),  # version of this architecture
            (61, 2),  # swizzle of 128 bytes
        )
    )
    function = modules["gemm/tcgen05_mainloop"].function(variant.symbol("mma"))
    assert function is not None
    numbers = {int(text) & (1 << 64) - 1 for text in re.findall(r"-?\b\d+\b", function.body)}
    assert instruction in numbers
    assert shared in numbers
