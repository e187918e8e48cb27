"""Every opcode has a place in the table; one without a place makes an audit inconclusive."""

from __future__ import annotations

import pytest

from pipelink_rules.audit.machine_state import InconclusiveError, RestrictionError
from pipelink_rules.audit.opcode_table import OPCODES, OpcodeClass, check_opcode, opcode_row
from pipelink_rules.toolkit.ptx import Statement


def statement(opcode: str) -> Statement:
    return Statement(opcode, "", opcode, "")


@pytest.mark.parametrize(
    ("opcode", "kind"),
    [
        ("add.s32", OpcodeClass.REGISTER),
        ("fma.rn.bf16x2", OpcodeClass.REGISTER),
        ("shfl.sync.idx.b32", OpcodeClass.REGISTER),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", OpcodeClass.REGISTER),
        ("ld.global.nc.L1::no_allocate.v4.u32", OpcodeClass.MEMORY),
        ("st.shared::cta.v4.b32", OpcodeClass.MEMORY),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", OpcodeClass.MEMORY),
        ("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16", OpcodeClass.OPERATION),
        ("cp.async.bulk.tensor.2d.shared::cluster.global", OpcodeClass.OPERATION),
        ("mbarrier.try_wait.parity.shared::cta.b64", OpcodeClass.OPERATION),
        ("atom.shared.add.f32", OpcodeClass.OPERATION),
        ("bra.uni", OpcodeClass.CONTROL),
        ("cp.async.ca.shared.global", OpcodeClass.FORBIDDEN),
        ("st.bulk.weak.shared::cta", OpcodeClass.FORBIDDEN),
        ("mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", OpcodeClass.FORBIDDEN),
    ],
)
def test_opcode_has_a_class(opcode: str, kind: OpcodeClass) -> None:
    row = opcode_row(opcode)
    assert row is not None and row.kind is kind and row.section
    if kind is not OpcodeClass.FORBIDDEN:
        check_opcode(statement(opcode))


@pytest.mark.parametrize(
    ("opcode", "code"),
    [
        ("red.relaxed.gpu.global.add.u32", "PL0936"),
        ("atom.global.add.noftz.bf16x2", "PL0936"),
        ("multimem.ld_reduce.weak.global.add.f32", "PL0936"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32", "PL0936"),
        ("tensormap.cp_fenceproxy.global.shared::cta", "PL0907"),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32", "PL0907"),
        ("mbarrier.init.shared::cta.b64", "PL0907"),
        ("red.async.relaxed.cluster.add.u32", "PL0914"),
        ("discard.global.L2", "PL0930"),
        ("tex.2d.v4.f32.f32", "PL0930"),
        ("sust.b.1d.b32.trap", "PL0930"),
    ],
)
def test_forbidden_opcode_has_a_code(opcode: str, code: str) -> None:
    with pytest.raises(RestrictionError) as problem:
        check_opcode(statement(opcode))
    assert problem.value.code == code and problem.value.expected and opcode in problem.value.found


@pytest.mark.parametrize("opcode", ["frobnicate.u32", "wmma.load.a.sync", "addd", "tcgen05.mma"])
def test_unknown_opcode_is_inconclusive(opcode: str) -> None:
    with pytest.raises(InconclusiveError, match=opcode.split(".")[0]):
        check_opcode(statement(opcode))


def test_each_row_names_its_section_and_code() -> None:
    for row in OPCODES.values():
        assert row.section.partition(":")[0].endswith("Instructions")
        assert bool(row.code) is (row.kind is OpcodeClass.FORBIDDEN)
