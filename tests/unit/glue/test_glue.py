"""The glue of every megakernel: deterministic, complete, and saying what was placed."""

from __future__ import annotations

import dataclasses
import re

import pytest
from shipped_declarations import pairs, placement_of, program_of

from pipelink_rules.glue.cuda_writer import (
    WIDTH,
    CudaWriter,
    constant,
    cpp_expression,
    parameter_names,
)
from pipelink_rules.glue.emit import emit_glue
from pipelink_rules.glue.operation_script import site_numbers
from pipelink_rules.glue.parameters import kernel_parameters, parameter_index
from pipelink_rules.model.linked_kernel import KernelParameter
from pipelink_rules.model.program import HANDOVER
from pipelink_rules.model.source_span import Expr

PAIRS = pytest.mark.parametrize(("name", "arch"), pairs())


def glue_of(name: str, arch: str = "sm_90a") -> str:
    return emit_glue(program_of(name, arch), placement_of(name, arch))


@PAIRS
def test_glue_is_deterministic(name: str, arch: str) -> None:
    assert glue_of(name, arch) == glue_of(name, arch)


@PAIRS
def test_every_entry_is_called_once_per_role(name: str, arch: str) -> None:
    program, text = program_of(name, arch), glue_of(name, arch)
    for role in program.roles:
        for instance, member in role.members:
            symbol = program.instance(instance).variant.symbol(member)
            calls = text.count(f"{symbol}(")
            users = sum(
                (i, m) == (instance, member) or program.instance(i).variant.symbol(m) == symbol
                for r in program.roles
                for i, m in r.members
            )
            assert calls == users


@PAIRS
def test_schedule_runs_in_every_role(name: str, arch: str) -> None:
    program, text = program_of(name, arch), glue_of(name, arch)
    instance, role = program.scheduler
    symbol = program.instance(instance).variant.symbol(role)
    assert text.count(f"{symbol}(") == len(program.roles)


@PAIRS
def test_every_barrier_is_set_up_with_its_arrivals(name: str, arch: str) -> None:
    program, text = program_of(name, arch), glue_of(name, arch)
    found = re.findall(r"init_ring<(\w+)Stages>\([^;]*?,\s+(\d+),\s+(\d+)\);", text)
    wanted = [
        (constant(channel.name), str(channel.full_arrivals), str(channel.empty_arrivals))
        for channel in program.channels
        for _ in range(channel.shares)
    ]
    assert found == wanted


@PAIRS
def test_registers_are_those_of_the_placement(name: str, arch: str) -> None:
    placement, text = placement_of(name, arch), glue_of(name, arch)
    given = [int(x) for x in re.findall(r"(?:give|take)_registers<(\d+)>", text)]
    groups = {g.registers for g in placement.warpgroups if g.roles}
    assert set(given) == (groups - {placement.entry_registers} if placement.setmaxnreg else set())


@PAIRS
def test_no_path_and_no_absolute_place(name: str, arch: str) -> None:
    text = glue_of(name, arch)
    assert "/home" not in text
    assert all(line.rstrip() == line and len(line) <= WIDTH for line in text.splitlines())
    assert text.endswith("}\n")


def test_handed_over_accumulators_leave_before_the_next_item_and_arrive_before_use() -> None:
    text = glue_of("gemm_bias_gelu_epilogue_warps")
    store = text.index("handover_store(")
    assert text.index("wgmma_mainloop_mma_", text.index("mma_work{")) < store
    load = text.index("handover_load(")
    assert load < text.index("pl_bias_apply_", load)
    assert text.count("pl_ring_advance(") == 2


def test_roles_on_fewer_warps_are_called_per_share() -> None:
    program = program_of("gemm_bias_gelu_epilogue_warps")
    (role,) = [r for r in program.roles if r.calls > 1]
    text = glue_of("gemm_bias_gelu_epilogue_warps")
    assert f"call < {role.calls}" in text
    assert f"thread + call * {32 * role.warps}" in text
    (channel,) = [c for c in program.channels if c.kind == HANDOVER]
    assert channel.shares == role.calls * role.warps // 4


def test_two_variants_of_one_source_are_both_included() -> None:
    text = glue_of("scaled_add")
    assert len(set(re.findall(r'#include "(bulk_load_rows_\w+)/', text))) == 2
    assert text.count("#undef PL_CONTRACT_CURRENT_bulk_load_rows") == 2


def test_one_tensor_may_serve_several_ports() -> None:
    program = program_of("gated_gemm")
    index = parameter_index(program)
    assert index["load_gate", "A"] == index["load_up", "A"]
    assert index["load_gate", "B"] != index["load_up", "B"]


def test_sites_are_unique() -> None:
    for name, arch in pairs():
        numbers = list(site_numbers(program_of(name, arch)).values())
        assert len(numbers) == len(set(numbers))


def test_parameter_names_never_clash() -> None:
    same = KernelParameter("pointer", "a", "bf16", port="x.a")
    names = parameter_names((same, dataclasses.replace(same, port="y.a"), same))
    assert len(set(names)) == 3


def test_a_program_has_every_symbol_as_last_parameters() -> None:
    parameters = kernel_parameters(program_of("gemm"))
    assert [p.name for p in parameters[-3:]] == ["K", "M", "N"]


@pytest.mark.parametrize(
    ("expression", "cpp"),
    [
        ("ceildiv(M, 128) * N", "pipelink::ceildiv(M_extent, 128) * N_extent"),
        ("M // 2 + min(N, 4)", "M_extent / 2 + min(N_extent, 4)"),
        ("7", "7"),
    ],
)
def test_expressions_become_cpp(expression: str, cpp: str) -> None:
    assert cpp_expression(Expr(expression)) == cpp


def test_writer_wraps_lists_and_indents() -> None:
    out = CudaWriter()
    with out.block("if (x)"):
        out.listed("f(", ["a" * 60, "b" * 60], ");")
    lines = out.text().splitlines()
    assert lines[0] == "if (x) {" and lines[-1] == "}"
    assert all(len(line) <= WIDTH for line in lines)
