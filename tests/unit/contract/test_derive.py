"""Clauses that a contract leaves out follow from the others, and are the ones it used to state."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from sample_contract import SAMPLE

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.files.codec import encode
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.source_span import Expr
from pipelink_rules.solver.decide import equal

ROOT = Path(__file__).resolve().parents[3]
# Contracts that state every clause: of tests and golden cases, written by hand.
COMPLETE = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for folder in ("tests/golden_stages/check_components", "tests/scons/project/kernels")
    for path in sorted((ROOT / folder).rglob("*.contract.yaml"))
} | {"sample": SAMPLE}
PORT_CLAUSES = ("space", "direction", "role", "rate", "proxy", "arrivals", "tx_bytes", "tile")
# Not derived: a bulk copy may bring fewer rows than the block has.
DIFFERENT = {("tx_bytes", "rows * D * sizeof(T)"), ("tx_bytes", "rows * D * 2")}


def without(data: Any, path: tuple[str, ...]) -> str:
    made = copy.deepcopy(data)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return yaml.safe_dump(made, sort_keys=False)


def omissions() -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, text in COMPLETE.items():
        data = yaml.safe_load(text)
        for port, clauses in data.get("ports", {}).items():
            for clause in PORT_CLAUSES:
                stated = clauses.get(clause)
                if stated is None or clauses.get("raw") or (clause, str(stated)) in DIFFERENT:
                    continue
                if clause == "tile" and ("along" in stated or clauses.get("direction") == "out"):
                    continue  # moving coordinates, and how a buffer is stored, are not derived
                yield name, ("ports", port, clause)
        for barrier, clauses in data.get("named_barriers", {}).items():
            for clause in clauses:
                yield name, ("named_barriers", barrier, clause)
        for buffer, clauses in data.get("buffers", {}).items():
            if "role" in clauses:
                yield name, ("buffers", buffer, "role")


def plain(contract: Contract) -> Any:
    """The contract without places; expressions as they are."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: strip(v) for k, v in value.items() if k not in ("span", "spans", "file")}
        return [strip(item) for item in value] if isinstance(value, list) else value

    return strip(encode(contract))


def same(left: Any, right: Any) -> bool:
    """Equal, expressions by value."""
    if isinstance(left, dict) and isinstance(right, dict):
        keys = {*left, *right}
        return all(same(left.get(key), right.get(key)) for key in keys)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if left == right:
        return True
    if isinstance(left, str) and isinstance(right, str):
        try:
            sized = (re.sub(r"sizeof\(\w+\)", "2", text) for text in (left, right))
            return equal(*map(Expr, sized)).holds is True
        except PipelinkError:
            return False
    return False


@pytest.mark.parametrize(("name", "path"), list(omissions()), ids=lambda value: str(value)[:70])
def test_a_clause_that_is_left_out_is_the_one_that_was_stated(
    name: str, path: tuple[str, ...]
) -> None:
    text = COMPLETE[name]
    whole = parse_contract(text, "s.contract.yaml")
    left = parse_contract(without(yaml.safe_load(text), path), "s.contract.yaml")
    assert same(plain(left), plain(whole)), path


def test_the_omissions_cover_every_clause() -> None:
    assert {path[-1] for _, path in omissions()} >= {*PORT_CLAUSES, "roles", "count"} - {"tile"}


SHORT = """\
contract: 2
component: relu
summary: Apply the rectified linear unit to the accumulator.
work: gemm_tile
roles: {apply: {split: warp, body: [read acc, write out]}}
ports:
  acc: {fragment: wgmma_m64, shape: [TM, TN]}
  out: {in_place: acc}
"""
LONG = """\
contract: 2
component: relu
version: 1.0.0
summary: Apply the rectified linear unit to the accumulator.
arch: [sm_90a]
params: {TM: {type: int, min: 8}, TN: {type: int, min: 8}, TK: {type: int, min: 8}}
work: {kind: gemm_tile, direction: in, tile: [TM, TN, TK], fields: {}}
roles:
  apply:
    warps: TM // 16
    converged: warp
    split: warp
    registers: {min: TN // 2 + 40, want: 240}
    body: [read acc, write out]
ports:
  acc: {space: registers, direction: in, role: apply, fragment: wgmma_m64, dtype: f32,
    shape: [TM, TN]}
  out: {space: registers, direction: out, role: apply, fragment: wgmma_m64, dtype: f32,
    shape: [TM, TN], in_place: acc}
numeric: {accumulate: f32, deterministic: true}
"""


def test_an_epilogue_needs_eight_lines() -> None:
    short, long = (parse_contract(text, "relu.contract.yaml") for text in (SHORT, LONG))
    stated, derived = (plain(made) for made in (long, short))
    assert stated["roles"][0].pop("registers") and derived["roles"][0].pop("registers")["probed"]
    assert derived == stated
    bound = bind(short, {"TM": 128, "TN": 256, "TK": 64}).contract
    assert bound.roles[0].warps.literal == 8 and bound.roles[0].registers.minimum.literal == 168


def test_a_derived_clause_points_at_the_operation_it_follows_from() -> None:
    contract = parse_contract(SHORT, "relu.contract.yaml")
    place = contract.port("acc").where("direction")
    assert place is not None and (place.line, place.column) == (5, 37)


def test_the_bytes_of_a_bulk_copy_are_stated() -> None:
    text = (ROOT / "components/stream/bulk_load_rows.contract.yaml").read_text(encoding="utf-8")
    data = yaml.safe_load(text)
    with pytest.raises(PipelinkError) as caught:
        parse_contract(without(data, ("ports", "block", "tx_bytes")), "s.contract.yaml")
    (found,) = caught.value.diagnostics
    assert found.code == "PL0006" and "tx_bytes" in found.message


def test_shipped_contracts_are_short() -> None:
    lines = {
        path.name.partition(".")[0]: len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / "components").rglob("*.contract.yaml")
    }
    assert max(lines[name] for name in ("relu", "gelu", "gelu_tanh")) <= 9
    assert lines["tma_load_ab"] <= 28 and lines["bulk_load_rows"] <= 20
    assert lines["wgmma_mainloop"] <= 32


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (SHORT.replace("work: gemm_tile", "work: gemm_tiles"), "PL0006"),
        (SHORT.replace("work: gemm_tile", "work: []"), "PL0007"),
        (SHORT.replace("roles: {apply:", "roles: {apply: 1, b:"), "PL0007"),
        (SHORT.replace("[read acc, write out]", "[[read acc], {repeat: 1}]"), "PL0007"),
        (SHORT.replace("{in_place: acc}", "{in_place: [acc]}"), "PL0007"),
        (SHORT.replace("shape: [TM, TN]", "shape: TM"), "PL0007"),
        (SHORT.replace("ports:", "params: []\nports:"), "PL0007"),
        (SHORT.replace("ports:", "numeric: f32\nports:"), "PL0007"),
    ],
)
def test_unreadable_contract_is_reported(text: str, code: str) -> None:
    with pytest.raises(PipelinkError) as caught:
        parse_contract(text, "s.contract.yaml")
    assert code in [item.code for item in caught.value.diagnostics]


def test_a_kind_beside_the_contract_is_found_first(tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "gemm_tile.yaml").write_text(
        "kind: gemm_tile\ntile: {TM: {type: int}, TN: {type: int}}\nfields: {}\n"
    )
    contract = parse_contract(SHORT, str(tmp_path / "relu.contract.yaml"))
    assert [param.name for param in contract.params] == ["TM", "TN"]
