"""Machine code: calls, barriers, setmaxnreg and the registers of each region."""

from __future__ import annotations

import pytest

from pipelink_rules.link.sass import Instruction, KernelCode, section_of
from pipelink_rules.model.linked_kernel import BarrierSite

# Two warpgroups: the first gives registers away, the second takes some; both end alike.
TEXT = """
	.section	.text.demo,"ax",@progbits
demo:
.text.demo:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   S2R R5, SR_TID.X ;
        /*0020*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0030*/              @!P0 BRA `(.L_x_0) ;
.L_x_1:
        /*0040*/                   USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8 ;
        /*0050*/              @!P0 BRA `(.L_x_1) ;
        /*0060*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR4], R24, gsb0 ;
        /*0070*/                   BAR.SYNC.DEFER_BLOCKING 0x1, 0x80 ;
        /*0080*/                   BAR.ARV 0x2, 0x100 ;
        /*0090*/                   CALL.REL.NOINC `($demo$__internal_0_$__cuda_sm20_div_u32) ;
        /*00a0*/                   BRA `(.L_x_3) ;
.L_x_0:
        /*00b0*/                   USETMAXREG.DEALLOC.CTAPOOL 0x28 ;
        /*00c0*/                   UTMALDG.2D [UR8], [UR4], desc[URZ] ;
        /*00d0*/                   IMAD.WIDE.U32 R38, R5, 0x4, R2 ;
        /*00e0*/                   BAR.SYNC R3, R4 ;
.L_x_3:
        /*00f0*/                   EXIT ;
$demo$__internal_0_$__cuda_sm20_div_u32:
        /*0100*/                   MOV R12, R3 ;
        /*0110*/                   RET.REL.NODEC R2 `(demo) ;
$demo$report:
        /*0120*/                   MOV R200, R3 ;
        /*0130*/                   BPT.TRAP 0x1 ;
.L_x_9:
        /*0140*/                   BRA `(.L_x_9);
        /*0150*/                   NOP;
        /*0160*/                   NOP;
"""


def test_counts_leave_out_the_padding() -> None:
    assert len(KernelCode(TEXT)) == 20


def test_setmaxnreg_barriers_and_calls() -> None:
    code = KernelCode(TEXT)
    assert code.setmaxnreg == (40, 232)
    assert code.barriers == ((-1, 1), (0, 1), (1, 1), (2, 1))
    assert code.barrier_sites == (
        BarrierSite(-1, "sync", -1, 1),
        BarrierSite(0, "sync", 0, 1),
        BarrierSite(1, "sync", 128, 1),
        BarrierSite(2, "arrive", 256, 1),
    )
    assert code.calls == ("demo$__internal_0_$__cuda_sm20_div_u32",)


def test_calls_that_do_not_come_back() -> None:
    text = TEXT.replace("__internal_0_$__cuda_sm20_div_u32) ;", "report) ;", 1)
    code = KernelCode(text)
    assert code.calls == ()
    assert code.last_calls == ("demo$report",)
    code = KernelCode(text.replace("`($demo$report)", "R6"))
    assert code.calls == ("(register)",)  # where it leads is not known


def test_regions_follow_the_branch_of_each_warpgroup() -> None:
    regions = {region.registers: region for region in KernelCode(TEXT).regions}
    assert regions[232].highest == 24 + 128  # the accumulators
    assert regions[40].highest == 40  # R38 and R39
    assert KernelCode(TEXT).entry_region.highest == 6  # before the first setmaxnreg


def test_without_setmaxnreg_everything_is_one_region() -> None:
    text = TEXT.replace("USETMAXREG.DEALLOC.CTAPOOL 0x28", "NOP").replace(
        "USETMAXREG.TRY_ALLOC.CTAPOOL UP0, 0xe8", "NOP"
    )
    code = KernelCode(text)
    assert code.regions == () and code.setmaxnreg == ()
    assert code.entry_region.highest == 152


@pytest.mark.parametrize(
    ("opcode", "operands", "highest"),
    [
        ("MOV", "R7, UR8", 7),
        ("LDG.E.128", "R4, desc[UR4][R2.64]", 7),
        ("STG.E.128", "desc[UR4][R2.64], R8", 8),
        ("LDSM.16.M88.4", "R16, [R3]", 19),
        ("HGMMA.64x64x16.F32.BF16", "R24, gdesc[UR8], R24", 55),
        ("DADD.64", "R10, R12.64, R14.64", 15),
        ("ULDC", "UR4, c[0x0][0x208]", -1),
        ("ISETP.NE.U32.AND", "P0, PT, R4, RZ, PT", 4),
    ],
)
def test_registers_with_their_widths(opcode: str, operands: str, highest: int) -> None:
    assert Instruction(0, "", opcode, operands).highest_register == highest


def test_one_kernel_of_several() -> None:
    other = TEXT.replace("demo", "other")
    assert section_of(TEXT + other, "other").count("EXIT") == 1
    assert "demo" not in section_of(TEXT + other, "other")
    assert section_of(TEXT, "third") == ""


def test_a_call_is_in_the_pipeline_until_all_groups_are_awaited() -> None:
    assert KernelCode(TEXT).pipelined_calls == ("demo$__internal_0_$__cuda_sm20_div_u32",)
    barrier = "BAR.SYNC.DEFER_BLOCKING 0x1, 0x80"
    waited = TEXT.replace(barrier, "WARPGROUP.DEPBAR.LE gsb0, 0x0")
    assert KernelCode(waited).pipelined_calls == ()
    one_pending = TEXT.replace(barrier, "WARPGROUP.DEPBAR.LE gsb0, 0x1")
    assert KernelCode(one_pending).pipelined_calls == KernelCode(TEXT).pipelined_calls
