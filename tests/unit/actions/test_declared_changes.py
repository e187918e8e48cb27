"""Help for a megakernel that does not fit names changes that are accepted when they are made."""

from __future__ import annotations

from typing import Any

import pytest
import shipped_declarations

from pipelink_rules.actions.declared_changes import DeclaredChanges
from pipelink_rules.check.check import check
from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.model.program import Program
from pipelink_rules.model.target import TARGETS
from pipelink_rules.place.place import place
from pipelink_rules.place.problem import placement_problem
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.resolve import resolve
from pipelink_rules.program.spec import parse_declaration


def program_of(name: str, **changes: Any) -> Program:
    """Return a shipped megakernel with other keywords."""
    spec = parse_declaration(**{**shipped_declarations.megakernels()[name], **changes})
    return resolve(spec, bind_instances(spec, shipped_declarations.contracts(), {}), "sm_90a")


def refusal(program: Program) -> tuple[Diagnostic, ...]:
    with pytest.raises(PipelinkError) as refused:
        place(placement_problem(program), changes=DeclaredChanges(program))
    return refused.value.diagnostics


def is_accepted(program: Program) -> bool:
    return bool(place(placement_problem(program))) and not check(program, TARGETS["sm_90a"])


HANDOVER = {"transfers": {"bias.acc": "handover"}}
# Keywords, the help of every error, and the keywords after it.
ACCEPTED: list[tuple[dict[str, Any], tuple[str, ...], list[dict[str, Any]]]] = [
    (HANDOVER, ("remove `bias.acc` from `transfers`",), [{"transfers": {}}]),
    (
        {"stages": {"load.ab": 6}},
        ("remove `load.ab` from `stages`", "set `load.ab` to 4 in `stages`"),
        [{"stages": {}}, {"stages": {"load.ab": 4}}],
    ),
    ({"occupancy": 2}, ("place 1 CTA per SM instead of 2",), [{"occupancy": 1}]),
]


@pytest.mark.parametrize(("declared", "helps", "fixed"), ACCEPTED, ids=str)
def test_help_is_accepted(
    declared: dict[str, Any], helps: tuple[str, ...], fixed: list[dict[str, Any]]
) -> None:
    for finding in refusal(program_of("gemm_bias_gelu", **declared)):
        assert finding.suggestions == helps
    for change in fixed:
        assert is_accepted(program_of("gemm_bias_gelu", **{**declared, **change}))


def test_a_minimum_that_would_deadlock_is_not_lowered() -> None:
    program = program_of("gemm_bias_gelu", occupancy=2, **HANDOVER)
    finding = next(item for item in refusal(program) if item.code == "PL0101")
    first, second = finding.suggestions
    assert first.startswith("no single change fits: place 1 CTA per SM instead of 2 and lower the ")
    assert first.endswith("gemm/tma_load_ab.contract.yaml:25) gives PL0401")
    assert second.startswith("use smaller tiles: lifetime `work` must shrink by at least 146,496 ")


def test_several_minimums_are_lowered_in_their_contracts() -> None:
    (finding,) = refusal(program_of("rms_norm", occupancy=4))
    assert all(
        "in its contract (components/stream/" in text and " per SM instead of 4 and " in text
        for text in finding.suggestions
    )
