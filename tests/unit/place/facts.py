"""Placement problems from plain facts in YAML: for golden cases and for the link sets.

name: gemm
target: sm_90a
items:                                  # bytes, alignment; of a channel: per stage
  load.ab: {bytes: 49152, align: 1024, channel: load.ab}
stages: {load.ab: [2, 8]}               # minimum, maximum, priority (0)
roles:
  mma: {warps: 8, warpgroup: true, minimum: 160, want: 240, entry: 154}
barriers: {store.sync: [work]}          # the phases it lives in; [] = all
mbarriers: {load.ab: 2}
tensor: {mma.acc: {columns: 256, channel: mma.acc}}  # of a channel: per stage
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pipelink_rules.model.placement import (
    BarrierRequest,
    PlacementProblem,
    RoleRequest,
    SharedAllocation,
    StageVariable,
    TensorMemoryRequest,
)
from pipelink_rules.model.source_span import Span


def read_facts(path: Path, shown_as: str) -> tuple[dict[str, Any], dict[tuple[str, str], Span]]:
    """The mapping of a YAML file, and where each key of its two upper levels is written."""
    text = path.read_text(encoding="utf-8")
    spans: dict[tuple[str, str], Span] = {}
    root = yaml.compose(text)
    for section, entries in root.value if root else ():
        spans[section.value, ""] = _span(section, shown_as)
        if isinstance(entries, yaml.MappingNode):
            for key, _ in entries.value:
                spans[section.value, str(key.value)] = _span(key, shown_as)
    return yaml.safe_load(text), spans


def _span(node: Any, shown_as: str) -> Span:
    start, end = node.start_mark, node.end_mark
    return Span(shown_as, start.line + 1, start.column + 1, end.column - start.column)


def problem_from(
    facts: Mapping[str, Any], spans: Mapping[tuple[str, str], Span] | None = None
) -> PlacementProblem:
    """The problem that the facts state."""
    at = spans or {}
    phases = tuple(facts.get("phases", ["work"]))

    def mask(names: Sequence[str] | None) -> int:
        return sum(1 << phases.index(name) for name in (names or phases))

    return PlacementProblem(
        name=facts.get("name", "kernel"),
        target=facts.get("target", "sm_90a"),
        occupancy=facts.get("occupancy", 1),
        lifetimes=phases,
        items=tuple(
            SharedAllocation(
                name,
                item["bytes"],
                item.get("align", 16),
                mask(item.get("phases")),
                item.get("channel", ""),
                at.get(("items", name)),
            )
            for name, item in facts.get("items", {}).items()
        ),
        stages=tuple(
            StageVariable(name, *bounds, span=at.get(("stages", name)))
            for name, bounds in facts.get("stages", {}).items()
        ),
        roles=tuple(
            RoleRequest(
                name,
                role["warps"],
                role.get("warpgroup", False),
                role.get("minimum", 24),
                role.get("want", role.get("minimum", 24)),
                role.get("entry", 0),
                at.get(("roles", name)),
            )
            for name, role in facts.get("roles", {}).items()
        ),
        barriers=tuple(
            BarrierRequest(name, mask(lives), at.get(("barriers", name)))
            for name, lives in facts.get("barriers", {}).items()
        ),
        mbarriers_per_stage=tuple(facts.get("mbarriers", {}).items()),
        mbarriers_fixed=facts.get("mbarriers_fixed", 0),
        span=at.get(("name", "")),
        tensor=tuple(
            TensorMemoryRequest(
                name,
                need["columns"],
                mask(need.get("phases")),
                need.get("channel", ""),
                at.get(("tensor", name)),
            )
            for name, need in facts.get("tensor", {}).items()
        ),
    )
