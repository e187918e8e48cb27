"""Operations are formatted as they are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelink_rules.contract.load import load_contract
from pipelink_rules.contract.parse_operations import format_operation
from pipelink_rules.model.operation import operations

ROOT = Path(__file__).parents[3]
CONTRACTS = sorted(
    path
    for folder in ("components", "tests/golden_stages")
    for path in (ROOT / folder).rglob("*.contract.yaml")
)
UNSAID = re.compile(r" lag 0$| 0$")  # what a contract may leave out


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.name.split(".")[0])
def test_operations_are_formatted_as_written(path: Path) -> None:
    lines = path.read_text().splitlines()
    for role in load_contract(path).roles:
        for op in (
            o for body in (role.prologue, role.body, role.epilogue) for o in operations(body)
        ):
            assert op.span is not None
            first = op.span.column - 1
            written = lines[op.span.line - 1][first : first + op.span.length]
            text = format_operation(op)
            assert written in (text, UNSAID.sub("", text)), op.span


def test_there_is_every_verb() -> None:
    bodies = [
        body
        for path in CONTRACTS
        for role in load_contract(path).roles
        for body in (role.prologue, role.body, role.epilogue)
    ]
    verbs = {
        (op.verb, bool(op.source), bool(op.piece)) for body in bodies for op in operations(body)
    }
    assert {("mma", True, False), ("commit", True, False), ("commit", False, False)} <= verbs
    assert {("write", False, True), ("read", False, True), ("signal", False, True)} <= verbs
    assert {verb for verb, _, _ in verbs} >= {
        "copy",
        "store",
        "release",
        "wait_until",
        "await",
        "fence",
    }
