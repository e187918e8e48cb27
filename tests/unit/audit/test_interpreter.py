"""Running PTX with known control values and unknown data."""

from __future__ import annotations

import pytest

from pipelink_rules.audit.control_flow import function_code
from pipelink_rules.audit.decode_ptx import arithmetic
from pipelink_rules.audit.execution_log import Access, Event, ExecutionLog
from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.machine_state import InconclusiveError, Names, SharedRange, State
from pipelink_rules.model.contract import Contract
from pipelink_rules.toolkit.ptx import Statement, read_ptx

CONTRACT = Contract("demo", "1.0.0", "", ("sm_90a",))
FENCE = "{ call.uni pl_fence_async, ( ); }"
WAIT = "{ .param .b32 param0; st.param.b32 [param0+0], %r9; call.uni pl_store_wait, ( param0 ); }"


def machine(body: str, ranges: tuple[SharedRange, ...] = ()) -> Interpreter:
    head = ".visible .func f(\n .param .b64 f_param_0,\n .param .b32 f_param_1\n)\n"
    text = f"{head}{{\n{body}\nret;\n}}\n"
    return Interpreter(read_ptx(text), Names(CONTRACT, {}, {}, {}), State({}, ranges, {}))


def events(body: str, *arguments: int | None) -> list[str]:
    running = machine(body)
    running.run("f", list(arguments))
    return [str(event) for event in running.state.log.events]


@pytest.mark.parametrize(
    ("opcode", "operands", "expected"),
    [
        ("add.s32", "%d, 4294967295, 2", 1),
        ("sub.s32", "%d, 1, 2", 0xFFFFFFFF),
        ("mad.lo.s32", "%d, 3, 4, 5", 17),
        ("mul.wide.s32", "%d, -2, 3", (1 << 64) - 6),
        ("mul.wide.u32", "%d, 4294967295, 2", 8589934590),
        ("mul.hi.u32", "%d, 4294967295, 2", 1),
        ("mul.hi.s32", "%d, -1, 2", 0xFFFFFFFF),
        ("mad.hi.u32", "%d, 4294967295, 2, 5", 6),
        ("mul.hi.u32", "%d, %unset, 2", None),
        ("shl.b32", "%d, 1, 33", 0),
        ("shr.s32", "%d, -8, 1", 0xFFFFFFFC),
        ("shr.u32", "%d, 4294967288, 1", 0x7FFFFFFC),
        ("and.b32", "%d, 12, 10", 8),
        ("not.b32", "%d, 0", 0xFFFFFFFF),
        ("min.s32", "%d, -1, 1", 0xFFFFFFFF),
        ("min.u32", "%d, -1, 1", 1),
        ("div.s32", "%d, -7, 2", 0xFFFFFFFD),
        ("div.u32", "%d, 7, 0", None),
        ("rem.s32", "%d, -7, 2", 0xFFFFFFFF),
        ("cvt.s64.s32", "%d, -1", (1 << 64) - 1),
        ("cvt.u64.u32", "%d, -1", 0xFFFFFFFF),
        ("setp.lt.s32", "%d, -1, 0", 1),
        ("setp.lt.u32", "%d, -1, 0", 0),
        ("selp.b32", "%d, 5, 6, 0", 6),
        ("selp.b32", "%d, 5, 6, %unset", None),
        ("selp.b32", "%d, 5, 5, %unset", 5),
        ("add.s32", "%d, %unset, 1", None),
        ("add.f32", "%d, 1, 1", None),
        ("popc.b32", "%d, 3", None),
    ],
)
def test_arithmetic(opcode: str, operands: str, expected: int | None) -> None:
    registers: dict[str, int | None] = {"%d": 99}
    arithmetic(Statement(f"{opcode} {operands}", "", opcode, operands))(registers)
    assert registers["%d"] == expected


def test_words_of_wide_registers() -> None:
    registers: dict[str, int | None] = {"%r1": 1, "%r2": 2}
    for operands in ("%rd1, {%r1, %r2}", "{%r3, %r4}, %rd1"):
        arithmetic(Statement(f"mov.b64 {operands}", "", "mov.b64", operands))(registers)
    assert (registers["%rd1"], registers["%r3"], registers["%r4"]) == (0x200000001, 1, 2)


def test_a_loop_runs_as_often_as_its_bound_says() -> None:
    loop = f"""
    ld.param.u32 %r1, [f_param_1];
    mov.u32 %r2, 0;
    L1:
    setp.ge.s32 %p1, %r2, %r1;
    @%p1 bra L2;
    {FENCE}
    add.s32 %r2, %r2, 1;
    bra.uni L1;
    L2:
    """
    assert [len(events(loop, 0, count)) for count in (0, 1, 5)] == [0, 1, 5]


def test_both_sides_of_a_branch_on_data() -> None:
    same = f"""
    @%p1 bra L1;
    mov.u32 %r9, 1;
    {FENCE}
    bra.uni L2;
    L1:
    mov.u32 %r9, 1;
    {FENCE}
    L2:
    {WAIT}
    """
    assert events(same, 0, 0) == ["fence async", "await store 1"]
    with pytest.raises(InconclusiveError, match="one side of a branch"):
        events(same.replace(FENCE, "", 1), 0, 0)
    with pytest.raises(InconclusiveError, match="depends on data"):
        events(same.replace("mov.u32 %r9, 1", "mov.u32 %r9, 2", 1), 0, 0)


def test_a_loop_that_data_end() -> None:
    loop = """
    mov.u32 %r9, 0;
    L1:
    add.s64 %rd1, %rd1, 4;
    ld.global.u32 %r1, [%rd1];
    setp.ne.s32 %p1, %r1, 0;
    %S
    @%p1 bra L1;
    """
    assert events(loop.replace("%S", "") + FENCE, 0, 0) == ["fence async"]
    with pytest.raises(InconclusiveError):
        events(loop.replace("%S", FENCE), 0, 0)
    with pytest.raises(InconclusiveError):  # what the loop changes is unknown behind it
        events(loop.replace("%S", "add.s32 %r9, %r9, 1;") + WAIT, 0, 0)


def test_loop_that_polls_memory_is_inconclusive() -> None:
    poll = "L1: ld.global.u32 %r1, [%rd1]; setp.ne.s32 %p1, %r1, 0; @%p1 bra L1;"
    with pytest.raises(InconclusiveError, match="waits until"):
        events(poll, 0, 0)
    counted = "mov.u32 %r2, 0; L1: ld.global.u32 %r1, [%rd1]; add.s32 %r2, %r2, 1;"
    assert events(counted + "setp.ne.s32 %p1, %r1, %r2; @%p1 bra L1;", 0, 0) == []


@pytest.mark.parametrize(
    "statement",
    [
        "cp.async.ca.shared.global [%r1], [%rd1], 16;",
        "bar.red.popc.u32 %r1, 1, %p1;",
        "bar.sync %r1, 64;",
        "@%p1 st.u32 [%rd1], 0;",
        "st.u32 [%rd1], 0;",
        "{ call.uni somewhere, ( ); }",
    ],
)
def test_unmodeled_instructions_are_inconclusive(statement: str) -> None:
    with pytest.raises(InconclusiveError):
        events(statement, 0, 0)


def test_shared_accesses_have_an_owner() -> None:
    running = machine(
        "mov.u32 %r1, 1056; st.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5};"
        "ld.shared.f32 %f1, [%r1+-32];",
        (SharedRange("ab", True, 1024, 32, 2),),
    )
    running.run("f", [0, 0])
    assert running.state.log.accesses == [{Access("write", "ab", 1), Access("read", "ab", 0)}]


def test_lane_31_knows_what_lane_0_gave() -> None:
    body = "ld.param.u32 %r1, [f_param_1]; shfl.sync.idx.b32 %r9|%p1, %r1, 0, 31, -1;" + WAIT
    first = machine(body)
    first.run("f", [0, 3])
    other = Interpreter(first.module, first.names, State({}, (), {}), 31, first.shuffles)
    other.run("f", [0, 7])
    assert other.state.log.events == [Event("await", "store", count=3)]


def test_where_branches_meet() -> None:
    function = read_ptx(
        ".visible .func f()\n{\n@%p1 bra A;\nmov.u32 %r1, 1;\n@%p2 bra B;\nA:\nmov.u32 %r2, 1;\n"
        "B:\nret;\n}\n"
    ).functions[0]
    code = function_code(function)
    assert (code.joins[0], code.joins[2]) == (code.labels["B"], code.labels["B"])


def test_copies_of_one_tile_are_one() -> None:
    trace = ExecutionLog()
    for _ in range(2):
        trace.emit(Event("copy", "ab", 0, 64, "A", "A"))
    trace.emit(Event("copy", "ab", 0, 64, "B", "B"))
    assert [event.count for event in trace.events] == [128, 64]
