"""Does a component's code keep the rules for component sources?  Reads its shadow PTX.

PTX has no lines: the place of a diagnostic is found by looking for words in the sources.

Local memory is not judged here: what is passed by reference to the runtime has an address until
it is linked.  The probe sees what is left then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Unpack

from pipelink_rules.diagnostics.diagnostic import Details, Diagnostic, Label
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import Function, Module, Statement, Variable
from pipelink_rules.toolkit.weak_symbols import demangle

_HIDDEN = {
    "vprintf": "printf",
    "malloc": "malloc",
    "free": "free",
    "__assertfail": "assert",
    "__assert_fail": "assert",
}

_SPECIAL_REGISTERS = re.compile(
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


def scan(
    module: Module, variant: Variant, sources: Sources, runtime: frozenset[str]
) -> tuple[Diagnostic, ...]:
    """Return every rule that the code breaks, one finding per rule and function.

    `runtime`: the operations of the device runtime, as its header declares them; empty = unknown.
    """
    found: dict[tuple[str, str], Diagnostic] = {}
    findings = (
        *_entries(module, variant),
        *_variables(module, variant, sources),
        *_externals(module, variant, sources, runtime),
        *(
            item
            for function in module.functions
            for item in scan_function(function, variant, sources)
        ),
    )
    for item in findings:
        found.setdefault((item.code, item.subject), item)
    return tuple(found.values())


def _entries(module: Module, variant: Variant) -> Iterator[Diagnostic]:
    defined = {item.name for item in module.functions if item.linkage == "visible"}
    for role in variant.contract.roles:
        symbol = variant.symbol(role.name)
        if symbol in defined:
            continue
        stem = symbol.rsplit("_", 1)[0]
        other = sorted(name for name in defined if name.rsplit("_", 1)[0] == stem)
        yield Diagnostic(
            "PL0906",
            f"role `{role.name}` of `{variant.contract.component}` has no entry in the object",
            tuple(Label(span, "declared here") for span in (role.span,) if span),
            expected=symbol,
            found=", ".join(other) if other else "no such function",
            suggestions=(
                "include the generated header and define the entry as "
                f"PL_ENTRY({role.name})(...) {{ ... }}",
            ),
            subject=role.name,
        )
    for function in module.functions:
        if function.entry:
            yield component_diagnostic(
                "PL0912",
                f"`{function.name}` is a kernel",
                variant,
                None,
                function.name,
                expected="entries only: the linked kernel calls them",
                suggestions=(f"make it a PL_ENTRY of `{variant.contract.component}`",),
            )


def _variables(module: Module, variant: Variant, sources: Sources) -> Iterator[Diagnostic]:
    spelled = demangle([item.name for item in module.variables])
    for item in module.variables:
        name = spelled[item.name]
        if item.space == "shared":
            yield component_diagnostic(
                "PL0901",
                f"`{name}` is shared memory that the contract does not declare",
                variant,
                sources.find(r"\b__shared__\b"),
                item.name,
                expected="buffers: of the contract; the entry receives their addresses",
                found=item.text.replace(item.name, name)[:120],
                suggestions=("declare a buffer in the contract and take it from the relocations",),
            )
        elif item.linkage != "extern" and _is_state(item, module):
            yield component_diagnostic(
                "PL0911",
                f"`{name}` is global state of the object",
                variant,
                sources.find(rf"\b__device__\b.*\b{re.escape(name.rpartition('::')[2])}\b"),
                item.name,
                expected="constants only; what changes is an argument of the entry",
                found=item.text.replace(item.name, name)[:120],
                suggestions=("make it `static constexpr`, or a port of the contract",),
            )


def _is_state(variable: Variable, module: Module) -> bool:
    if variable.space == "const":
        return "=" not in variable.text
    if variable.space != "global":
        return False
    if not variable.linkage and not any(_names(item, variable.name) for item in module.functions):
        return False  # nobody can reach it: what headers define and the component does not use
    if variable.linkage == "visible" or "=" not in variable.text:
        return True
    return any(_writes(function, variable.name) for function in module.functions)


def _names(function: Function, name: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", function.body) is not None


def _writes(function: Function, name: str) -> bool:
    """Return whether the function stores through an address computed from the variable."""
    word = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    tainted: set[str] = set()
    for statement in function.statements:
        arguments = statement.arguments()
        if not arguments:
            continue
        if statement.base in ("st", "red") or (statement.base == "atom" and len(arguments) > 1):
            address = arguments[1] if statement.base == "atom" else arguments[0]
            if word.search(address) or tainted & set(re.findall(r"%\w+", address)):
                return True
        elif statement.base in ("mov", "cvta", "add", "mad", "sub", "selp"):
            sources = " ".join(arguments[1:])
            if word.search(sources) or tainted & set(re.findall(r"%\w+", sources)):
                tainted.add(arguments[0])
    return False


def _externals(
    module: Module, variant: Variant, sources: Sources, runtime: frozenset[str]
) -> Iterator[Diagnostic]:
    called = {callee for item in module.functions for callee in _callees(item)}
    for name in sorted(called & set(module.externs)):
        if name in _HIDDEN:
            word = _HIDDEN[name]
            yield component_diagnostic(
                "PL0902",
                f"`{variant.contract.component}` calls {word}",
                variant,
                sources.find(rf"\b{word}\b"),
                word,
                expected="no call that is left after linking",
                found=name,
                suggestions=(
                    f"remove the {word}; the watchdog runtime reports where a kernel stands",
                ),
            )
        elif runtime and name not in runtime:
            hint = similar_name_help(name, sorted(runtime))
            yield component_diagnostic(
                "PL0913",
                f"`{variant.contract.component}` calls `{name}`, which nobody defines",
                variant,
                sources.find(rf"\b{re.escape(name)}\b"),
                name,
                expected="an operation of <pipelink/runtime.cuh>",
                found=name,
                suggestions=hint,
            )
    calls = {item.name: _callees(item) for item in module.functions}
    for function in module.functions:
        if function.name in _reachable(function.name, calls):
            name = demangle([function.name])[function.name]
            stem = name.partition("(")[0].rpartition("::")[2]
            yield component_diagnostic(
                "PL0902",
                f"`{name}` calls itself",
                variant,
                sources.find(rf"\b{re.escape(stem)}\b"),
                function.name,
                expected="no recursion: it needs a stack",
            )


def _callees(function: Function) -> set[str]:
    found = set()
    for statement in function.statements:
        if statement.base == "call":
            names = [a for a in statement.arguments() if not a.startswith(("(", "%"))]
            found |= set(names[:1])
    return found


def _reachable(name: str, calls: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = list(calls.get(name, ()))
    while todo:
        callee = todo.pop()
        if callee not in seen:
            seen.add(callee)
            todo += calls.get(callee, ())
    return seen


@dataclass(frozen=True)
class Sources:
    """The component's own files, to say where a finding comes from."""

    texts: Mapping[str, str]  # file -> text

    def find(self, pattern: str) -> Label | None:
        """Return the first place outside of comments where the pattern matches."""
        for file, text in self.texts.items():
            for number, line in enumerate(text.splitlines(), 1):
                code = line.split("//", 1)[0]
                hit = re.search(pattern, code)
                if hit:
                    length = max(1, hit.end() - hit.start())
                    return Label(Span(file, number, hit.start() + 1, length), "here")
        return None


def component_diagnostic(
    code: str,
    message: str,
    variant: Variant,
    label: Label | None,
    subject: str,
    **details: Unpack[Details],
) -> Diagnostic:
    """Return a finding about a component: the place in its source where known, then its contract."""
    contract = variant.contract
    span = contract.span or (Span(contract.file) if contract.file else None)
    labels = [label] if label else []
    labels += [Label(span, f"the contract of `{contract.component}`")] if span else []
    return Diagnostic(code, message, tuple(labels), subject=subject, **details)


def scan_function(function: Function, variant: Variant, sources: Sources) -> Iterator[Diagnostic]:
    """Yield every forbidden instruction of a function."""
    for statement in function.statements:
        yield from _instruction(statement, function, variant, sources)


def _instruction(
    statement: Statement, function: Function, variant: Variant, sources: Sources
) -> Iterator[Diagnostic]:
    name = variant.contract.component
    if statement.base in ("bar", "barrier") and not statement.opcode.startswith("bar.warp"):
        yield from _barrier(statement, variant, sources)
    elif statement.base == "setmaxnreg":
        yield component_diagnostic(
            "PL0907",
            f"`{name}` moves registers itself",
            variant,
            sources.find("setmaxnreg|reg_alloc|reg_dealloc"),
            "setmaxnreg",
            expected="registers: {min, want} in the contract",
            found=statement.text,
            suggestions=("remove it: the linked kernel moves registers once per warpgroup",),
        )
    elif statement.opcode.startswith(("mbarrier.init", "mbarrier.inval")):
        yield component_diagnostic(
            "PL0907",
            f"`{name}` sets up an mbarrier itself",
            variant,
            sources.find(r"mbarrier\.(init|inval)|\binit\("),
            "mbarrier",
            expected="the barriers of its rings, which the linked kernel has set up",
            found=statement.text,
            suggestions=("remove it: arrivals and stages are counted by the linker",),
        )
    elif _TENSOR_MEMORY.match(statement.opcode):
        yield component_diagnostic(
            "PL0907",
            f"`{name}` allocates tensor memory itself",
            variant,
            sources.find(r"tcgen05|TmemAlloc|Allocator"),
            "tensor memory",
            expected="columns given by the linker",
            found=statement.text,
        )
    elif kind := _beyond(statement, variant):
        yield component_diagnostic(
            "PL0914",
            f"`{name}` {_REACHES[kind]}",
            variant,
            sources.find(
                r"griddepcontrol|clusterlaunchcontrol|multicast|cta_group::2|cluster|mapa"
            ),
            kind,
            expected="ports and operations of the contract, which stay within a CTA",
            found=statement.text,
            suggestions=("leave it out: no contract can say yet who waits for it",),
        )
    elif statement.base == "exit":
        yield component_diagnostic(
            "PL0909",
            f"`{name}` ends its thread",
            variant,
            sources.find(r'"[^"]*\bexit\b'),
            function.name,
            expected="return from the entry",
            found=statement.text,
            suggestions=("return instead: the thread still has work items, releases and barriers",),
        )
    elif statement.base == "alloca":
        yield component_diagnostic(
            "PL0902", f"`{name}` calls alloca", variant, sources.find("alloca"), "alloca"
        )
    elif statement.base == "call" and _is_indirect(statement):
        yield component_diagnostic(
            "PL0902",
            f"`{name}` calls through a pointer",
            variant,
            sources.find(r"\bvirtual\b"),
            "indirect call",
            expected="calls of known functions, which are inlined",
            found=statement.text[:120],
            suggestions=("no virtual functions and no function pointers in device code",),
        )
    register = _SPECIAL_REGISTERS.search(statement.operands)
    if register and not (register[0] == _RANK and _is_raw(variant)):
        yield component_diagnostic(
            "PL0908",
            f"`{name}` reads {register[0]}",
            variant,
            sources.find(r"\b(threadIdx|blockIdx|blockDim|gridDim)\b") or sources.find(register[0]),
            register[0],
            expected="the entry's `thread` argument and the fields of the work item",
            found=statement.text,
            suggestions=(
                "use `thread` for the place in the role, work fields for the place in the grid",
            ),
        )


def _beyond(statement: Statement, variant: Variant) -> str:
    """Return what of _REACHES the instruction does, or "".

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
        yield component_diagnostic(
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
        yield component_diagnostic(
            "PL0907",
            f"`{name}` uses hardware barrier {number} ({what})",
            variant,
            sources.find(r"__syncthreads|\bbar(rier)?\.(cta\.)?(sync|arrive|red)|\.sync\(\)"),
            f"barrier {number}",
            expected="named_barriers: in the contract; ids are given by the linker",
            found=statement.text,
            suggestions=("declare a named barrier and use pl_barrier_sync(at.<name>)",),
        )
