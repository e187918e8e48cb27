"""The audit reports every contract mismatch of the corpus, and nothing for what matches."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from corpus import ARGUMENTS, GAPS, HARMLESS, MISMATCHES, STILL_PROVED, Row

from pipelink_rules.audit.audit_component import audit_component
from pipelink_rules.model.variant import INCONCLUSIVE, PROVED, TESTED, Variant
from pipelink_rules.toolkit.ptx import Module

# They divide by sizes: not all of their ranges are shown by the proof.
TESTED_SCHEDULERS = (
    "scheduler/persistent_tiles",
    "scheduler/cluster_tiles",
    "scheduler/split_k_tiles",
)


@pytest.mark.parametrize("component", ARGUMENTS)
def test_components_match_their_contracts(
    component: str, unedited: dict[str, Variant], modules: dict[str, Module]
) -> None:
    """Strictly: every role that calls the runtime is proved."""
    audited = audit_component(modules[component], unedited[component], strict=True)
    assert audited.diagnostics == ()
    tested = component.startswith("raw/") or component in TESTED_SCHEDULERS
    assert {one.verdict for one in audited.verdicts} == {TESTED if tested else PROVED}


def test_an_audit_takes_less_than_a_quarter_second(
    unedited: dict[str, Variant], modules: dict[str, Module]
) -> None:
    audit_component(modules["stream/rms_norm"], unedited["stream/rms_norm"])
    start = time.process_time()
    audit_component(modules["stream/rms_norm"], unedited["stream/rms_norm"])
    assert time.process_time() - start < 0.25


@pytest.mark.parametrize("row", MISMATCHES, ids=lambda row: row.label)
def test_mismatch_is_reported(
    row: Row, edited: Callable[[Row], Variant], modules: dict[str, Module]
) -> None:
    found = audit_component(modules[row.component], edited(row), strict=True).diagnostics
    assert [(item.code, item.severity) for item in found] == [(row.code, "error")]
    assert found[0].expected and found[0].found and found[0].labels


@pytest.mark.parametrize("row", HARMLESS, ids=lambda row: row.label)
def test_harmless_edit_is_not_reported(
    row: Row, edited: Callable[[Row], Variant], modules: dict[str, Module]
) -> None:
    audited = audit_component(modules[row.component], edited(row))
    assert audited.diagnostics == ()


@pytest.mark.parametrize("row", STILL_PROVED, ids=lambda row: row.label)
def test_equivalent_edit_is_still_proved(
    row: Row, edited: Callable[[Row], Variant], modules: dict[str, Module]
) -> None:
    audited = audit_component(modules[row.component], edited(row), strict=True)
    assert audited.diagnostics == ()
    assert {one.verdict for one in audited.verdicts} == {PROVED}


@pytest.mark.parametrize("row", GAPS, ids=lambda row: row.label)
def test_known_gap_has_its_recorded_verdict(
    row: Row, edited: Callable[[Row], Variant], modules: dict[str, Module]
) -> None:
    """A gap that is closed has to be recorded: the row becomes `caught: true`."""
    found = audit_component(modules[row.component], edited(row), strict=True).diagnostics
    assert [item.code for item in found] == ([row.code] if row.caught else [])


def test_inconclusive_audit_is_a_warning_unless_strict(
    edited: Callable[[Row], Variant], modules: dict[str, Module]
) -> None:
    """A role that may never end is an error, whatever the build."""
    severities = set()
    for row in (row for row in MISMATCHES if row.code == "PL0932"):
        audited = audit_component(modules[row.component], edited(row))
        (found,) = audited.diagnostics
        endless = "may never end" in found.message or "never ends" in found.message
        inconclusive = {one.verdict for one in audited.verdicts} == {INCONCLUSIVE}
        assert (found.code, found.severity) == ("PL0932", "error" if endless else "warning")
        assert inconclusive is not endless
        severities.add(found.severity)
    assert severities == {"error", "warning"}


def test_descriptors_of_tensor_memory_are_those_of_the_contract(
    unedited: dict[str, Variant], modules: dict[str, Module]
) -> None:
    """PTX ISA, tcgen05 instruction and shared memory descriptors, field by field."""
    variant = unedited["gemm/tcgen05_mainloop"]
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
