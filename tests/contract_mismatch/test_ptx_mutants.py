"""Mutants of the PTX of proved roles: none is proved that does something else."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from corpus import ARGUMENTS

from pipelink_rules.audit.proof.prove import prove_role
from pipelink_rules.audit.proof.verdict import RefutedError, UnprovedError
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import Module

sys.path.insert(0, str(Path(__file__).parents[1] / "mutation"))
from ptx_mutants import Mutant, mutants

PROVED = [name for name in ARGUMENTS if not name.startswith(("raw/", "scheduler/"))]
PER_ROLE = 20
# Changes after which the operations and addresses may be right all the same: which lane or element
# a value comes from is not proved, and bits that are masked or shifted out do not matter.  Nor is
# how many columns of tensor memory are read.
MAY_BE_PROVED = ("negate a branch", "to a number", "compare otherwise")


@pytest.mark.parametrize("component", PROVED)
def test_no_mutant_is_proved(
    component: str, unedited: dict[str, Variant], modules: dict[str, Module]
) -> None:
    variant, module = unedited[component], modules[component]
    for role in variant.contract.roles:
        function = module.function(variant.symbol(role.name))
        assert function is not None
        drawn = sorted(
            mutants(function),
            key=lambda one: hashlib.sha256(f"{component} {one.old}".encode()).digest(),
        )
        certain = [one for one in drawn if not one.what.endswith(MAY_BE_PROVED)]
        proved = [one for one in certain[:PER_ROLE] if _is_proved(one, module, variant, role.name)]
        assert [(one.what, one.old) for one in proved if "tensor_load" not in one.old] == []
        others = [one for one in drawn if one.what.endswith(MAY_BE_PROVED)]
        few = others[: PER_ROLE // 2]
        refuted = sum(not _is_proved(one, module, variant, role.name) for one in few)
        assert refuted * 4 >= len(few)


def _is_proved(mutant: Mutant, module: Module, variant: Variant, role: str) -> bool:
    try:
        prove_role(mutant.of(module), variant, variant.contract.role(role))
    except (RefutedError, UnprovedError):
        return False
    return True
