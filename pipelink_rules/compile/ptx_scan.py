"""Does a component's code keep the rules for component sources?  Reads its shadow PTX.

Local memory is not judged here: what is passed by reference to the runtime has an address until
it is linked.  The probe sees what is left then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pipelink_rules.compile.forbidden_instructions import scan_function
from pipelink_rules.compile.ptx import Function, Module, Variable
from pipelink_rules.compile.source_search import Sources, finding
from pipelink_rules.compile.weak_symbols import demangle
from pipelink_rules.diagnostics.diagnostic import Diagnostic, Label
from pipelink_rules.diagnostics.suggest import similar_name_help
from pipelink_rules.model.variant import Variant

_HIDDEN = {
    "vprintf": "printf",
    "malloc": "malloc",
    "free": "free",
    "__assertfail": "assert",
    "__assert_fail": "assert",
}


def scan(
    module: Module, variant: Variant, sources: Sources, runtime: frozenset[str]
) -> tuple[Diagnostic, ...]:
    """Every rule that the code breaks, one finding per rule and function.

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
            helps=(
                "include the generated header and define the entry as "
                f"PL_ENTRY({role.name})(...) {{ ... }}",
            ),
            subject=role.name,
        )
    for function in module.functions:
        if function.entry:
            yield finding(
                "PL0912",
                f"`{function.name}` is a kernel",
                variant,
                None,
                function.name,
                expected="entries only: the linked kernel calls them",
                helps=(f"make it a PL_ENTRY of `{variant.contract.component}`",),
            )


def _variables(module: Module, variant: Variant, sources: Sources) -> Iterator[Diagnostic]:
    spelled = demangle([item.name for item in module.variables])
    for item in module.variables:
        name = spelled[item.name]
        if item.space == "shared":
            yield finding(
                "PL0901",
                f"`{name}` is shared memory that the contract does not declare",
                variant,
                sources.find(r"\b__shared__\b"),
                item.name,
                expected="buffers: of the contract; the entry receives their addresses",
                found=item.text.replace(item.name, name)[:120],
                helps=("declare a buffer in the contract and take it from the relocations",),
            )
        elif item.linkage != "extern" and _is_state(item, module):
            yield finding(
                "PL0911",
                f"`{name}` is global state of the object",
                variant,
                sources.find(rf"\b__device__\b.*\b{re.escape(name.rpartition('::')[2])}\b"),
                item.name,
                expected="constants only; what changes is an argument of the entry",
                found=item.text.replace(item.name, name)[:120],
                helps=("make it `static constexpr`, or a port of the contract",),
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
    """Whether the function stores through an address computed from the variable."""
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
            yield finding(
                "PL0902",
                f"`{variant.contract.component}` calls {word}",
                variant,
                sources.find(rf"\b{word}\b"),
                word,
                expected="no call that is left after linking",
                found=name,
                helps=(f"remove the {word}; the watchdog runtime reports where a kernel stands",),
            )
        elif runtime and name not in runtime:
            hint = similar_name_help(name, sorted(runtime))
            yield finding(
                "PL0913",
                f"`{variant.contract.component}` calls `{name}`, which nobody defines",
                variant,
                sources.find(rf"\b{re.escape(name)}\b"),
                name,
                expected="an operation of <pipelink/runtime.cuh>",
                found=name,
                helps=hint,
            )
    calls = {item.name: _callees(item) for item in module.functions}
    for function in module.functions:
        if function.name in _reachable(function.name, calls):
            name = demangle([function.name])[function.name]
            stem = name.partition("(")[0].rpartition("::")[2]
            yield finding(
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
