"""Barrier and copy instructions of a component: what each of them means to its contract."""

from __future__ import annotations

import pytest

from pipelink_rules.audit.control_flow import function_code
from pipelink_rules.audit.interpreter import Interpreter
from pipelink_rules.audit.machine_state import (
    InconclusiveError,
    Names,
    RestrictionError,
    SharedRange,
    State,
    Table,
)
from pipelink_rules.model.contract import Contract, NamedBarrier
from pipelink_rules.model.source_span import Expr
from pipelink_rules.toolkit.ptx import read_ptx

CONTRACT = Contract(
    "demo", "1.0.0", "", ("sm_90a",), named_barriers=(NamedBarrier("met", ("run",), Expr("64")),)
)
RING = SharedRange("ab", True, 1024, 256, 2)
NAMES = Names(
    CONTRACT,
    {1024: RING},
    {33: "met"},
    {},
    (Table(RING, "full", 0x4000), Table(RING, "empty", 0x5000)),
    frozenset(("ab",)),
)
WAIT = "{{ AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [{0}], {1}; @!p bra AGAIN; }}\n"


def machine(
    body: str, lane: int = 0, names: Names = NAMES, *, first_try: bool = False
) -> Interpreter:
    text = f".visible .func f(\n .param .b64 f_param_0\n)\n{{\n{body}\nret;\n}}\n"
    return Interpreter(read_ptx(text), names, State({}, (RING,), {}), lane, first_try=first_try)


def events(body: str, lane: int = 0, *, first_try: bool = False) -> list[str]:
    running = machine(body, lane, first_try=first_try)
    running.run("f", [0])
    running.finish()
    return [str(event) for event in running.state.log.events]


@pytest.mark.parametrize("first_try", [False, True])
def test_waits_end_and_labels_of_two_scopes_are_two(first_try: bool) -> None:
    body = WAIT.format("0x4000", "0") + WAIT.format("0x4008", "1")
    assert events(body, first_try=first_try) == ["wait ab (item 0)", "wait ab (item 3)"]


def test_labels_of_a_scope_hide_those_around_it() -> None:
    text = "L: mov.u32 %r1, 1;\n{ L: bra L; }\nbra L;"
    function = read_ptx(f".visible .func f()\n{{\n{text}\n}}\n").functions[0]
    code = function_code(function)
    assert [code.labels[item.operands] for item in code.instructions[1:]] == [1, 0]


def test_a_producer_waits_for_the_phase_before() -> None:
    assert events(WAIT.format("0x5000", "1") + WAIT.format("0x5008", "0")) == [
        "acquire ab (item 0)",
        "acquire ab (item 3)",
    ]


def test_one_try_is_no_wait() -> None:
    once = "mbarrier.test_wait.parity.b64 p, [0x4000], 0;"
    assert events(once) == []
    assert events(once + once) == ["wait ab (item 0)"]


def test_an_arrival_is_for_the_item_waited_for() -> None:
    body = WAIT.format("0x4000", "1") + "mbarrier.arrive.shared::cta.b64 _, [0x5000];"
    assert events(body) == ["wait ab (item 2)", "release ab (item 2)"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("mbarrier.arrive.expect_tx.b64 _, [0x4000], 64;", ["expect ab (item 0, 64 bytes)"]),
        (
            "mbarrier.expect_tx.relaxed.cta.b64 [0x4000], 48;"
            "mbarrier.arrive.expect_tx.b64 _, [0x4000], 16;",
            ["expect ab (item 0, 64 bytes)"],
        ),
        (
            "mbarrier.expect_tx.relaxed.cta.b64 [0x4000], 48; mbarrier.arrive.b64 %rd1, [0x4000];",
            ["expect ab (item 0, 48 bytes)"],
        ),
        (
            "mbarrier.expect_tx.relaxed.cta.b64 [0x4000], 48; mbarrier.arrive.b64 _, [0x4008];",
            ["commit ab (item 1)", "mbarrier.expect_tx without an arrival"],
        ),
        (
            "mbarrier.arrive.expect_tx.relaxed.cta.b64 _, [0x4000], 64;",
            ["expect ab (item 0, 64 bytes)"],
        ),
        ("fence.proxy.async;", ["fence async"]),
        ("fence.proxy.async.shared::cta;", ["fence async"]),
        ("fence.proxy.async.global;", []),
        ("fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;", []),
        ("cp.async.bulk.prefetch.L2.global [%rd1], 64;", []),
        ("prefetch.tensormap [%rd1];", []),
        ("cp.async.bulk.wait_group.read 1;", ["await store 1"]),
        ("cp.async.bulk.wait_group 0;", ["await store 0 full"]),
        ("bar.sync 33, 64;", ["sync met"]),
        ("barrier.cta.arrive.aligned 33, 64;", ["arrive met"]),
        ("mapa.shared::cluster.u32 %r1, 0x5000, %cluster_ctarank;"
         "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];", ["release ab (item 0)"]),
    ],
)  # fmt: skip
def test_an_instruction_is_an_operation(body: str, expected: list[str]) -> None:
    assert events(body) == expected


def test_one_lane_is_elected() -> None:
    body = "elect.sync _|%p1, -1; @%p1 mbarrier.arrive.shared::cta.b64 _, [0x4000];"
    assert events(body) == ["commit ab (item 0)"]
    assert events(body, 31) == []


def test_arrivals_in_a_row_are_counted() -> None:
    running = machine("mbarrier.arrive.b64 _, [0x4000], 3; mbarrier.arrive.b64 _, [0x4000];")
    running.run("f", [0])
    assert running.state.log.arrivals == {0: 4}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("mbarrier.arrive.b64 _, [0x4010];", "PL0915"),  # one past the last
        ("mbarrier.arrive.b64 _, [0x4004];", "PL0915"),
        ("mapa.shared::cluster.u32 %r1, 0x5000, 0;", "PL0914"),  # 0 is not always this CTA
        ("mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [0x4000], 0;", "PL0934"),
        ("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [0x5000];", "PL0934"),
        ("bar.sync 41, 64;", "PL0915"),  # 33 + 8
        ("bar.sync 33, 32;", "PL0915"),
        ("bar.sync 33;", "PL0915"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
         " [0x9000], [%rd1], 16, [0x4000];", "PL0915"),
        ("red.global.add.u32 [0x200000000000], 1;", "PL0936"),
        ("ld.acquire.gpu.global.u32 %r1, [0x200000000000];", "PL0936"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32"
         " [0x200000000000], [1024], 16;", "PL0936"),
    ],
)  # fmt: skip
def test_no_contract_allows(body: str, code: str) -> None:
    with pytest.raises(RestrictionError) as problem:
        events(body)
    assert problem.value.code == code and problem.value.expected and problem.value.found


@pytest.mark.parametrize(
    "body",
    [
        "mbarrier.arrive.b64 _, [0x4000];",
        "mbarrier.test_wait.parity.b64 p, [%r1], 0;",
        "cp.async.bulk.commit_group;",
        "cp.async.bulk.wait_group.read 0;",
        "bar.sync 33, 64;",
    ],
)
def test_they_need_a_raw_port(body: str) -> None:
    plain = Names(CONTRACT, NAMES.rings, NAMES.barriers, {}, NAMES.tables)
    with pytest.raises(RestrictionError) as problem:
        machine(body, names=plain).run("f", [0])
    assert problem.value.code == "PL0935"


@pytest.mark.parametrize(
    "body",
    [
        "mbarrier.arrive.noComplete.b64 %rd1, [0x4000], 1;",
        "mbarrier.try_wait.b64 p, [0x4000], %rd1;",  # a token in place of a parity
        "mbarrier.try_wait.parity.b64 p, [0x4000], %r1;",
        "mbarrier.arrive.b64 _, [%r1];",
        "mapa.shared::cluster.u32 %r1, 0x5000, %r2;",
        "@%p1 mbarrier.arrive.b64 _, [0x4000];",
        "cp.async.ca.shared.global [1024], [%rd1], 16;",
        "atom.add.u32 %r1, [%rd1], 1;",
    ],
)
def test_other_unmodeled_instructions_are_inconclusive(body: str) -> None:
    with pytest.raises(InconclusiveError):
        events(body)


def test_atomics_on_shared_memory_are_accesses() -> None:
    running = machine("atom.shared.add.u32 %r1, [1280], 1; red.add.u32 [1024], 1;")
    running.run("f", [0])
    found = {str(access) for access in running.state.log.accesses[0]}
    assert found == {f"update ab (stage {stage})" for stage in (0, 1)}
    for access in running.state.log.accesses[0]:
        assert access.performed == {("read", "ab"), ("write", "ab")}
