"""PTX is taken apart into functions, variables and statements."""

from __future__ import annotations

from pipelink_rules.toolkit.ptx import read_ptx, without_comments

TEXT = """
.version 9.5
.target sm_90a
.address_size 64
	// .globl	entry
.extern .func  (.param .b32 func_retval0) pl_runtime
(
	.param .b32 pl_runtime_param_0
)
;
.weak .global .align 4 .b8 table[16] = {5, 0, 0, 0, 64};   // a comment; with a semicolon {
.extern .shared .align 16 .b8 dynamic[];
.visible .global .u32 counter;
.weak .func (.param .b32 func_retval0) _Z6helperi(
	.param .b32 _Z6helperi_param_0
)
{
	.reg .b32 	%r<3>;
	ld.param.b32 	%r1, [_Z6helperi_param_0];
	add.s32 	%r2, %r1, 1;
	st.param.b32 	[func_retval0], %r2;
	ret;
}
.visible .func entry(
	.param .b64 entry_param_0
)
{
	.local .align 8 .b8 	__local_depot1[16];
	.shared .align 4 .b8 tile[512];
	.reg .pred 	%p<2>;
	// begin inline asm
	{.reg .pred done;
again: mbarrier.try_wait.parity.shared::cta.b64 done, [%r1], %r2;
@!done bra again;}
	// end inline asm
	wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1, %f2, %f3, %f4}, %rd1, %rd2,
		p, 1, 1, 0, 0;
	@%p1 bra 	$L__BB1_2;
	{ // callseq 0, 0
	.param .b32 param0;
	call.uni (retval0),
	pl_runtime,
	(
	param0
	);
	} // callseq 0
$L__BB1_2:
	ret;
}
"""


def test_functions_with_their_linkage() -> None:
    module = read_ptx(TEXT)
    assert [(f.name, f.linkage, f.entry) for f in module.functions] == [
        ("_Z6helperi", "weak", False),
        ("entry", "visible", False),
    ]
    assert module.externs == ("pl_runtime",)
    assert module.function("entry") is module.functions[1]
    assert module.function("missing") is None


def test_variables_of_module_and_functions() -> None:
    found = [(v.name, v.linkage, v.space, "=" in v.text) for v in read_ptx(TEXT).variables]
    assert found == [
        ("table", "weak", "global", True),
        ("dynamic", "extern", "shared", False),
        ("counter", "visible", "global", False),
        ("__local_depot1", "", "local", False),
        ("tile", "", "shared", False),
    ]


def test_statements_with_guards_labels_scopes_and_operands() -> None:
    entry = read_ptx(TEXT).functions[1]
    found = [(s.guard, s.opcode) for s in entry.statements if not s.opcode.startswith(".")]
    assert found == [
        ("", "{"),
        ("", "label"),
        ("", "mbarrier.try_wait.parity.shared::cta.b64"),
        ("@!done", "bra"),
        ("", "}"),
        ("", "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16"),
        ("@%p1", "bra"),
        ("", "{"),
        ("", "call.uni"),
        ("", "}"),
        ("", "label"),
        ("", "ret"),
    ]
    call = next(s for s in entry.statements if s.base == "call")
    assert call.arguments() == ["(retval0)", "pl_runtime", "( param0 )"]
    mma = next(s for s in entry.statements if s.base == "wgmma")
    assert mma.arguments()[:2] == ["{%f1, %f2, %f3, %f4}", "%rd1"]


def test_comments_go_and_strings_stay() -> None:
    text = '.pragma "a // b"; // gone\n/* gone\n too */ ret;'
    assert without_comments(text).split() == [".pragma", '"a', "//", 'b";', "ret;"]
