"""A program as a whole: independent of the order it was written in, and of the way it came."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.files.codec import read_json, to_json, write_json
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.program import MegakernelSpec, Program
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.resolve import resolve
from pipelink_rules.program.spec import parse_declaration

Build = Callable[..., Program]
Refused = Callable[..., tuple[Diagnostic, ...]]


def test_the_order_of_the_input_changes_only_the_parameters(
    linear: dict[str, Any], program: Build
) -> None:
    linear["transfers"] = {"bias.acc": "handover"}
    first = program(linear)
    for section in ("instances", "connect"):
        linear[section] = dict(reversed(linear[section].items()))
    again = program(linear)
    assert to_json(replace(again, spec=first.spec)) == to_json(first)


def test_a_program_survives_its_file(
    linear: dict[str, Any], program: Build, tmp_path: Path
) -> None:
    found = program({**linear, "transfers": {"bias.acc": "handover"}})
    write_json(tmp_path / "linear.program.json", found)
    assert read_json(tmp_path / "linear.program.json", Program) == found


def test_an_unknown_target_and_a_missing_interface(
    linear: dict[str, Any], parts: dict[str, Contract]
) -> None:
    spec = parse_declaration(**linear)
    variants = bind_instances(spec, parts)
    with pytest.raises(PipelinkError, match="PL0046"):
        resolve(spec, variants, "sm_90")
    del variants["tiles"]
    with pytest.raises(PipelinkError, match="PL0076"):
        resolve(spec, variants, "sm_90a")


def test_every_declared_megakernel_is_collected(
    declarations: dict[str, MegakernelSpec], components: dict[str, Contract]
) -> None:
    assert declarations
    for spec in declarations.values():
        for arch in spec.archs:
            program = resolve(spec, bind_instances(spec, components), arch)
            members = [member for role in program.roles for member in role.members]
            assert len(members) == len(set(members))
            assert {name for name, _ in members} | {program.scheduler[0]} == {
                item.name for item in spec.instances
            }
