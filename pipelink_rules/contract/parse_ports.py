"""Parsers of ports, buffers and named barriers: Block -> Port, Buffer, NamedBarrier."""

import re
from collections.abc import Collection

from pipelink_rules.contract.block_parser import Block, ContractSink, clauses
from pipelink_rules.contract.yaml_tree import Node, ScalarNode, SequenceNode
from pipelink_rules.diagnostics.wording import plural, similar_name_help
from pipelink_rules.model.contract import (
    Buffer,
    Layout,
    Member,
    NamedBarrier,
    Port,
    Stages,
    TileAccess,
)
from pipelink_rules.model.source_span import Expr, Span

SPACES = ("ring", "tensor_memory", "registers", "global", "scalar", "counter")
DIRECTIONS = ("in", "out")
PROXIES = ("generic", "async")
FRAGMENTS = ("wgmma_m64",)
SCALARS = ("f32", "i32", "u32")
SWIZZLES = (0, 32, 64, 128)
SCOPES = ("cta", "cluster", "gpu", "sys")  # from narrow to wide
INITS = ("none", "zero")
ALIGNMENTS = (4, 8, 16, 32, 64, 128, 256, 512, 1024)

# clause -> spaces it applies to; every clause of a port
CLAUSES: dict[str, tuple[str, ...]] = {
    "space": SPACES,
    "direction": SPACES,
    "role": SPACES,
    "item": ("ring",),
    "rate": ("ring", "tensor_memory"),
    "proxy": ("ring",),
    "arrivals": ("ring", "tensor_memory", "counter"),
    "tx_bytes": ("ring",),
    "written": ("ring",),
    "stages": ("ring", "tensor_memory"),
    "raw": ("ring", "global"),
    "fragment": ("registers",),
    "in_place": ("registers",),
    "pending": ("registers",),
    "dtype": ("tensor_memory", "registers", "global"),
    "shape": ("tensor_memory", "registers", "global"),
    "strides": ("global",),
    "tile": ("global",),
    "at": ("global",),
    "align": ("global",),
    "scratch": ("global",),
    "init": ("global",),
    "count": ("counter",),
    "scope": ("counter",),
    "type": ("scalar",),
}
NEEDED = {
    "ring": ("direction", "item"),
    "tensor_memory": ("direction", "dtype", "shape"),
    "registers": ("direction", "fragment", "dtype", "shape"),
    "global": ("direction", "dtype", "shape"),
    "scalar": ("type",),
    "counter": ("direction", "scope"),
}
PORT_KEYS = {clause: clause in ("space", "role") for clause in CLAUSES}
MEMBER_KEYS = clauses("dtype* shape* strides swizzle")
TILE_KEYS = clauses("box swizzle along")
STAGES_KEYS = clauses("min max")
BUFFER_KEYS = clauses("role* bytes* align stages")
BARRIER_KEYS = clauses("roles* count*")

TWO_EXTENTS = {"registers": "[rows, columns]", "tensor_memory": "[lanes, columns]"}
COMPILE_TIME = ("param",)
LAUNCH_TIME = ("param", "symbol")
PER_ITEM = ("param", "field")
PER_ACCESS = (*LAUNCH_TIME, "field", "place")
MOST_STAGES = 32
STAGES_OF_PRODUCER = "the producer declares the number of stages"


def _parse_role_name(block: Block, roles: Collection[str]) -> str:
    """A clause `role` that names a declared role."""
    node = block.scalar("role", "the name of a role")
    return "" if node is None else _role(block, node, roles)


def _role(block: Block, node: ScalarNode, roles: Collection[str]) -> str:
    if node.text not in roles:
        block.sink.unknown("PL0016", "role", node.text, block.what, node.span, roles)
    return node.text


def _members_of(block: Block, space: str) -> tuple[Member, ...]:
    if space == "ring":
        return _parse_members(block)
    if space in ("tensor_memory", "registers", "global"):
        scope = LAUNCH_TIME if space == "global" else COMPILE_TIME
        return (_parse_member("", block, scope, block.span),)
    return ()


def _check_clauses(block: Block, space: str, out: bool) -> None:
    """Report the clauses that do not apply to a port of that space and direction."""
    for clause, spaces in CLAUSES.items():
        if space not in spaces:
            block.refuse(clause, f"its space is {space}")
    for clause in NEEDED[space]:
        block.require(clause, f"whose space is {space}")
    if space == "scalar" and out:
        block.refuse("direction", "the caller passes the scalar")
    if space == "counter" and out:
        block.require("count", "which signals")
    elif space == "counter":
        for clause in ("count", "arrivals"):
            block.refuse(clause, "the port that signals declares it")
    elif space == "global":
        _check_scratch(block, out)
    if space == "tensor_memory" and not out:
        block.refuse("stages", STAGES_OF_PRODUCER)
    if space == "registers" and not out:
        block.refuse("in_place", "only an out port can use the registers of an in port")


def parse_port(name: str, block: Block, roles: Collection[str]) -> Port:
    """Parse one port and report the clauses that do not apply to its space."""
    space = block.word("space", SPACES, "")
    role = _parse_role_name(block, roles)
    out = block.word("direction", DIRECTIONS, "in") == "out"
    if space:
        _check_clauses(block, space, out)
    if space == "ring":
        _check_ring(block, out)
    members = _members_of(block, space)
    if space in TWO_EXTENTS and members[0].shape and len(members[0].shape) != 2:
        block.wrong_extents("shape", members[0].shape, f"2 extents: {TWO_EXTENTS[space]}")
    word = block.scalar("in_place", "the name of a port")
    return Port(
        name=name,
        space=space,
        direction="out" if out else "in",
        role=role,
        members=members,
        rate=block.expr("rate", PER_ITEM) or Expr("1"),
        proxy=block.word("proxy", PROXIES, "generic"),
        arrivals=block.expr("arrivals", COMPILE_TIME) or Expr("1"),
        tx_bytes=block.expr("tx_bytes", PER_ITEM),
        written=block.expr("written", PER_ITEM),
        stages=_parse_stages(block),
        raw=block.flag("raw", False),
        at=_parse_coordinates(block),
        fragment=block.word("fragment", FRAGMENTS, ""),
        in_place=word.text if word else "",
        pending=block.integer("pending", 0, 0, 16),
        tile=_parse_tile(block),
        align=block.choice("align", ALIGNMENTS, 16),
        scratch=block.flag("scratch", False),
        init=block.word("init", INITS, ""),
        count=block.expr("count", LAUNCH_TIME),
        scope=block.word("scope", SCOPES, ""),
        type=block.word("type", SCALARS, ""),
        span=block.span,
        spans=tuple(sorted(block.value_spans.items())),
    )


def check_in_place(sink: ContractSink, ports: dict[str, Port]) -> None:
    """Check that `in_place` names a register in port of the same role with the same fragment."""
    for port in ports.values():
        if not port.in_place:
            continue
        usable = [
            item.name
            for item in ports.values()
            if (item.space, item.direction, item.role, item.fragment)
            == ("registers", "in", port.role, port.fragment)
        ]
        if port.in_place not in usable:
            known = "unusable" if port.in_place in ports else "unknown"
            sink.add(
                "PL0016",
                f"{known} port `{port.in_place}` in `in_place` of port `{port.name}`",
                port.where("in_place"),
                expected=f"a register in port of role `{port.role}` with the same fragment",
                suggestions=similar_name_help(port.in_place, usable, "usable ports"),
            )


def _check_ring(block: Block, out: bool) -> None:
    if not out:
        for clause in ("tx_bytes", "written"):
            block.refuse(clause, "the producer declares the bytes of an item")
        block.refuse("stages", STAGES_OF_PRODUCER)
    elif "proxy" in block and block.word("proxy", PROXIES, "") == "async":
        if not block.flag("raw", False):
            block.require("tx_bytes", "whose copies complete by their bytes")
    else:
        block.refuse(
            "tx_bytes", "its proxy is generic and completes by arrivals", "set `proxy: async`"
        )


def _parse_members(block: Block) -> tuple[Member, ...]:
    found = tuple(
        _parse_member(name, inner, COMPILE_TIME, inner.span)
        for name, inner in block.blocks("item", MEMBER_KEYS, "tile")
    )
    if "item" in block and not found:
        block.wrong(block.nodes["item"], "a mapping with a tile", block.named("item"))
    return found


def _parse_member(name: str, block: Block, scope: tuple[str, ...], span: Span) -> Member:
    shape = block.exprs("shape", scope)
    modes = block.items("strides", "strides")
    strides = tuple(mode for node in modes if (mode := _parse_mode(block, node, scope)))
    if modes and shape and len(modes) != len(shape):
        block.invalid(
            block.value_spans["strides"],
            f"rank of {block.named('strides')} differs from the rank of `shape`",
            plural(len(shape), "stride"),
            plural(len(modes), "stride"),
        )
    swizzle, by = _parse_swizzle(block, scope) if "item" not in block else (0, None)
    where = block.value_spans.get("swizzle", block.value_spans.get("strides", span))
    return Member(name, block.dtype("dtype"), shape, Layout(strides, swizzle, where, by), span)


def _parse_swizzle(block: Block, scope: tuple[str, ...]) -> tuple[int, Expr | None]:
    """Parse a span, or an expression of parameters for one."""
    node = block.nodes.get("swizzle")
    if isinstance(node, ScalarNode) and node.plain and re.search(r"[A-Za-z(]", node.text):
        return 0, block.expression(node, "swizzle", scope)
    return block.choice("swizzle", SWIZZLES, 0), None


def _parse_mode(
    block: Block, node: Node, scope: tuple[str, ...]
) -> Expr | tuple[tuple[Expr, Expr], ...] | None:
    """Parse a stride, or a nested mode: a list of [extent, stride] pairs, innermost first."""
    if not isinstance(node, SequenceNode):
        return block.expression(node, "strides", scope)
    pairs = []
    for item in node.items:
        if not isinstance(item, SequenceNode) or len(item.items) != 2:
            block.wrong(
                item, "a pair [extent, stride]", f"a nested mode of {block.named('strides')}"
            )
            continue
        extent = block.expression(item.items[0], "strides", scope)
        stride = block.expression(item.items[1], "strides", scope)
        if extent and stride:
            pairs.append((extent, stride))
    return tuple(pairs) or None


def _parse_stages(block: Block) -> Stages:
    inner = block.block("stages", STAGES_KEYS)
    if inner is None:
        return Stages()
    least = inner.integer("min", 1, 1, MOST_STAGES)
    most = inner.integer("max", max(8, least), 1, MOST_STAGES)
    if most < least:
        block.empty_range("stages", block.named("stages"), least, most)
    return Stages(least, max(least, most), inner.span)


def parse_buffer(name: str, block: Block, roles: Collection[str]) -> Buffer:
    """Parse one buffer."""
    return Buffer(
        name=name,
        role=_parse_role_name(block, roles),
        bytes=block.expr("bytes", COMPILE_TIME) or Expr("1"),
        align=block.choice("align", ALIGNMENTS, 16),
        stages=block.integer("stages", 1, 1, MOST_STAGES),
        span=block.span,
    )


def parse_barrier(name: str, block: Block, roles: Collection[str]) -> NamedBarrier:
    """Parse one named barrier."""
    members = tuple(_role(block, node, roles) for node in block.words("roles", "roles"))
    count = block.expr("count", COMPILE_TIME) or Expr("32")
    return NamedBarrier(name, members, count, block.span)


def _parse_tile(block: Block) -> TileAccess | None:
    """Parse the clause `tile` of a global port."""
    inner = block.block("tile", TILE_KEYS)
    if inner is None:
        return None
    inner.require("box", "which cannot be derived: no ring tile is copied")
    box = inner.exprs("box", COMPILE_TIME)
    shape = block.nodes.get("shape")
    if box and isinstance(shape, SequenceNode) and not len(box) == len(shape.items) <= 5:
        expected = f"{plural(len(shape.items), 'extent')} like `shape`, at most 5"
        inner.wrong_extents("box", box, expected)
    swizzle, by = _parse_swizzle(inner, COMPILE_TIME)
    return TileAccess(box, swizzle, _parse_along(inner), inner.span, by)


def _parse_along(block: Block) -> tuple[str, ...] | None:
    """Parse the work fields that the coordinates depend on; None where they are not written."""
    if "along" not in block:
        return None
    known = block.sink.known
    found = []
    for node in block.items("along", "work fields", may_be_empty=True):
        if not isinstance(node, ScalarNode):
            block.wrong(node, "a work field", block.named("along"))
        elif known.get(node.text) == "field" or block.sink.incomplete:
            found.append(node.text)
        else:
            fields = [name for name, kind in known.items() if kind == "field"]
            where = block.named("along")
            block.sink.unknown("PL0016", "work field", node.text, where, node.span, fields)
    return tuple(sorted(set(found)))


def _parse_coordinates(block: Block) -> tuple[Expr, ...]:
    """Parse `at`: one coordinate for each mode of the shape."""
    at, shape = block.exprs("at", PER_ACCESS), block.nodes.get("shape")
    if at and isinstance(shape, SequenceNode) and len(at) != len(shape.items):
        block.wrong_extents("at", at, f"{plural(len(shape.items), 'coordinate')} like `shape`")
    return at


def _check_scratch(block: Block, out: bool) -> None:
    """Check that the writing port of scratch memory declares its contents at launch."""
    if not block.flag("scratch", False):
        block.refuse("init", "it is a tensor of the caller", "set `scratch: true`")
        return
    block.refuse("tile", "scratch memory is accessed by plain addresses")
    if out:
        reason = "which writes scratch memory"
        block.require("init", reason, "add `init: none` or `init: zero`")
    else:
        block.refuse("init", "the port that writes declares it")
