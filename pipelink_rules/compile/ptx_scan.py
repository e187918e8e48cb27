"""Restrictions on component code: shadow PTX -> PL0901, PL0902, PL0906 to PL0909, PL0911 to PL0914.

PTX has no line numbers: the location of a diagnostic is found by searching the sources.  Local
memory is not checked here: arguments passed to the runtime by reference have addresses until they
are linked.  The register probe measures what remains then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Unpack

from pipelink_rules.diagnostics.diagnostic import Details, Diagnostic, Label, report
from pipelink_rules.diagnostics.wording import similar_name_help
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.variant import Variant
from pipelink_rules.toolkit.ptx import Function, Module, Statement, Variable
from pipelink_rules.toolkit.weak_symbols import demangle

_HIDDEN = {"vprintf": "printf", "malloc": "malloc", "free": "free"}
_HIDDEN |= dict.fromkeys(("__assertfail", "__assert_fail"), "assert")
_SPECIAL_REGISTERS = re.compile(
    r"%(tid|ntid|ctaid|nctaid|warpid|nwarpid|smid|nsmid|gridid|clusterid|nclusterid"
    r"|cluster_ctaid|cluster_nctaid|cluster_ctarank|cluster_nctarank|is_explicit_cluster)\b"
)
_RANK = "%cluster_ctarank"
_WORD = r"(?<![\w$]){}(?![\w$])"


class _Restriction(NamedTuple):
    """Instructions that a component may not contain."""

    code: str
    opcode: str  # regular expression
    message: str  # follows the name of the component
    subject: str  # "" = the function
    source: str  # regular expression that finds the instruction in a source
    expected: str = ""
    suggestion: str = ""


def _beyond_cta(opcode: str, message: str, subject: str) -> _Restriction:
    source = r"griddepcontrol|clusterlaunchcontrol|multicast|cta_group::2|cluster|mapa"
    expected = "ports and operations of the contract, which stay within a CTA"
    suggestion = "remove it: contracts cannot declare it yet"
    return _Restriction("PL0914", opcode, message, subject, source, expected, suggestion)


_ADDRESSES_CLUSTER = "cluster address"
_RESTRICTIONS = (
    _Restriction(
        "PL0907",
        r"setmaxnreg\b",
        "executes setmaxnreg",
        "setmaxnreg",
        "setmaxnreg|reg_alloc|reg_dealloc",
        "registers: {min, want} in the contract",
        "remove it: the linked kernel moves registers once per warpgroup",
    ),
    _Restriction(
        "PL0907",
        r"mbarrier\.(init|inval)",
        "initializes an mbarrier",
        "mbarrier",
        r"mbarrier\.(init|inval)|\binit\(",
        "the barriers of its rings, which the linked kernel initializes",
        "remove it: the linker counts arrivals and stages",
    ),
    _Restriction(
        "PL0907",
        r"tcgen05\.(alloc|dealloc|relinquish_alloc_permit)",
        "allocates tensor memory",
        "tensor memory",
        r"tcgen05|TmemAlloc|Allocator",
        "columns assigned by the linker",
    ),
    # A bulk copy names shared::cluster also within its CTA.
    _beyond_cta(r"griddepcontrol\b", "orders kernels of dependent launches", "launch"),
    _beyond_cta(r"clusterlaunchcontrol\b", "requests work tiles from the hardware", "work"),
    _beyond_cta(
        r"\S*\.multicast::cluster\b", "copies into the shared memory of other CTAs", "multicast"
    ),
    _beyond_cta(r"\S*\.cta_group::2\b", "uses the tensor memory of two CTAs", "pair"),
    _beyond_cta(
        r"mapa\b|mbarrier\.\S*shared::cluster\b",
        "uses the shared memory of another CTA",
        _ADDRESSES_CLUSTER,
    ),
    _beyond_cta(
        r"getctarank\b|(st|red)\.async\b|(ld|st|atom|red)\.\S*shared::cluster\b"
        r"|cp\.async\.bulk\.shared::cluster\.shared::cta\b",
        "uses the shared memory of another CTA",
        "remote",
    ),
    _Restriction(
        "PL0909",
        r"exit\b",
        "exits its thread",
        "",
        r'"[^"]*\bexit\b',
        "return from the entry",
        "return instead: the thread has further work tiles, releases and barriers",
    ),
    _Restriction("PL0902", r"alloca\b", "calls alloca", "alloca", "alloca"),
    _Restriction(
        "PL0907",
        r"barrier\.cluster",
        "synchronizes the cluster",
        "cluster barrier",
        "cluster",
        "cluster barriers in the linked kernel only",
    ),
)


def scan(
    module: Module, variant: Variant, sources: Sources, runtime: frozenset[str]
) -> tuple[Diagnostic, ...]:
    """Return the violations in a module, one for each code and subject.

    `runtime`: the operations of the device runtime, as its header declares them; empty = unknown.
    """
    found: dict[tuple[str, str], Diagnostic] = {}
    for item in _Scan(module, variant, sources, runtime).violations():
        found.setdefault((item.code, item.subject), item)
    return tuple(found.values())


@dataclass(frozen=True)
class Sources:
    """The component's source files, which locate a diagnostic."""

    texts: Mapping[str, str]  # file -> text

    def find(self, pattern: str) -> Label | None:
        """Return the first match outside of comments."""
        for file, text in self.texts.items():
            for number, line in enumerate(text.splitlines(), 1):
                code = line.split("//", 1)[0]
                hit = re.search(pattern, code)
                if hit:
                    length = max(1, hit.end() - hit.start())
                    return Label(Span(file, number, hit.start() + 1, length), "here")
        return None


@dataclass(frozen=True)
class _Scan:
    module: Module
    variant: Variant
    sources: Sources
    runtime: frozenset[str]

    def violations(self) -> Iterator[Diagnostic]:
        yield from self._entries()
        yield from self._variables()
        yield from self._externals()
        yield from self._recursion()
        for function in self.module.functions:
            for statement in function.statements:
                yield from self._instruction(statement, function)

    def _violation(
        self,
        code: str,
        message: str,
        subject: str,
        source: str | Label | None = None,
        **details: Unpack[Details],
    ) -> Diagnostic:
        """Return a diagnostic at the first match of `source`, then at the contract."""
        contract = self.variant.contract
        span = contract.span or (Span(contract.file) if contract.file else None)
        label = self.sources.find(source) if isinstance(source, str) else source
        where = (span, f"the contract of `{contract.component}`")
        return report(code, message, label, where, subject=subject, **details)

    @property
    def _raw(self) -> bool:
        return any(port.raw for port in self.variant.contract.ports)

    # -- entries, variables and calls -------------------------------------------------------------
    def _entries(self) -> Iterator[Diagnostic]:
        component = self.variant.contract.component
        defined = {item.name for item in self.module.functions if item.linkage == "visible"}
        for role in self.variant.contract.roles:
            symbol = self.variant.symbol(role.name)
            if symbol in defined:
                continue
            stem = symbol.rsplit("_", 1)[0]
            other = sorted(name for name in defined if name.rsplit("_", 1)[0] == stem)
            definition = f"PL_ENTRY({role.name})(...) {{ ... }}"
            yield report(
                "PL0906",
                f"role `{role.name}` of `{component}` has no entry in the object",
                (role.span, "declared here"),
                expected=symbol,
                found=", ".join(other) if other else "no such function",
                suggestions=(f"include the generated header and define {definition}",),
                subject=role.name,
            )
        for function in self.module.functions:
            if function.entry:
                yield self._violation(
                    "PL0912",
                    f"`{function.name}` is a kernel",
                    function.name,
                    expected="entries only, which the linked kernel calls",
                    suggestions=(f"make it a PL_ENTRY of `{component}`",),
                )

    def _variables(self) -> Iterator[Diagnostic]:
        spelled = demangle([item.name for item in self.module.variables])
        for item in self.module.variables:
            name = spelled[item.name]
            declaration = item.text.replace(item.name, name)[:120]
            if item.space == "shared":
                yield self._violation(
                    "PL0901",
                    f"undeclared shared memory `{name}`",
                    item.name,
                    r"\b__shared__\b",
                    expected="shared memory in `buffers` of the contract",
                    found=declaration,
                    suggestions=("declare a buffer in the contract and use its relocation",),
                )
            elif item.linkage != "extern" and _is_state(item, self.module):
                yield self._violation(
                    "PL0911",
                    f"`{name}` is mutable global state",
                    item.name,
                    rf"\b__device__\b.*\b{re.escape(name.rpartition('::')[2])}\b",
                    expected="constants; mutable data are arguments of the entry",
                    found=declaration,
                    suggestions=("make it `static constexpr`, or a port of the contract",),
                )

    def _externals(self) -> Iterator[Diagnostic]:
        component = self.variant.contract.component
        called = {callee for item in self.module.functions for callee in _callees(item)}
        for name in sorted(called & set(self.module.externs)):
            if name in _HIDDEN:
                word = _HIDDEN[name]
                fix = f"remove the {word}; the watchdog runtime reports where a kernel hangs"
                yield self._violation(
                    "PL0902",
                    f"`{component}` calls {word}",
                    word,
                    rf"\b{word}\b",
                    expected="no calls left after linking",
                    found=name,
                    suggestions=(fix,),
                )
            elif self.runtime and name not in self.runtime:
                yield self._violation(
                    "PL0913",
                    f"`{component}` calls undefined function `{name}`",
                    name,
                    rf"\b{re.escape(name)}\b",
                    expected="an operation of <pipelink/runtime.cuh>",
                    found=name,
                    suggestions=similar_name_help(name, sorted(self.runtime)),
                )

    def _recursion(self) -> Iterator[Diagnostic]:
        calls = {item.name: _callees(item) for item in self.module.functions}
        for name in calls:
            if name in _reachable(name, calls):
                spelled = demangle([name])[name]
                stem = spelled.partition("(")[0].rpartition("::")[2]
                what, source = f"`{spelled}` is recursive", rf"\b{re.escape(stem)}\b"
                wanted = "no recursion, which needs a stack"
                yield self._violation("PL0902", what, name, source, expected=wanted)

    # -- instructions -----------------------------------------------------------------------------
    def _instruction(self, statement: Statement, function: Function) -> Iterator[Diagnostic]:
        name = self.variant.contract.component
        if rule := self._restriction(statement):
            yield self._violation(
                rule.code,
                f"`{name}` {rule.message}",
                rule.subject or function.name,
                rule.source,
                expected=rule.expected,
                found=statement.text if rule.expected else "",
                suggestions=(rule.suggestion,) if rule.suggestion else (),
            )
        elif statement.base in ("bar", "barrier") and not statement.opcode.startswith("bar.warp"):
            yield from self._barrier(statement)
        elif statement.base == "call" and _is_indirect(statement):
            yield self._violation(
                "PL0902",
                f"`{name}` calls a function through a pointer",
                "indirect call",
                r"\bvirtual\b",
                expected="calls of known functions, which are inlined",
                found=statement.text[:120],
                suggestions=("remove virtual functions and function pointers from device code",),
            )
        register = _SPECIAL_REGISTERS.search(statement.operands)
        if register and not (register[0] == _RANK and self._raw):
            builtin = self.sources.find(r"\b(threadIdx|blockIdx|blockDim|gridDim)\b")
            yield self._violation(
                "PL0908",
                f"`{name}` reads {register[0]}",
                register[0],
                builtin or register[0],
                expected="the entry's `thread` argument and the fields of the work tile",
                found=statement.text,
                suggestions=(
                    "use `thread` as position in the role and work fields as position in the grid",
                ),
            )

    def _restriction(self, statement: Statement) -> _Restriction | None:
        """Return the violated restriction.

        Libraries address the barriers of the same CTA through the cluster as well.  On a raw port
        this does not indicate another CTA, and the audit checks which CTA is addressed.
        """
        for rule in _RESTRICTIONS:
            if re.match(rule.opcode, statement.opcode):
                return None if rule.subject == _ADDRESSES_CLUSTER and self._raw else rule
        return None

    def _barrier(self, statement: Statement) -> Iterator[Diagnostic]:
        arguments = statement.arguments()
        # The first operand of a reduction is its result.
        position = 1 if ".red" in statement.opcode else 0
        number = arguments[position] if len(arguments) > position else ""
        if number.isdigit():
            whole = number == "0" and len(arguments) == 1
            what = "all threads of the kernel" if whole else "a literal id"
            yield self._violation(
                "PL0907",
                f"`{self.variant.contract.component}` uses hardware barrier {number} ({what})",
                f"barrier {number}",
                r"__syncthreads|\bbar(rier)?\.(cta\.)?(sync|arrive|red)|\.sync\(\)",
                expected="named barriers of the contract, with ids from the linker",
                found=statement.text,
                suggestions=("declare a named barrier and use pl_barrier_sync(at.<name>)",),
            )


def _is_state(variable: Variable, module: Module) -> bool:
    if variable.space == "const":
        return "=" not in variable.text
    if variable.space != "global":
        return False
    word = re.compile(_WORD.format(re.escape(variable.name)))
    if not variable.linkage and not any(word.search(item.body) for item in module.functions):
        return False  # unreachable: headers define it and the component does not use it
    if variable.linkage == "visible" or "=" not in variable.text:
        return True
    return any(_writes(function, word) for function in module.functions)


def _writes(function: Function, word: re.Pattern[str]) -> bool:
    """Return whether the function stores to an address computed from the variable `word`."""
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


def _callees(function: Function) -> set[str]:
    found = set()
    for statement in function.statements:
        if statement.base == "call":
            names = [a for a in statement.arguments() if not a.startswith(("(", "%"))]
            found |= set(names[:1])
    return found


def _reachable(name: str, calls: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    todo = list(calls.get(name, ()))
    while todo:
        callee = todo.pop()
        if callee not in reached:
            reached.add(callee)
            todo += calls.get(callee, ())
    return reached


def _is_indirect(statement: Statement) -> bool:
    callee = [part for part in statement.arguments() if not part.startswith("(")]
    return bool(callee) and callee[0].startswith("%")
