"""Threads of several warps interpreted at once give what each of them gives alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.lanes import DivergedError, WarpsDifferError, at, cell_of
from pipelink_rules.audit.machine_state import InconclusiveError, Names, State
from pipelink_rules.model.contract import Contract
from pipelink_rules.toolkit.ptx import read_ptx

CONTRACT = Contract("demo", "1.0.0", "", ("sm_90a",))
HEAD = ".visible .func f(\n .param .b64 f_param_0,\n .param .b32 f_param_1\n)\n"
LOAD = "ld.param.u64 %rd1, [f_param_0]; ld.param.u32 %r1, [f_param_1];"
RESULT = 5 << 40
OPERATIONS = ("add.s32", "sub.s32", "mul.lo.s32", "and.b32", "or.b32", "xor.b32", "min.s32")
OPERATIONS += ("max.u32", "shl.b32", "shr.u32", "shr.s32", "div.u32", "rem.u32", "mul.hi.u32")
COMPARISONS = ("lt.s32", "ge.u32", "eq.s32", "ne.s32")


def machine(body: str, threads: tuple[int, ...] = (), lane: int = 0) -> Interpreter:
    module = read_ptx(f"{HEAD}{{\n{LOAD}\n{body}\nret;\n}}\n")
    names = Names(CONTRACT, {}, {}, {})
    thread = threads[0] if threads else lane
    return Interpreter(module, names, State({}, (), {}), lane, thread=thread, threads=threads)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Arithmetic on the thread (%r1), with branches, predicates and selections on the results."""
    lines, last = [], 1
    for number in range(draw(st.integers(1, 8))):
        left, right = f"%r{draw(st.integers(1, last))}", draw(st.integers(-5, 40))
        predicate, last = f"%p{number}", last + 1
        operation = f"{draw(st.sampled_from(OPERATIONS))} %r{last}, {left}, {right};"
        lines += [f"mov.u32 %r{last}, {draw(st.integers(0, 9))};"]
        lines += [f"setp.{draw(st.sampled_from(COMPARISONS))} {predicate}, {left}, {right};"]
        form = draw(st.integers(0, 3))
        if form == 0:
            lines += [operation]
        elif form == 1:
            lines += [f"@{predicate} {operation}"]
        elif form == 2:
            lines += [f"@!{predicate} bra L{number};", operation, f"L{number}:"]
        else:
            lines += [f"selp.b32 %r{last}, {left}, {right}, {predicate};"]
    return "\n".join([*lines, f"st.u32 [%rd1], %r{last};"])


@given(programs(), st.sampled_from([(0,), (1, 2), (0, 1, 2, 3)]))
def test_group_computes_what_each_thread_computes(body: str, warps: tuple[int, ...]) -> None:
    pending = [warps]
    while pending:
        part = pending.pop()
        threads = tuple(32 * warp + lane for warp in part for lane in range(32))
        group = machine(body, threads)
        try:
            group.run("f", [RESULT, group.argument])
        except WarpsDifferError as found:
            pending += [tuple(part[number] for number in numbers) for numbers in found.parts]
            continue
        for position, thread in enumerate(threads):
            single = machine(body, lane=thread % 32)
            single.run("f", [RESULT, thread])
            key = RESULT >> 2
            expected = single.state.memory.get(key)
            assert at(group.state.memory.get(key), position) == expected, thread


def warp(body: str) -> Interpreter:
    found = machine(body, tuple(range(32)))
    found.run("f", [RESULT, found.argument])
    return found


@pytest.mark.parametrize(
    ("mask", "code"), [("0x0000ffff", ""), ("-1", "PL0707"), ("0xffff0000", "PL0707")]
)
def test_shuffle_of_half_a_warp_needs_its_mask(mask: str, code: str) -> None:
    shuffle = f"shfl.sync.idx.b32 %r5|%p2, %r1, 3, 31, {mask};"
    body = f"setp.lt.u32 %p1, %r1, 16;\n@!%p1 bra L1;\n{shuffle}\nst.u32 [%rd1], %r5;\nL1:"
    if not code:
        assert at(warp(body).state.memory.get(RESULT >> 2), 7) == 3
        return
    with pytest.raises(DivergedError) as problem:
        warp(body)
    assert problem.value.code == code and list(problem.value.lanes) == list(range(16))


def test_operation_on_both_sides_of_a_lane_branch_diverges() -> None:
    fence = "{ call.uni pl_fence_async, ( ); }"
    body = f"setp.lt.u32 %p1, %r1, 16;\n@%p1 bra L1;\n{fence}\nbra.uni L2;\nL1:\n{fence}\nL2:"
    with pytest.raises(DivergedError) as problem:
        warp(body)
    assert problem.value.code == "PL0934"
    assert warp("setp.lt.u32 %p1, %r1, 32;\n@!%p1 bra L1;\n" + fence + "\nL1:").state.log.events


def test_lane_loop_ends_for_each_lane() -> None:
    body = "mov.u32 %r2, 0; and.b32 %r3, %r1, 7;\nL1: add.s32 %r2, %r2, 1;"
    body += "\nsetp.lt.u32 %p1, %r2, %r3;\n@%p1 bra L1;\nst.u32 [%rd1], %r2;"
    cell = warp(body).state.memory.get(RESULT >> 2)
    assert [at(cell, lane) for lane in range(9)] == [1, 1, 2, 3, 4, 5, 6, 7, 1]


def test_loop_without_end_is_inconclusive() -> None:
    with pytest.raises(InconclusiveError, match="does not end"):
        warp("L1: bra.uni L1;")


def test_equal_values_are_one_number() -> None:
    assert cell_of([4, 4, 4]) == 4
    assert at(cell_of([4, 5, 4]), 1) == 5
