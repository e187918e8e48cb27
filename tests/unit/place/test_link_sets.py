"""Real kernels: what links, what does not, and by which numbers (tests/data/link_sets.yaml)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelink_rules.diagnostics.diagnostic import Diagnostic, PipelinkError
from pipelink_rules.model.placement import BARRIER_TABLE, PlacementProblem
from pipelink_rules.place.place import place
from pipelink_rules.place.verify import verify
from tests.unit.place.facts import problem_from

DATA = yaml.safe_load(
    (Path(__file__).parents[2] / "data" / "link_sets.yaml").read_text(encoding="utf-8")
)
COMPONENTS: dict[str, dict[str, Any]] = DATA["components"]
SETS: dict[str, dict[str, Any]] = DATA["sets"]


def problem_of_set(name: str) -> PlacementProblem:
    """The placement problem of one link set."""
    link = SETS[name]
    items: dict[str, dict[str, Any]] = {}
    barriers: dict[str, list[str]] = {}
    tensor: dict[str, dict[str, Any]] = {}
    fixed = 0
    for label, lives in link["uses"].items():
        component = COMPONENTS[label]
        main, end = lives if isinstance(lives[0], list) else (lives, [])
        for phases, part in ((main, "items"), (end, "end")):
            for item, (size, align, *stages) in component.get(part, {}).items():
                count = stages[0] if stages else 1
                items[f"{label}.{item}"] = {"bytes": size * count, "align": align, "phases": phases}
        for barrier in component.get("named", ()):
            barriers[f"{label}.{barrier}"] = [*main, *end]
        fixed += component.get("mbarriers", 0)
        for name, (columns, *stages) in component.get("tensor", {}).items():
            count = stages[0] if stages else 1
            tensor[f"{label}.{name}"] = {"columns": columns * count, "phases": [*main, *end]}
    rings = link.get("ring", {})
    for channel, ring in rings.items():
        items[channel] = {"bytes": ring["bytes"], "align": ring["align"], "channel": channel}
    roles = {
        role: {"warps": warps, "minimum": registers[0], "want": registers[-1], "warpgroup": group}
        for group, section in ((True, "wg"), (False, "roles"))
        for role, (warps, *registers) in link[section].items()
    }
    return problem_from(
        {
            "name": name,
            "target": link.get("target", "sm_90a"),
            "phases": link["phases"],
            "items": items,
            "stages": {channel: ring["stages"] for channel, ring in rings.items()},
            "roles": roles,
            "barriers": barriers,
            "mbarriers": {channel: ring.get("mbarriers", 2) for channel, ring in rings.items()},
            "mbarriers_fixed": fixed,
            "tensor": tensor,
        }
    )


def words(finding: Diagnostic) -> str:
    parts = (finding.message, finding.expected, finding.found, *finding.notes, *finding.suggestions)
    return "\n".join(parts)


@pytest.mark.parametrize("name", sorted(SETS))
def test_verdict(name: str) -> None:
    expect, problem = SETS[name]["expect"], problem_of_set(name)
    if "codes" in expect:
        with pytest.raises(PipelinkError) as refused:
            place(problem)
        findings = refused.value.diagnostics
        assert [finding.code for finding in findings] == expect["codes"]
        text = "\n".join(words(finding) for finding in findings)
        for said in expect["says"]:
            assert str(said) in text
        return
    placement = place(problem)
    assert verify(problem, placement) == []
    assert placement.proved
    found = {
        "threads": placement.threads,
        "entry": placement.entry_registers,
        "bytes": placement.bound_bytes,
        "columns": placement.tensor_columns,
        "ids": len({number for _, number in placement.named}),
        "stages": dict(placement.stages),
        "registers": {role: placement.registers(role) for role in expect.get("registers", {})},
    }
    assert {key: found[key] for key in expect} == expect


def test_an_id_claimed_twice_is_seen_by_the_checker() -> None:
    problem = problem_of_set("L05")
    together = replace(
        problem,
        lifetimes=("work",),
        items=(),
        mbarriers_fixed=0,
        barriers=tuple(replace(need, lifetimes=1) for need in problem.barriers),
    )
    placement = place(together)
    assert sorted(number for _, number in placement.named) == [1, 2, 3, 4]
    shipped = {"mpk.linear.tmem_alloc": 6, "mpk.attention.consumer_sync": 6}
    claimed = replace(
        placement,
        named=tuple((name, shipped.get(name, number)) for name, number in placement.named),
    )
    assert verify(together, claimed) == [
        "lifetime 0: id 6 belongs to mpk.attention.consumer_sync and mpk.linear.tmem_alloc"
    ]


def test_every_component_is_used_and_says_where_it_is_from() -> None:
    used = {label for link in SETS.values() for label in link["uses"]}
    assert used == set(COMPONENTS)
    for component in COMPONENTS.values():
        repository, commit, _ = component["from"].split(maxsplit=2)
        assert repository.count("/") == 1
        assert len(commit) == 8
    assert BARRIER_TABLE not in COMPONENTS
