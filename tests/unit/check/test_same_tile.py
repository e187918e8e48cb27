"""Waits for signals of other roles of the same work tile: accepted if they can complete."""

from __future__ import annotations

from typing import Any

import pytest
from programs import findings

from pipelink_rules.diagnostics.diagnostic import Diagnostic

BODY = "    body:\n      - repeat: 1 - part // PARTS\n"
PORTS = (
    '  seen: {space: counter, direction: out, role: mark, count: "ceildiv(R, ROWS)", arrivals: 2,'
    " scope: gpu}\n  look: {space: counter, direction: in, role: add, scope: gpu}\n"
    '  ended: {space: counter, direction: out, role: add, count: "ceildiv(R, ROWS)", arrivals: 4,'
    " scope: gpu}\n  after: {space: counter, direction: in, role: mark, scope: gpu}\n"
)
BARRIER = "named_barriers:\n  meet: {roles: [mark, add], count: 192}\n\n"
LOOK, DONE = "wait_until look[tile] part + 1", "signal ended[tile]"
AFTER, SEEN = "wait_until after[tile] part + 1", "signal seen[tile]"


def checked(mark: str, add: str) -> tuple[Diagnostic, ...]:
    """A second role `mark` of the base `total`; `add` does what is given before its work."""
    first = "".join(f"      - {line}\n" for line in add.split("; "))
    role = "  mark:\n    warps: 2\n    converged: warp\n    registers: {min: 40}\n    body:\n"
    role += "".join(f"      - {line}\n" for line in mark.split("; "))
    edits: dict[str, Any] = {
        "total": [
            [BODY, f"    body:\n{first}      - repeat: 1 - part // PARTS\n"],
            ["ports:\n", f"{role}\n{BARRIER if 'meet' in mark else ''}ports:\n{PORTS}"],
        ],
        "SConscript": [
            [
                '"total.ready": "total.done"}',
                '"total.ready": "total.done", "total.look": "total.seen",\n'
                '             "total.after": "total.ended"}',
            ]
        ],
    }
    return findings("total", **edits)


@pytest.mark.parametrize(
    ("mark", "add"),
    [
        (f"{SEEN}; {AFTER}", f"{LOOK}; {DONE}"),  # one after the other
        (f"{SEEN}; {AFTER}", f"{DONE}; {LOOK}"),  # at the same time
        (f"{AFTER}; {SEEN}", f"{DONE}; {LOOK}"),
        (f"sync meet; {SEEN}; {AFTER}", f"sync meet; {LOOK}; {DONE}"),
        (f"{SEEN}; sync meet; {AFTER}", f"{LOOK}; sync meet; {DONE}"),
        (f"{AFTER}; {SEEN}; sync meet", f"{DONE}; {LOOK}; sync meet"),
        (f"{SEEN}; wait_until after[tile] part", f"{LOOK}; {DONE}"),  # of lower tiles only
        (f"{SEEN}; repeat: part // PARTS\n        body: ['{AFTER}']",
         f"{LOOK}; {DONE}"),
    ],
)  # fmt: skip
def test_signals_that_can_precede(mark: str, add: str) -> None:
    assert [item.code for item in checked(mark, add)] == []


@pytest.mark.parametrize(
    ("mark", "add"),
    [
        (f"{AFTER}; {SEEN}", f"{LOOK}; {DONE}"),  # each waits for the other
        (f"sync meet; {SEEN}; {AFTER}", f"{LOOK}; sync meet; {DONE}"),
        (f"{AFTER}; sync meet; {SEEN}", f"sync meet; {DONE}; {LOOK}"),
        (f"{SEEN}; {AFTER}; sync meet", f"sync meet; {LOOK}; {DONE}"),
        (f"sync meet; repeat: part // PARTS\n        body: ['{AFTER}']; {SEEN}",
         f"sync meet; {LOOK}; {DONE}"),  # in the last work tiles only
    ],
)  # fmt: skip
def test_signals_that_cannot(mark: str, add: str) -> None:
    found = [item for item in checked(mark, add) if item.code == "PL0401"]
    assert found, checked(mark, add)
    assert "in the same tile" in found[0].message


def test_a_role_may_wait_for_an_earlier_signal() -> None:
    assert [i.code for i in checked(f"{SEEN}; {AFTER}", f"{DONE}; {LOOK}")] == []
    edits: dict[str, Any] = {
        "total": [["          - signal done[tile]\n", "          - signal done[tile]\n"
                   "          - wait_until ready[tile] part + 1\n"]]
    }  # fmt: skip
    assert findings("total", **edits) == ()
