"""Component rules, read from PTX: what is refused, and what only looks like it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from link_fixtures import bare_variant

from pipelink_rules.compile.ptx_scan import Sources, scan
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.contract import Port, Role
from pipelink_rules.model.source_span import Expr
from pipelink_rules.toolkit.ptx import read_ptx

BASE = bare_variant("scale")
ROLE = Role("apply", Expr("4"))
VARIANT = replace(BASE, contract=replace(BASE.contract, roles=(ROLE,)))
SYMBOL = VARIANT.symbol("apply")


def findings(
    body: str, before: str = "", source: str = "", runtime: frozenset[str] = frozenset()
) -> tuple[Diagnostic, ...]:
    text = (
        ".version 9.5\n.target sm_90a\n.address_size 64\n"
        f"{before}\n.visible .func {SYMBOL}(\n\t.param .b64 p0\n)\n{{\n{body}\n\tret;\n}}\n"
    )
    return scan(read_ptx(text), VARIANT, Sources({"scale.cu": source}), runtime)


def codes(body: str, before: str = "", runtime: frozenset[str] = frozenset()) -> list[str]:
    return [item.code for item in findings(body, before, runtime=runtime)]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("\tbar.sync 0;", "PL0907"),
        ("\tbarrier.cta.sync.aligned 3, 128;", "PL0907"),
        ("\tbar.arrive 5, 64;", "PL0907"),
        ("\tbarrier.cta.red.popc.aligned.u32 %r1, 2, 128, %p1;", "PL0907"),
        ("\tbarrier.cluster.arrive.aligned;", "PL0907"),
        ("\tsetmaxnreg.dec.sync.aligned.u32 40;", "PL0907"),
        ("\ttcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 64;", "PL0907"),
        ("\tmbarrier.init.shared::cta.b64 [%r1], 1;", "PL0907"),
        ("\tmbarrier.inval.shared::cta.b64 [%r1];", "PL0907"),
        (
            "\tcp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
            " [%r1], [%r2], 16, [%r3];",
            "PL0914",
        ),
        ("\tgriddepcontrol.wait;", "PL0914"),
        ("\tmapa.shared::cluster.u32 %r1, %r2, 1;", "PL0914"),
        ("\tmbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];", "PL0914"),
        ("\tst.async.weak.shared::cluster.b32 [%r1], 1, [%r2];", "PL0914"),
        (
            "\tcp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
            ".multicast::cluster [%r1], [%rd1, {%r2, %r3}], [%r4], %rs1;",
            "PL0914",
        ),
        ("\ttcgen05.mma.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;", "PL0914"),
        ("\tmov.u32 %r1, %tid.x;", "PL0908"),
        ("\tmov.u32 %r1, %ctaid.x;", "PL0908"),
        ("\tmov.u32 %r1, %cluster_ctarank;", "PL0908"),
        ("\t@%p1 exit;", "PL0909"),
        ("\talloca.u32 %r1, %r2;", "PL0902"),
        ("\tcall (retval0), %rd1, (param0), prototype_0;", "PL0902"),
        (f"\tcall.uni {SYMBOL}, (param0);", "PL0902"),
        ("\t.shared .align 4 .b8 tile[512];", "PL0901"),
    ],
)
def test_refused(body: str, code: str) -> None:
    assert codes(body) == [code]


@pytest.mark.parametrize(
    "body",
    [
        "\tbar.warp.sync -1;",
        "\tbarrier.cta.sync.aligned %r1, %r2;",  # an id from the relocations
        "\tbarrier.cta.red.popc.aligned.u32 %r1, %r2, 128, %p1;",
        "\tmov.u32 %r1, %laneid;",
        "\tcp.async.bulk.shared::cluster.global [%r1], [%rd1], %r2, [%r3];",
        "\tmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], %r2;",
        "\tfence.mbarrier_init.release.cluster;",
        "\tmov.u64 %rd1, %clock64;",
        "\t.local .align 8 .b8 __local_depot0[8];",  # judged after linking
        "\ttcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2];",
        "\ttrap;",
        "\tcall.uni (retval0), pl_ring_wait, (param0);",
    ],
)
def test_allowed(body: str) -> None:
    assert codes(body) == []


@pytest.mark.parametrize(
    ("before", "body", "state"),
    [
        (".global .align 4 .u32 counter;", "\tld.global.u32 %r1, [counter];", True),
        (".global .align 1 .b8 _ZN4cuda3std5beginE[1];", "", False),  # of a header, never used
        (".global .align 4 .u32 counter;", "\tmov.u64 %rd1, counter1;", False),
        (".visible .global .align 4 .u32 counter = 1;", "", True),
        (".visible .const .align 4 .b8 table[16];", "", True),
        (
            ".global .align 4 .b8 table[4] = {1};",
            "\tmov.u64 %rd1, table;\n\tld.u32 %r1, [%rd1];",
            False,
        ),
        (".weak .global .align 4 .b8 table[4] = {1};", "", False),
        (".const .align 4 .b8 table[4] = {1};", "", False),
        (".global .align 4 .u32 n = 1;", "\tst.global.u32 [n], %r1;", True),
        (
            ".global .align 4 .u32 n = 1;",
            "\tmov.u64 %rd1, n;\n\tadd.s64 %rd2, %rd1, 4;\n\tst.global.u32 [%rd2+8], %r1;",
            True,
        ),
        (".global .u32 n = 1;", "\tmov.u64 %rd1, n;\n\tatom.global.add.u32 %r2, [%rd1], 1;", True),
        (".global .u32 n = 1;", "\tst.u64 [%rd9], n;", False),  # its address is kept, not its value
    ],
)
def test_global_state(before: str, body: str, state: bool) -> None:
    assert codes(body, before) == (["PL0911"] if state else [])


def test_dynamic_shared_memory_is_not_the_components() -> None:
    assert codes("", ".extern .shared .align 16 .b8 smem[];") == ["PL0901"]


def test_kernels_and_missing_entries() -> None:
    found = findings("", ".visible .entry mine(\n.param .b64 p\n)\n{\nret;\n}\n")
    assert [item.code for item in found] == ["PL0912"]
    other = replace(VARIANT, digest="ba9876543210")
    text = f".visible .func {SYMBOL}()\n{{\n\tret;\n}}\n"
    (finding,) = scan(read_ptx(text), other, Sources({}), frozenset())
    assert finding.code == "PL0906"
    assert finding.found == SYMBOL  # the entry of another version is named


def test_calls_of_the_runtime_are_known_by_its_header() -> None:
    runtime = frozenset({"pl_ring_wait", "pl_ring_advance"})
    extern = ".extern .func pl_ring_wiat\n(\n.param .b64 p\n)\n;"
    body = "\tcall.uni pl_ring_wiat, (param0);"
    (finding,) = findings(body, extern, runtime=runtime)
    assert finding.code == "PL0913"
    assert finding.suggestions == ("a similar name exists: `pl_ring_wait`",)
    assert codes(body, extern) == []  # no header, no opinion: the link will tell


@pytest.mark.parametrize("name", ["vprintf", "malloc", "__assertfail"])
def test_hidden_calls(name: str) -> None:
    extern = f".extern .func {name}\n(\n.param .b64 p\n)\n;"
    assert codes(f"\tcall.uni {name}, (param0);", extern) == ["PL0902"]


def test_one_finding_per_rule_and_subject() -> None:
    assert codes(
        "\tbar.sync 0;\n\tbar.sync 0;\n\tmov.u32 %r1, %tid.x;\n\tmov.u32 %r1, %tid.y;"
    ) == [
        "PL0907",
        "PL0908",
    ]


def test_the_place_is_found_in_the_source_but_not_in_a_comment() -> None:
    source = "// __syncthreads() is not allowed\nvoid f() {\n  __syncthreads();\n}\n"
    (finding,) = findings("\tbar.sync 0;", source=source)
    assert finding.labels[0].span.line == 3
    assert finding.labels[0].span.column == 3


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("\tmapa.shared::cluster.u32 %r1, %r2, %r3;", ""),  # the audit sees which CTA it is
        ("\tmbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];", ""),
        ("\tmov.u32 %r1, %cluster_ctarank;", ""),
        ("\tmov.u32 %r1, %ctaid.x;", "PL0908"),
        ("\tst.async.weak.shared::cluster.b32 [%r1], 1, [%r2];", "PL0914"),
        ("\tld.shared::cluster.u32 %r1, [%r2];", "PL0914"),
        ("\tmbarrier.init.shared::cta.b64 [%r1], 1;", "PL0907"),
    ],
)
def test_behind_a_raw_port(body: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = Port("ab", "ring", "out", "apply", (), raw=True)
    contract = replace(VARIANT.contract, ports=(port,))
    monkeypatch.setitem(globals(), "VARIANT", replace(VARIANT, contract=contract))
    assert codes(body) == ([code] if code else [])
