"""Entries of a declaration are compared with the ports of the components."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipelink_rules.contract.load import parse_contract
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.program import Program

Refused = Callable[..., tuple[Diagnostic, ...]]

WATCH = """
contract: 2
component: watch
version: 1.0.0
summary: Reads the ring that the mainloop reads.
arch: [sm_90a]
params: {TM: {type: int}, TN: {type: int}, TK: {type: int}, T: {type: dtype}}
work: {kind: gemm_tile, direction: in, tile: [TM, TN, TK], fields: {k_blocks: {}}}
roles:
  watch:
    warps: 2
    registers: {min: 32}
    body: [{repeat: k_blocks, body: [wait ab, read ab, fence async, release ab lag 0]}]
ports:
  ab:
    {space: ring, direction: in, role: watch, rate: k_blocks, proxy: generic, arrivals: 2, item: {
      A: {dtype: T, shape: [TM, TK], swizzle: 128}, B: {dtype: T, shape: [TN, TK], swizzle: 128}}}
"""


@pytest.fixture
def watch() -> dict[str, Contract]:
    return {"//case:watch": parse_contract(WATCH, "watch.contract.yaml")}


def test_a_ring_may_have_several_consumers(
    linear: dict[str, Any], program: Callable[..., Program], watch: dict[str, Contract]
) -> None:
    linear["instances"]["watch"] = ("//case:watch", {})
    linear["connect"]["watch.ab"] = "load.ab"
    (channel,) = program(linear, watch).channels
    assert channel.consumers == (("mma", "ab"), ("watch", "ab"))
    assert (channel.full_arrivals, channel.empty_arrivals) == (1, 8 + 2)


def test_a_misspelt_port_brings_no_findings_about_unconnected_ports(
    linear: dict[str, Any], refused: Refused
) -> None:
    linear["connect"]["bias.ac"] = linear["connect"].pop("bias.acc")
    (finding,) = refused(linear)
    assert finding.code == "PL0051"
    assert finding.suggestions == ("a similar name exists: `acc`",)


def test_a_direction_with_two_inputs_has_no_swap_to_offer(
    linear: dict[str, Any], refused: Refused
) -> None:
    linear["connect"]["store.acc"] = "bias.acc"
    found = {item.code: item for item in refused(linear)}
    assert found["PL0052"].suggestions == ()


def test_a_tensor_port_is_bound_not_connected(linear: dict[str, Any], refused: Refused) -> None:
    linear["connect"]["bias.vector"] = "mma.acc"
    del linear["connect"]["bias.acc"]
    del linear["tensors"]["bias"]
    found = {item.code: item for item in refused(linear)}
    assert found["PL0053"].suggestions == (
        'bind it to a launcher keyword: tensors={"...": "bias.vector"}',
    )


def test_a_chip_port_cannot_be_bound(linear: dict[str, Any], refused: Refused) -> None:
    linear["tensors"]["acc"] = "bias.acc"
    (finding,) = refused(linear)
    assert (finding.code, finding.suggestions) == ("PL0058", ("move it to `connect`",))


def test_a_scalar_bound_twice_and_one_never(linear: dict[str, Any], refused: Refused) -> None:
    linear["scalars"] = {"scale": "bias.scale", "factor": "bias.scale"}
    assert [item.code for item in refused(linear)] == ["PL0059"]
    linear["scalars"] = {}
    (finding,) = refused(linear)
    assert (finding.code, finding.subject) == ("PL0060", "bias.scale")


def test_an_unconnected_ring_input_offers_the_rings(
    linear: dict[str, Any], refused: Refused, watch: dict[str, Contract]
) -> None:
    linear["instances"]["watch"] = ("//case:watch", {})
    (finding,) = refused(linear, watch)
    assert finding.code == "PL0055"
    assert finding.suggestions == ('add to `connect`: "watch.ab": "load.ab"',)
    assert "hangs waiting for the first item" in finding.at_run_time


def test_findings_of_all_kinds_come_together(linear: dict[str, Any], refused: Refused) -> None:
    linear["instances"]["other"] = ("//parts:nothing", {})
    linear["instances"]["more"] = ("//parts:tiles", {"SIZE": 3})
    linear["tensors"]["c"] = "bias.vector"
    codes = [item.code for item in refused(linear)]
    assert codes == ["PL0050", "PL0059", "PL0065", "PL0023"]


def test_two_tile_schedulers_are_both_reported(linear: dict[str, Any], refused: Refused) -> None:
    linear["instances"]["more"] = ("//parts:tiles", {})
    (finding,) = refused(linear)
    assert finding.code == "PL0065"
    assert [label.text for label in finding.labels] == [
        "`more` is a tile scheduler",
        "`tiles` is a tile scheduler",
    ]
