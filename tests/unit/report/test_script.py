"""The operations that a recording is compared with, from the contracts of a program."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from samples import AUDIT, PLACEMENT, PROGRAM

from pipelink_rules.files.codec import read_json, write_json
from pipelink_rules.glue.operation_script import script_of
from pipelink_rules.model.contract import Operation, Repeat
from pipelink_rules.model.linked_kernel import Manifest, ScriptLoop, ScriptOp
from pipelink_rules.model.program import Program
from pipelink_rules.model.source_span import Expr, Span
from pipelink_rules.report.manifest import manifest_of

BODY = (
    Repeat(
        Expr("k_blocks"),
        (
            Operation("acquire", "ab", span=Span("load.yaml", 7, 3)),
            Operation("expect", "ab"),
            Operation("copy", "ab", member="B", source="B"),
            Operation("write", "ab"),  # the runtime does not see it
        ),
    ),
    Operation("await", "store", count=1),
    Operation("await", "mma", count=0),
    Operation("fence", "async"),
)


def with_body(
    instance: str, role: str, body: tuple[Operation | Repeat, ...], calls: int = 1
) -> Program:
    """The sample, with another body for one role."""
    instances = []
    for item in PROGRAM.instances:
        if item.name == instance:
            contract = item.variant.contract
            roles = tuple(
                dataclasses.replace(r, body=body) if r.name == role else r for r in contract.roles
            )
            contract = dataclasses.replace(contract, roles=roles)
            variant = dataclasses.replace(item.variant, contract=contract)
            item = dataclasses.replace(item, variant=variant)
        instances.append(item)
    roles = tuple(dataclasses.replace(r, calls=calls) for r in PROGRAM.roles)
    return dataclasses.replace(PROGRAM, instances=tuple(instances), roles=roles)


def test_only_what_the_runtime_sees() -> None:
    script = script_of(with_body("load", "load", BODY), dict(PLACEMENT.warps))
    assert script.items == "ceildiv(M, 128) * ceildiv(N, 64)"
    (load,) = (role for role in script.roles if role.name == "load")
    loop, *rest = load.body
    assert isinstance(loop, ScriptLoop) and loop.count == "k_blocks"
    ops = [step for step in (*loop.body, *rest) if isinstance(step, ScriptOp)]
    assert [(op.verb, op.site) for op in ops] == [
        ("acquire", 1),
        ("expect", 1),
        ("copy", 1),
        ("store wait", 0),
        ("fence", 0),
    ]
    assert ops[0].text == "load.load: acquire ab (load.yaml:7:3)"
    assert int(ops[2].value) > 0  # B lies behind A
    assert ops[3].value == "1"


def test_accumulators_that_change_warps() -> None:
    script = script_of(with_body("load", "load", ()), dict(PLACEMENT.warps))
    found = {
        role.name: [(op.verb, op.site, op.by_item) for op in role.body if isinstance(op, ScriptOp)]
        for role in script.roles
    }
    assert found["mma"] == [("acquire", 3, True), ("commit", 3, True)]
    assert found["store"] == [("wait", 4, True), ("release", 4, True)]


def test_entries_called_more_than_once() -> None:
    script = script_of(with_body("load", "load", BODY, calls=2), dict(PLACEMENT.warps))
    assert all(isinstance(role.body[0], ScriptLoop) for role in script.roles)
    assert {role.body[0].count for role in script.roles} == {"2"}  # type: ignore[union-attr]


@pytest.mark.parametrize("runtime", ["release", "watchdog", "jitter", "trace", "record"])
def test_the_manifest_has_what_the_runtime_needs(runtime: str, tmp_path: Path) -> None:
    (tmp_path / "c").write_bytes(b"")
    program = dataclasses.replace(PROGRAM, runtime=runtime)
    manifest = manifest_of(program, PLACEMENT, AUDIT, tmp_path / "c")
    assert (manifest.script is not None) == (runtime in ("trace", "record"))
    assert bool(manifest.sites) == (runtime != "release")
    assert read_json(write_json(tmp_path / "m.json", manifest), Manifest) == manifest
