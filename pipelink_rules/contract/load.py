"""What does a contract file promise?  path -> Contract, or every finding of the file at once."""

from __future__ import annotations

import re
from pathlib import Path

from pipelink_rules.contract.names import problem_with
from pipelink_rules.contract.ops import Reach, read_body, uses_mma
from pipelink_rules.contract.ports import (
    BARRIER_KEYS,
    BUFFER_KEYS,
    COMPILE_TIME,
    DIRECTIONS,
    LAUNCH_TIME,
    PORT_KEYS,
    check_in_place,
    read_barrier,
    read_buffer,
    read_port,
)
from pipelink_rules.contract.reader import LARGEST, Block, Findings
from pipelink_rules.contract.text import Scalar, Table, read_nodes, read_text, shown
from pipelink_rules.diagnostics.diagnostic import Label, PipelinkError
from pipelink_rules.diagnostics.suggest import did_you_mean
from pipelink_rules.model.contract import (
    DTYPES,
    Contract,
    Numeric,
    Param,
    Registers,
    Role,
    Symbol,
    Work,
    WorkField,
)
from pipelink_rules.model.source import Expr, Span
from pipelink_rules.model.target import TARGETS

SCHEMA_VERSION = 1
VERSION = re.compile(r"[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.-]+)?")
CONVERGED = ("thread", "warp", "warpgroup", "role")
SPLIT = ("role", "warpgroup", "warp")
NAN = ("propagate", "max_num")
CODEGEN_FLAGS = ("ftz", "prec-div", "prec-sqrt", "fmad")

KEYS = {
    "contract": True,
    "component": True,
    "version": True,
    "summary": True,
    "arch": True,
    "params": False,
    "symbols": False,
    "where": False,
    "work": True,
    "roles": True,
    "ports": False,
    "buffers": False,
    "named_barriers": False,
    "numeric": False,
    "requires": False,
}
PARAM_KEYS = {
    "type": True,
    "in": False,
    "min": False,
    "max": False,
    "multiple_of": False,
    "default": False,
}
SYMBOL_KEYS = {"min": False, "max": False, "multiple_of": False}
WORK_KEYS = {"kind": True, "direction": True, "tile": True, "items": False, "fields": True}
FIELD_KEYS = {"value": False, "min": False, "max": False}
ROLE_KEYS = {
    "schedule": False,
    "warps": False,
    "converged": False,
    "split": False,
    "registers": False,
    "prologue": False,
    "body": False,
    "epilogue": False,
}
REGISTERS_KEYS = {"min": True, "want": False, "entry": False}
NUMERIC_KEYS = {
    "accumulate": False,
    "rounds_to": False,
    "deterministic": False,
    "nan": False,
    "flags": False,
}
FLAG_KEYS = dict.fromkeys(CODEGEN_FLAGS, False)


def load_contract(path: str | Path) -> Contract:
    """The contract of a file; raises PipelinkError with every finding of the file."""
    file = shown(path)
    return parse_contract(read_text(path, file), file)


def parse_contract(text: str, file: str) -> Contract:
    """The contract of a text; `file` is the name that spans carry."""
    findings = Findings()
    top = Block(findings, read_nodes(text, file), "the contract", Span(file, 1, 1), KEYS)
    _check_version(top)
    if not top.readable or (findings.found and _other_version(top)):
        raise PipelinkError(findings.found)
    contract = _contract(top, findings, file)
    if findings.found:
        raise PipelinkError(sorted(findings.found, key=lambda item: item.labels[0].span))
    return contract


def _other_version(top: Block) -> bool:
    return any(item.code == "PL0004" for item in top.findings.found)


def _check_version(top: Block) -> None:
    node = top.scalar("contract", "the version of the contract language")
    if node is not None and node.text != str(SCHEMA_VERSION):
        top.findings.add(
            "PL0004",
            f"this contract is written in version {node.text} of the language",
            node.span,
            expected=f"contract: {SCHEMA_VERSION}",
            found=f"contract: {node.text}",
            helps=("update PipeLink, or write the contract in the version it knows",),
        )


def _contract(top: Block, findings: Findings, file: str) -> Contract:
    _declare(top)
    params = tuple(
        _param(name, block) for name, block in top.blocks("params", PARAM_KEYS, "parameter")
    )
    findings.dtype_params.update(param.name for param in params if param.type == "dtype")
    symbols = tuple(
        _symbol(name, block) for name, block in top.blocks("symbols", SYMBOL_KEYS, "symbol")
    )
    work = _work(top)
    blocks = dict(top.blocks("roles", ROLE_KEYS, "role"))
    if "roles" in top and not blocks and not findings.blind:
        top.wrong(top.nodes["roles"], "a mapping with a role", "`roles`")
    ports = {n: read_port(n, b, blocks) for n, b in top.blocks("ports", PORT_KEYS, "port")}
    check_in_place(findings, ports)
    buffers = {
        n: read_buffer(n, b, blocks) for n, b in top.blocks("buffers", BUFFER_KEYS, "buffer")
    }
    barriers = {
        n: read_barrier(n, b, blocks)
        for n, b in top.blocks("named_barriers", BARRIER_KEYS, "named barrier")
    }
    roles = tuple(
        _role(name, block, work, Reach(name, ports, buffers, barriers, blocks, not findings.blind))
        for name, block in blocks.items()
    )
    return Contract(
        component=_component(top),
        version=_version(top),
        summary=top.text("summary"),
        archs=_archs(top),
        params=params,
        symbols=symbols,
        where=top.exprs("where", COMPILE_TIME),
        work=work,
        roles=roles,
        ports=tuple(ports.values()),
        buffers=tuple(buffers.values()),
        named_barriers=tuple(barriers.values()),
        numeric=_numeric(top),
        requires=top.exprs("requires", LAUNCH_TIME),
        file=file,
        span=top.keys.get("component", Span(file, 1, 1)),
    )


def _declare(top: Block) -> None:
    """All declared names, before any expression is read; they share one namespace in C++."""
    kinds = {
        "params": "param",
        "symbols": "symbol",
        "ports": "",
        "buffers": "",
        "named_barriers": "",
    }
    declared: dict[str, tuple[str, Span]] = {}
    work = top.nodes.get("work")
    tables = [(clause, top.nodes.get(clause), kind) for clause, kind in kinds.items()]
    if isinstance(work, Table):
        inner = {key.text: value for key, value in work.entries}
        tables.append(("work fields", inner.get("fields"), "field"))
    for clause, table, kind in tables:
        if not isinstance(table, Table):
            continue
        for name, _ in table.entries:
            first = declared.setdefault(name.text, (clause, name.span))
            if first[0] != clause:
                top.findings.add(
                    "PL0013",
                    f"`{name.text}` is declared in `{first[0]}` and in `{clause}`",
                    name.span,
                    Label(first[1], "first here"),
                    helps=("rename one: they share the namespace of the generated header",),
                )
            elif kind:
                top.findings.known[name.text] = kind


def _component(top: Block) -> str:
    node = top.scalar("component", "a name")
    if node is None:
        return ""
    if reason := problem_with(node.text):
        top.findings.add("PL0012", f"`{node.text}` cannot name a component: {reason}", node.span)
    return node.text


def _version(top: Block) -> str:
    node = top.scalar("version", "a version")
    if node is not None and not VERSION.fullmatch(node.text):
        top.wrong(node, "a version like 1.0.0", "`version`")
    return node.text if node else ""


def _archs(top: Block) -> tuple[str, ...]:
    found = top.words("arch", "architectures")
    for node in found:
        if node.text not in TARGETS:
            top.findings.add(
                "PL0009",
                f"`arch` cannot be `{node.text}`",
                node.span,
                expected="some of " + ", ".join(TARGETS),
                found=node.text,
                helps=did_you_mean(node.text, TARGETS),
            )
    if "arch" in top and not found:
        top.wrong(top.nodes["arch"], "a list with an architecture", "`arch`")
    return tuple(node.text for node in found)


def _param(name: str, block: Block) -> Param:
    kind = block.word("type", ("int", "dtype"), "")
    if kind == "dtype":
        for key in ("min", "max", "multiple_of"):
            block.refuse(key, "it is a dtype")
    choices = tuple(
        value
        for node in block.words("in", "values")
        if (value := _value(block, node, kind)) is not None
    )
    if "in" in block and not block.items("in", "values"):
        block.wrong(block.nodes["in"], "a list with a value", block.named("in"))
    least = block.integer("min", -LARGEST, -LARGEST) if "min" in block and kind != "dtype" else None
    most = block.integer("max", LARGEST, -LARGEST) if "max" in block and kind != "dtype" else None
    step = (
        block.integer("multiple_of", 1, 1) if "multiple_of" in block and kind != "dtype" else None
    )
    node = block.scalar("default", "a value")
    default = _value(block, node, kind) if node else None
    param = Param(name, kind, choices, least, most, step, default, block.span)
    if node is not None and default is not None and (reason := refused(param, default)):
        block.findings.add(
            "PL0017",
            f"{block.named('default')} is not a value it allows",
            node.span,
            expected=reason,
            found=str(default),
        )
    return param


def _value(block: Block, node: Scalar, kind: str) -> int | str | None:
    if kind == "int":
        value = block.number(node, f"a value of {block.what}", -1, -LARGEST)
        return value if node.text == str(value) else None
    if kind == "dtype" and node.text not in DTYPES:
        block.findings.add(
            "PL0009",
            f"a value of {block.what} cannot be `{node.text}`",
            node.span,
            expected="one of " + ", ".join(DTYPES),
            found=node.text,
            helps=did_you_mean(node.text, DTYPES),
        )
        return None
    return node.text


def refused(param: Param, value: int | str) -> str:
    """What the parameter allows, where that is not `value`; else ""."""
    if param.choices and value not in param.choices:
        return "one of " + ", ".join(map(str, param.choices))
    if isinstance(value, str):
        return ""
    if param.minimum is not None and value < param.minimum:
        return f"at least {param.minimum}"
    if param.maximum is not None and value > param.maximum:
        return f"at most {param.maximum}"
    if param.multiple_of is not None and value % param.multiple_of:
        return f"a multiple of {param.multiple_of}"
    return ""


def _symbol(name: str, block: Block) -> Symbol:
    least = block.integer("min", 0, 0)
    most = block.integer("max", LARGEST, 0)
    if most < least:
        block.findings.add(
            "PL0017",
            f"{block.what} has no value",
            block.places["max"],
            expected="min <= max",
            found=f"min {least}, max {most}",
        )
    return Symbol(name, least, most, block.integer("multiple_of", 1, 1), block.span)


def _work(top: Block) -> Work | None:
    block = top.block("work", WORK_KEYS)
    if block is None:
        return None
    direction = block.word("direction", DIRECTIONS, "")
    if direction == "in":
        block.refuse("items", "it takes work items; the schedule says how many there are")
    elif direction == "out":
        block.require("items", "a schedule says how many work items there are")
    fields = []
    for name, inner in block.blocks("fields", FIELD_KEYS, "work field"):
        if direction == "in":
            inner.refuse("value", "the schedule computes it")
        fields.append(
            WorkField(
                name,
                inner.expr("value", LAUNCH_TIME),
                inner.expr("min", LAUNCH_TIME) or Expr("0"),
                inner.expr("max", LAUNCH_TIME),
                inner.span,
            )
        )
    kind = block.scalar("kind", "a word")
    if kind is not None and (reason := problem_with(kind.text)):
        top.findings.add("PL0012", f"`{kind.text}` cannot name a kind of work: {reason}", kind.span)
    return Work(
        kind.text if kind else "",
        direction,
        block.exprs("tile", COMPILE_TIME),
        tuple(fields),
        block.expr("items", LAUNCH_TIME),
        block.span,
    )


def _role(
    name: str,
    block: Block,
    work: Work | None,
    reach: Reach,
) -> Role:
    schedule = block.flag("schedule", False)
    for key in ("warps", "registers", "body"):
        if schedule:
            block.refuse(key, "a schedule runs inside the other roles")
        else:
            block.require(key, "it runs on warps of its own")
    if schedule:
        for key in ("converged", "split", "prologue", "epilogue"):
            block.refuse(key, "a schedule runs inside the other roles")
        if work is not None and work.direction == "in":
            block.refuse(
                "schedule",
                "the work of this component is an input",
                "set `direction: out` of `work`",
            )
    bodies = {key: read_body(block, key, reach) for key in ("prologue", "body", "epilogue")}
    if not schedule and "body" in block and not bodies["body"]:
        block.wrong(block.nodes["body"], "a list with an operation", block.named("body"))
    mma = uses_mma(bodies["body"])
    return Role(
        name=name,
        warps=block.expr("warps", COMPILE_TIME) or Expr("1"),
        converged=block.word("converged", CONVERGED, "warp"),
        split=block.word("split", SPLIT, "role"),
        registers=_registers(block, mma),
        schedule=schedule,
        uses_mma=mma,
        span=block.span,
        spans=tuple(sorted(block.places.items())),
        **bodies,
    )


def _registers(block: Block, mma: bool) -> Registers:
    least = Expr("24")
    inner = block.block("registers", REGISTERS_KEYS)
    if inner is None:
        return Registers(least, least, least)
    if mma:
        inner.require(
            "entry", "it issues wgmma", "for m64nN with an f32 accumulator: `entry: N // 2 + 26`"
        )
    least = inner.expr("min", COMPILE_TIME) or least
    want = inner.expr("want", COMPILE_TIME) or least
    return Registers(least, want, inner.expr("entry", COMPILE_TIME) or least, inner.span)


def _numeric(top: Block) -> Numeric:
    block = top.block("numeric", NUMERIC_KEYS)
    if block is None:
        return Numeric()
    flags = block.block("flags", FLAG_KEYS)
    return Numeric(
        block.dtype("accumulate"),
        block.dtype("rounds_to"),
        block.flag("deterministic", True),
        block.word("nan", NAN, "propagate"),
        tuple((key, flags.flag(key, False)) for key in CODEGEN_FLAGS if key in flags)
        if flags
        else (),
        block.span,
    )
