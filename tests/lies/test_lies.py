"""A contract cannot lie: every component of the corpus is caught, and no honest one is."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from corpus import ARGUMENTS, LIES, Lie

from pipelink_rules.compile.execute.audit import audit_roles
from pipelink_rules.compile.ptx import Module
from pipelink_rules.model.variant import Variant


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


def test_what_nobody_can_follow_is_a_warning(
    lying: Callable[[Lie], Variant], modules: dict[str, Module]
) -> None:
    """And an error with `strict`, as above."""
    for lie in (lie for lie in LIES if lie.code == "PL0932"):
        (found,) = audit_roles(modules[lie.component], lying(lie))
        assert (found.code, found.severity) == ("PL0932", "warning")
