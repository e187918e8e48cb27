"""Declarations become programs: transfers, channels, roles, names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pipelink_rules.check.agreement import unify_symbols
from pipelink_rules.contract.load import parse_contract
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.contract import Contract
from pipelink_rules.model.program import FUSED, HANDOVER, RING, MegakernelSpec, Program
from pipelink_rules.model.variant import Measured
from pipelink_rules.program.infer import bind_instances
from pipelink_rules.program.resolve import resolve
from pipelink_rules.program.spec import parse_declaration

Build = Callable[..., Program]
Refused = Callable[..., tuple[Diagnostic, ...]]


def roles(program: Program) -> dict[str, Any]:
    """Program roles by name."""
    return {role.name: role for role in program.roles}


def channels(program: Program) -> dict[str, Any]:
    """Channels by name."""
    return {channel.name: channel for channel in program.channels}


# -- transfers and roles --------------------------------------------------------------------------


def test_registers_fuse_and_rings_stay(linear: dict[str, Any], program: Build) -> None:
    found = program(linear)
    assert {item.name: item.transfer for item in found.connections} == {
        "bias.out -> store.acc": FUSED,
        "load.ab -> mma.ab": RING,
        "mma.acc -> bias.acc": FUSED,
    }
    assert list(roles(found)) == ["load", "mma+bias+store"]
    fused = roles(found)["mma+bias+store"]
    assert fused.members == (("mma", "mma"), ("bias", "apply"), ("store", "store"))
    assert (fused.warps, fused.calls, fused.warpgroup) == (8, 1, True)
    load = roles(found)["load"]
    assert (load.warps, load.calls, load.warpgroup) == (1, 1, False)


def test_registers_are_the_largest_of_the_members(linear: dict[str, Any], program: Build) -> None:
    fused = roles(program(linear))["mma+bias+store"]
    assert (fused.minimum, fused.want, fused.entry) == (96, 240, 90)


def test_a_handover_gives_the_consumers_a_warpgroup(linear: dict[str, Any], program: Build) -> None:
    found = program({**linear, "transfers": {"bias.acc": "handover"}})
    assert list(roles(found)) == ["load", "mma", "bias+store"]
    consumer = roles(found)["bias+store"]
    assert (consumer.warps, consumer.calls, consumer.warpgroup) == (4, 2, True)
    channel = channels(found)["mma.acc>bias.acc"]
    assert channel.kind == HANDOVER
    assert (channel.shares, channel.stage_bytes) == (2, 2 * 64 * 128 * 4)
    assert (channel.minimum, channel.maximum) == (1, 2)
    assert (channel.full_arrivals, channel.empty_arrivals) == (4, 4)
    assert channel.producer == ("mma", "acc")
    assert channel.consumers == (("bias", "acc"),)


def test_a_handover_with_one_warpgroup_has_one_share(
    linear: dict[str, Any], program: Build
) -> None:
    linear["instances"]["load"] = ("//parts:load", {"TM": 64, "TN": 128})
    found = program({**linear, "transfers": {"bias.acc": "handover"}})
    assert channels(found)["mma.acc>bias.acc"].shares == 1
    assert (roles(found)["bias+store"].warps, roles(found)["bias+store"].calls) == (4, 1)


def test_a_request_may_give_the_consumers_all_their_warps(
    linear: dict[str, Any], program: Build
) -> None:
    clauses = {**linear, "transfers": {"bias.acc": "handover"}, "warps": {"store": 8}}
    assert (roles(program(clauses))["bias+store"].warps) == 8


def test_a_second_handover_needs_a_producer_with_all_its_warps(
    linear: dict[str, Any], program: Build, refused: Refused
) -> None:
    linear["transfers"] = {"bias.acc": "handover", "store.acc": "handover"}
    (finding,) = refused(linear)
    assert finding.code == "PL0071"
    assert finding.suggestions == ('request all of them: warps={"bias": 8}',)
    linear["warps"] = {"bias": 8}
    assert list(roles(program(linear))) == ["load", "mma", "bias", "store"]


FRAGMENT = "role: go, fragment: wgmma_m64, dtype: f32, shape: [TM, TN]"
TWO = """
contract: 2
component: {name}
version: 1.0.0
summary: Two fragments.
arch: [sm_90a]
params: {{TM: {{type: int}}, TN: {{type: int}}, TK: {{type: int}}}}
work: {{kind: gemm_tile, direction: in, tile: [TM, TN, TK], fields: {{n: {{}}}}}}
roles: {{go: {{warps: TM // 16, registers: {{min: 64}}, body: {body}}}}}
ports:
  x: {{space: registers, direction: {x}, {fragment}}}
  y: {{space: registers, direction: {y}, {fragment}}}
  z: {{space: registers, direction: {z}, {fragment}}}
"""


def test_a_handover_inside_one_set_of_warps_is_refused(
    linear: dict[str, Any], refused: Refused
) -> None:
    fork = {"x": "in", "y": "out", "z": "out", "body": "[read x, write y, write z]"}
    join = {"x": "in", "y": "in", "z": "out", "body": "[read x, read y, write z]"}
    extra = {
        f"//case:{name}": parse_contract(TWO.format(name=name, fragment=FRAGMENT, **ports), name)
        for name, ports in (("fork", fork), ("join", join))
    }
    linear["instances"].update({name: (f"//case:{name}", {}) for name in ("fork", "join")})
    linear["connect"].update(
        {"fork.x": "bias.out", "join.x": "fork.y", "join.y": "fork.z", "store.acc": "join.z"}
    )
    (finding,) = refused({**linear, "transfers": {"join.y": "handover"}}, extra)
    assert finding.code == "PL0071"
    assert "other connections put both roles on the same warps" in finding.message


def test_fragments_that_wait_need_registers_meanwhile(
    components: dict[str, Contract], declarations: dict[str, MegakernelSpec]
) -> None:
    spec = declarations["gated_gemm"]
    program = resolve(spec, bind_instances(spec, components), "sm_90a")
    fused = roles(program)["mma_gate+mma_up+silu+store"]
    mma = program.instance("mma_up").variant.contract.role("mma").registers.minimum.literal
    assert mma is not None
    assert fused.minimum >= mma + 128 // 2  # the gate's accumulator waits while `up` multiplies


def test_warps_of_a_fused_role_are_requested_by_any_member(
    linear: dict[str, Any], program: Build, refused: Refused
) -> None:
    clauses = {**linear, "transfers": {"bias.acc": "handover"}}
    assert roles(program({**clauses, "warps": {"bias.apply": 4}}))["bias+store"].calls == 2
    found = refused({**clauses, "warps": {"bias": 4, "store": 8}})
    assert [item.code for item in found] == ["PL0072"]
    assert "shares its warps with `bias`" in found[0].message


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"tiles": 1}, "a tile scheduler runs inside every other role"),
        ({"bias.aply": 4}, "has no role `aply`"),
        ({"bias": 3}, "8 is not a multiple of 3"),
        ({"bias": 2}, "whole warpgroups"),
        ({"bias": 16}, "8 is not a multiple of 16"),
        ({"mma": 4}, "too many items of `ab`"),
        ({"bias": 0}, "8 is not a multiple of 0"),
    ],
)
def test_invalid_warp_request_reports_the_reason(
    linear: dict[str, Any], refused: Refused, request_: dict[str, int], said: str
) -> None:
    clauses = {**linear, "transfers": {"bias.acc": "handover"}, "warps": request_}
    (finding,) = refused(clauses)
    assert finding.code == "PL0072"
    assert said in finding.message


def test_measured_registers_override_declared_ones(
    linear: dict[str, Any], parts: dict[str, Contract]
) -> None:
    spec = parse_declaration(**linear)
    variants = bind_instances(spec, parts)
    measured = (("mma", Measured(registers=107, entry=91, stack_bytes=0, shared_bytes=0)),)
    variants["mma"] = replace(variants["mma"], measured=measured)
    fused = roles(resolve(spec, variants, "sm_90a"))["mma+bias+store"]
    assert (fused.minimum, fused.entry) == (112, 96)


# -- channels -------------------------------------------------------------------------------------


def test_a_ring_item_is_laid_out_by_its_producer(linear: dict[str, Any], program: Build) -> None:
    linear["instances"]["load"] = ("//parts:load", {"TM": 64, "TN": 128})
    (channel,) = program(linear).channels
    assert channel.name == "load.ab"
    assert channel.member_offsets == (("A", 0), ("B", 64 * 64 * 2))
    assert (channel.stage_bytes, channel.align) == ((64 + 128) * 64 * 2, 1024)
    assert (channel.minimum, channel.maximum) == (2, 8)
    assert (channel.full_arrivals, channel.empty_arrivals) == (1, 4)


def test_stages_may_be_fixed(linear: dict[str, Any], program: Build) -> None:
    linear["transfers"] = {"bias.acc": "handover"}
    found = channels(program({**linear, "stages": {"load.ab": 3, "mma.acc": 1}}))
    bounds = {name: (channel.minimum, channel.maximum) for name, channel in found.items()}
    assert bounds == {"load.ab": (3, 3), "mma.acc>bias.acc": (1, 1)}


@pytest.mark.parametrize(
    ("request_", "help_"),
    [
        ({"mma.ab": 3}, ("use the producer's port: `load.ab`",)),
        ({"load.ba": 3}, ("a similar name exists: `load.ab`",)),
        (
            {"load.ab": 1},
            ("remove `load.ab` from `stages`: the placement then chooses, from 2 to 8",),
        ),
        ({"mma.acc": 1}, ("known: load.ab",)),
    ],
)
def test_invalid_stage_request_is_reported(
    linear: dict[str, Any], refused: Refused, request_: dict[str, int], help_: tuple[str, ...]
) -> None:
    (finding,) = refused({**linear, "stages": request_})
    assert (finding.code, finding.suggestions) == ("PL0073", help_)


def test_rows_through_two_rings(
    components: dict[str, Contract], declarations: dict[str, MegakernelSpec]
) -> None:
    spec = declarations["rms_norm"]
    program = resolve(spec, bind_instances(spec, components), "sm_90a")
    assert [role.name for role in program.roles] == ["load", "norm", "store"]
    assert {item.transfer for item in program.connections} == {RING}
    rows = dict(program.instance("norm").variant.arguments)
    item = int(rows["ROWS"]) * int(rows["D"]) * 2
    assert {channel.stage_bytes for channel in program.channels} == {item}
    assert {(c.full_arrivals, c.empty_arrivals) for c in program.channels} == {(1, 4), (4, 1)}


# -- names ----------------------------------------------------------------------------------------


def test_tensors_keep_the_order_of_the_declaration(linear: dict[str, Any], program: Build) -> None:
    found = program(linear)
    assert found.tensors == (
        ("a", (("load", "A"),)),
        ("b", (("load", "B"),)),
        ("bias", (("bias", "vector"),)),
        ("out", (("store", "C"),)),
    )
    assert found.scalars == (("scale", (("bias", "scale"),)),)
    assert found.scheduler == ("tiles", "next")


def test_symbols_are_one_per_name(linear: dict[str, Any], program: Build) -> None:
    found = program(linear)
    assert found.symbols == ("K", "M", "N")
    symbols = {symbol.name: symbol for symbol in unify_symbols(found.instances)}
    assert (symbols["N"].minimum, symbols["N"].multiple_of) == (1, 8)
    assert (symbols["K"].multiple_of, symbols["M"].multiple_of) == (8, 1)
