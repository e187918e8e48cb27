"""What a contract says about clusters: `cluster` and `along` of a schedule, `along` of a tile."""

from __future__ import annotations

import pytest

from pipelink_rules.contract.bind import bind
from pipelink_rules.contract.header import emit_header
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.model.contract import Contract

SCHEDULE = """\
contract: 2
component: blocks
version: 1.0.0
summary: Deal blocks of tiles to clusters.
arch: [sm_90a]
params: {TM: {type: int}, CM: {type: int}}
symbols: {M: {min: 1}, K: {min: 1}}
work:
  kind: rows
  direction: out
  tile: [TM]
  cluster: [CM, 1]
  tiles: ceildiv(M, CM * TM)
  fields: {m: {along: [x]}, k: {value: K}}
roles: {next: {scheduler: true}}
"""
LOADER = """\
contract: 2
component: load
version: 1.0.0
summary: Copy rows.
arch: [sm_90a]
params: {TM: {type: int}}
symbols: {M: {min: 1}}
work: {kind: rows, direction: in, tile: [TM], fields: {m: {}}}
roles: {load: {warps: 1, registers: {min: 40}, body: [acquire x, expect x, copy A -> x.t]}}
ports:
  A: {space: global, direction: in, role: load, dtype: bf16, shape: [M, 64],
      tile: {box: [TM, 64], along: [m]}}
  x: {space: ring, direction: out, role: load, proxy: async, tx_bytes: 128 * TM,
      item: {t: {dtype: bf16, shape: [TM, 64]}}}
"""


def read(text: str, *changes: tuple[str, str]) -> Contract:
    for old, new in changes:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return parse_contract(text, "s.contract.yaml")


def codes(text: str, *changes: tuple[str, str]) -> list[str]:
    with pytest.raises(PipelinkError) as caught:
        read(text, *changes)
    return [item.code for item in caught.value.diagnostics]


def test_clauses_are_read() -> None:
    work = read(SCHEDULE).work
    assert work is not None
    assert [extent.text for extent in work.cluster] == ["CM", "1"]
    assert [field.along for field in work.fields] == [("x",), ()]
    tile = read(LOADER).port("A").tile
    assert tile is not None and tile.along == ("m",)


def test_a_tile_that_says_nothing_is_not_one_that_stays() -> None:
    silent = read(LOADER, (", along: [m]", "")).port("A").tile
    still = read(LOADER, ("along: [m]", "along: []")).port("A").tile
    assert silent is not None and still is not None
    assert (silent.along, still.along) == (None, ())


@pytest.mark.parametrize(
    ("text", "old", "new", "code"),
    [
        (SCHEDULE, "cluster: [CM, 1]", "cluster: [CM]", "PL0017"),
        (SCHEDULE, "cluster: [CM, 1]", "cluster: [M, 1]", "PL0031"),
        (SCHEDULE, "along: [x]", "along: [z]", "PL0009"),
        (SCHEDULE, "k: {value: K}", "k: {value: K, along: [y]}", "PL0018"),
        (SCHEDULE, "  cluster: [CM, 1]\n", "", "PL0018"),
        (LOADER, "fields: {m: {}}", "fields: {m: {along: [x]}}", "PL0018"),
        (LOADER, "tile: [TM], fields", "tile: [TM], cluster: [2, 1], fields", "PL0018"),
        (LOADER, "along: [m]", "along: [n]", "PL0016"),
        (LOADER, "along: [m]", "along: [TM]", "PL0016"),
        (LOADER, "along: [m]", "along: [[m]]", "PL0007"),
    ],
)
def test_refused(text: str, old: str, new: str, code: str) -> None:
    assert code in codes(text, (old, new))


def test_a_cluster_has_at_most_eight_ctas_along_an_axis() -> None:
    with pytest.raises(PipelinkError) as caught:
        bind(read(SCHEDULE), {"TM": 64, "CM": 16})
    assert [item.code for item in caught.value.diagnostics] == ["PL0029"]


def test_only_a_schedule_of_clusters_is_given_its_place() -> None:
    served = emit_header(bind(read(SCHEDULE), {"TM": 64, "CM": 2}))
    assert "pipelink::ClusterPlace pl_cluster;" in served
    plain = read(SCHEDULE, ("  cluster: [CM, 1]\n", ""), ("{along: [x]}", "{}"))
    assert "ClusterPlace" not in emit_header(bind(plain, {"TM": 64, "CM": 2}))


def test_source_does_not_depend_on_the_position_of_a_tile() -> None:
    """The object is the same whether or not others may load for it."""
    said = bind(read(LOADER), {"TM": 64})
    silent = bind(read(LOADER, (", along: [m]", "")), {"TM": 64})
    assert said.digest == silent.digest
