"""Which instructions may a component not have?  Those that name a resource or a place."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipelink_rules.compile.ptx import Function, Statement
from pipelink_rules.compile.source_search import Sources, finding
from pipelink_rules.diagnostics.diagnostic import Diagnostic
from pipelink_rules.model.variant import Variant

_PLACE = re.compile(
    r"%(tid|ntid|ctaid|nctaid|warpid|nwarpid|smid|nsmid|gridid|clusterid|nclusterid"
    r"|cluster_ctaid|cluster_nctaid|cluster_ctarank|cluster_nctarank|is_explicit_cluster)\b"
)
_TENSOR_MEMORY = re.compile(r"tcgen05\.(alloc|dealloc|relinquish_alloc_permit)")

# What reaches beyond the CTA.  A bulk copy names shared::cluster also within its own CTA.
_BEYOND = re.compile(
    r"(?P<launch>griddepcontrol\b)"
    r"|(?P<work>clusterlaunchcontrol\b)"
    r"|(?P<multicast>\S*\.multicast::cluster\b)"
    r"|(?P<pair>\S*\.cta_group::2\b)"
    r"|(?P<own>mapa\b|mbarrier\.\S*shared::cluster\b)"
    r"|(?P<remote>getctarank\b|(st|red)\.async\b|(ld|st|atom|red)\.\S*shared::cluster\b"
    r"|cp\.async\.bulk\.shared::cluster\.shared::cta\b)"
)
_RANK = "%cluster_ctarank"
_REACHES = {
    "launch": "orders kernels of dependent launches",
    "work": "asks the hardware for another work item",
    "multicast": "copies into the shared memory of other CTAs",
    "pair": "uses the tensor memory of two CTAs",
    "own": "uses the shared memory of another CTA",
    "remote": "uses the shared memory of another CTA",
}


def scan_function(function: Function, variant: Variant, sources: Sources) -> Iterator[Diagnostic]:
    """Every forbidden instruction of a function."""
    for statement in function.statements:
        yield from _instruction(statement, function, variant, sources)


def _instruction(
    statement: Statement, function: Function, variant: Variant, sources: Sources
) -> Iterator[Diagnostic]:
    name = variant.contract.component
    if statement.base in ("bar", "barrier") and not statement.opcode.startswith("bar.warp"):
        yield from _barrier(statement, variant, sources)
    elif statement.base == "setmaxnreg":
        yield finding(
            "PL0907",
            f"`{name}` moves registers itself",
            variant,
            sources.find("setmaxnreg|reg_alloc|reg_dealloc"),
            "setmaxnreg",
            expected="registers: {min, want} in the contract",
            found=statement.text,
            helps=("remove it: the linked kernel moves registers once per warpgroup",),
        )
    elif statement.opcode.startswith(("mbarrier.init", "mbarrier.inval")):
        yield finding(
            "PL0907",
            f"`{name}` sets up an mbarrier itself",
            variant,
            sources.find(r"mbarrier\.(init|inval)|\binit\("),
            "mbarrier",
            expected="the barriers of its rings, which the linked kernel has set up",
            found=statement.text,
            helps=("remove it: arrivals and stages are counted by the linker",),
        )
    elif _TENSOR_MEMORY.match(statement.opcode):
        yield finding(
            "PL0907",
            f"`{name}` allocates tensor memory itself",
            variant,
            sources.find(r"tcgen05|TmemAlloc|Allocator"),
            "tensor memory",
            expected="columns given by the linker",
            found=statement.text,
        )
    elif kind := _beyond(statement, variant):
        yield finding(
            "PL0914",
            f"`{name}` {_REACHES[kind]}",
            variant,
            sources.find(
                r"griddepcontrol|clusterlaunchcontrol|multicast|cta_group::2|cluster|mapa"
            ),
            kind,
            expected="ports and operations of the contract, which stay within a CTA",
            found=statement.text,
            helps=("leave it out: no contract can say yet who waits for it",),
        )
    elif statement.base == "exit":
        yield finding(
            "PL0909",
            f"`{name}` ends its thread",
            variant,
            sources.find(r'"[^"]*\bexit\b'),
            function.name,
            expected="return from the entry",
            found=statement.text,
            helps=("return instead: the thread still has work items, releases and barriers",),
        )
    elif statement.base == "alloca":
        yield finding("PL0902", f"`{name}` calls alloca", variant, sources.find("alloca"), "alloca")
    elif statement.base == "call" and _is_indirect(statement):
        yield finding(
            "PL0902",
            f"`{name}` calls through a pointer",
            variant,
            sources.find(r"\bvirtual\b"),
            "indirect call",
            expected="calls of known functions, which are inlined",
            found=statement.text[:120],
            helps=("no virtual functions and no function pointers in device code",),
        )
    place = _PLACE.search(statement.operands)
    if place and not (place[0] == _RANK and _is_raw(variant)):
        yield finding(
            "PL0908",
            f"`{name}` reads {place[0]}",
            variant,
            sources.find(r"\b(threadIdx|blockIdx|blockDim|gridDim)\b") or sources.find(place[0]),
            place[0],
            expected="the entry's `thread` argument and the fields of the work item",
            found=statement.text,
            helps=(
                "use `thread` for the place in the role, work fields for the place in the grid",
            ),
        )


def _beyond(statement: Statement, variant: Variant) -> str:
    """What of _REACHES the instruction does, or "".

    Libraries address the barriers of their own CTA through the cluster, too: behind a raw port
    that is no sign of another CTA, and the audit sees which CTA it is.
    """
    found = _BEYOND.match(statement.opcode)
    kind = found.lastgroup or "" if found else ""
    return "" if kind == "own" and _is_raw(variant) else kind


def _is_raw(variant: Variant) -> bool:
    return any(port.raw for port in variant.contract.ports)


def _is_indirect(statement: Statement) -> bool:
    callee = [part for part in statement.arguments() if not part.startswith("(")]
    return bool(callee) and callee[0].startswith("%")


def _barrier(statement: Statement, variant: Variant, sources: Sources) -> Iterator[Diagnostic]:
    name = variant.contract.component
    if statement.opcode.startswith("barrier.cluster"):
        yield finding(
            "PL0907",
            f"`{name}` synchronises the cluster",
            variant,
            sources.find(r"cluster"),
            "cluster barrier",
            expected="cluster barriers are the linked kernel's",
            found=statement.text,
        )
        return
    arguments = statement.arguments()
    # A reduction has its result first.
    position = 1 if ".red" in statement.opcode else 0
    number = arguments[position] if len(arguments) > position else ""
    if number.isdigit():
        what = (
            "all threads of the kernel" if number == "0" and len(arguments) == 1 else "a literal id"
        )
        yield finding(
            "PL0907",
            f"`{name}` uses hardware barrier {number} ({what})",
            variant,
            sources.find(r"__syncthreads|\bbar(rier)?\.(cta\.)?(sync|arrive|red)|\.sync\(\)"),
            f"barrier {number}",
            expected="named_barriers: in the contract; ids are given by the linker",
            found=statement.text,
            helps=("declare a named barrier and use pl_barrier_sync(at.<name>)",),
        )
