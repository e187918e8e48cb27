"""Loader of contract files: path -> Contract, or all errors of the file in one exception."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pipelink_rules.contract.block_parser import Block, ContractSink, clauses
from pipelink_rules.contract.derive import complete
from pipelink_rules.contract.header import cap_words
from pipelink_rules.contract.parse_operations import ROLE_KEYS, OperationScope, parse_role
from pipelink_rules.contract.parse_params import (
    PARAM_KEYS,
    SYMBOL_KEYS,
    parse_numeric,
    parse_param,
    parse_symbol,
    parse_work,
)
from pipelink_rules.contract.parse_ports import (
    BARRIER_KEYS,
    BUFFER_KEYS,
    COMPILE_TIME,
    LAUNCH_TIME,
    PORT_KEYS,
    check_in_place,
    parse_barrier,
    parse_buffer,
    parse_port,
)
from pipelink_rules.contract.yaml_tree import (
    MappingNode,
    Node,
    ScalarNode,
    describe,
    parse_yaml,
    read_text,
)
from pipelink_rules.diagnostics.diagnostic import Label, PipelinkError, error
from pipelink_rules.model.contract import Contract, Param, Port, Role
from pipelink_rules.model.source_span import Span
from pipelink_rules.model.target import TARGETS

SCHEMA_VERSION = 2
MOST_ERRORS = 100  # of one file
REWRITE = (  # from version 1
    "`until C[F] N` becomes `wait_until C[F] N`",
    "`items: N` of `work` becomes `tiles: N`",
    "`ordinal_of: F, times: N` of a work field becomes `index_within: {field: F, of: N}`",
    "`schedule: true` of a role becomes `scheduler: true`",
    "clauses that can be derived may be removed (docs/contracts.md lists them)",
)
VERSION = re.compile(r"[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.-]+)?")

KEYS = clauses(
    "contract* component* version summary* arch* params symbols where work* roles* ports buffers "
    "named_barriers numeric requires coresident"
)


def load_contract(path: str | Path) -> Contract:
    """Return the contract of a file; raise PipelinkError with every error of the file."""
    file = describe(path)
    return parse_contract(read_text(path, file), file)


def parse_contract(text: str, file: str) -> Contract:
    """Return the contract of a text; `file` is the name in its spans."""
    sink = ContractSink()
    nodes = parse_yaml(text, file)
    _check_version(nodes, file)
    top = Block(sink, complete(nodes, file), "the contract", Span(file, 1, 1), KEYS)
    if not top.readable:
        raise PipelinkError(sink.items)
    contract = _contract(top, sink, file)
    if sink.items:
        ordered = sorted(sink.items, key=lambda item: item.labels[0].span)
        raise PipelinkError(ordered[:MOST_ERRORS])
    return contract


def _check_version(nodes: Node, file: str) -> None:
    """Raise PL0004, and no other error, for a contract of another version of the language."""
    entries = nodes.entries if isinstance(nodes, MappingNode) else ()
    node = next((value for key, value in entries if key.text == "contract"), None)
    if not isinstance(node, ScalarNode) or node.text == str(SCHEMA_VERSION) or not node.text:
        return
    raise error(
        "PL0004",
        f"version {node.text} of the contract language is not supported",
        node.span,
        expected=f"contract: {SCHEMA_VERSION}",
        found=f"contract: {node.text}",
        notes=REWRITE if node.text == "1" else (),
        suggestions=(f"rewrite the clauses and set `contract: {SCHEMA_VERSION}`",)
        if node.text == "1"
        else ("update PipeLink", f"or rewrite the contract in version {SCHEMA_VERSION}"),
        subject=file,
    )


def _contract(top: Block, sink: ContractSink, file: str) -> Contract:
    top.scalar("contract", "the version of the contract language")
    _declare(top)
    params = tuple(parse_param(*item) for item in top.blocks("params", PARAM_KEYS, "parameter"))
    sink.dtype_params.update(param.name for param in params if param.type == "dtype")
    symbols = tuple(parse_symbol(*item) for item in top.blocks("symbols", SYMBOL_KEYS, "symbol"))
    work = parse_work(top)
    blocks = dict(top.blocks("roles", ROLE_KEYS, "role"))
    if "roles" in top and not blocks and not sink.incomplete:
        top.wrong(top.nodes["roles"], "a mapping with a role", "`roles`")
    ports = {n: parse_port(n, b, blocks) for n, b in top.blocks("ports", PORT_KEYS, "port")}
    buffers = {
        n: parse_buffer(n, b, blocks) for n, b in top.blocks("buffers", BUFFER_KEYS, "buffer")
    }
    barriers = {
        n: parse_barrier(n, b, blocks)
        for n, b in top.blocks("named_barriers", BARRIER_KEYS, "named barrier")
    }
    check_in_place(sink, ports)
    scope = OperationScope("", ports, buffers, barriers, blocks, sink)
    roles = tuple(
        parse_role(name, block, work, replace(scope, role=name)) for name, block in blocks.items()
    )
    _check_types(sink, params, roles, ports)
    component = top.scalar("component", "a name")
    if component is not None:
        sink.check_identifier(component, "component")
    return Contract(
        component=component.text if component else "",
        version=_version(top),
        summary=top.text("summary"),
        archs=_archs(top),
        params=params,
        symbols=symbols,
        where=top.exprs("where", COMPILE_TIME, may_be_empty=True),
        work=work,
        roles=roles,
        ports=tuple(ports.values()),
        buffers=tuple(buffers.values()),
        named_barriers=tuple(barriers.values()),
        numeric=parse_numeric(top),
        requires=top.exprs("requires", LAUNCH_TIME, may_be_empty=True),
        coresident=top.word("coresident", ("grid",), ""),
        file=file,
        span=top.keys.get("component", Span(file, 1, 1)),
    )


def _declare(top: Block) -> None:
    """Collect all declared names before expressions are parsed; C++ has one namespace for them."""
    kinds = {"params": "param", "symbols": "symbol"}
    kinds |= dict.fromkeys(("ports", "buffers", "named_barriers"), "")
    declared: dict[str, tuple[str, Span]] = {}
    work = top.nodes.get("work")
    tables = [(clause, top.nodes.get(clause), kind) for clause, kind in kinds.items()]
    if isinstance(work, MappingNode):
        inner = {key.text: value for key, value in work.entries}
        tables.append(("work fields", inner.get("fields"), "field"))
    for clause, table, kind in tables:
        if not isinstance(table, MappingNode):
            continue
        for name, _ in table.entries:
            first = declared.setdefault(name.text, (clause, name.span))
            if first[0] != clause:
                top.sink.add(
                    "PL0013",
                    f"duplicate name `{name.text}`: declared in `{first[0]}` and in `{clause}`",
                    name.span,
                    Label(first[1], "first declared here"),
                    suggestions=("rename one: the generated header has one namespace for both",),
                )
            elif kind:
                top.sink.known[name.text] = kind


def _version(top: Block) -> str:
    node = top.scalar("version", "a version")
    if node is not None and not VERSION.fullmatch(node.text):
        top.wrong(node, "a version like 1.0.0", "`version`")
    return node.text if node else ""


def _archs(top: Block) -> tuple[str, ...]:
    found = top.words("arch", "architectures")
    for node in found:
        if node.text not in TARGETS:
            top.unknown_value(node, "`arch`", "one or more of " + ", ".join(TARGETS), TARGETS)
    return tuple(node.text for node in found)


def _check_types(
    sink: ContractSink, params: Sequence[Param], roles: Sequence[Role], ports: Mapping[str, Port]
) -> None:
    """Report two declarations that `contract.header` turns into one C++ type name."""
    types: dict[str, tuple[str, Span | None]] = {
        param.name: (f"parameter `{param.name}`", param.span)
        for param in params
        if param.type == "dtype"
    }
    named = [
        (f"{cap_words(role.name)}{struct}", f"role `{role.name}`", role.span)
        for role in roles
        for struct in ("Relocations", "Ports", "Work")
    ]
    named += [
        (cap_words(port.name), f"port `{port.name}`", port.span)
        for port in ports.values()
        if port.space == "ring"
    ]
    for name, what, span in named:
        other, other_span = types.setdefault(name, (what, span))
        if other != what:
            sink.add(
                "PL0013",
                f"{other} and {what} both define the type `{name}` of the generated header",
                span,
                (other_span, "also defined here"),
                suggestions=("rename one of them",),
                subject=f"{other} {what}",
            )
