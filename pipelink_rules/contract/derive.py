"""Clauses that follow from the rest of a contract: YAML nodes -> YAML nodes with those filled in.

A contract says what cannot be known otherwise.  Everything else is derived here, before the clauses
are parsed, so that the parsers, the checks and all later stages see a complete contract.  A clause
that is written is left as it is: it is an assertion, which the checks compare with the operations.

Derived                                  from
space, direction, role of a port         its clauses and the operations that name it
fragment, dtype, shape of an `in_place`  the port whose registers it keeps
warps of a role                          its fragment: 16 rows a warp (PTX ISA, wgmma m64nNk16)
converged                                wgmma needs a warpgroup
registers.entry                          columns / 2 + 26 for wgmma (measured, all N: ptxas C7602)
registers.min                            an estimate; the register probe replaces it
registers.want                           240 with a fragment, else 40
arrivals                                 one for each warp of the role; one for tcgen05.commit
rate                                     the repeats around `acquire` or `wait`
proxy                                    async where TMA or the tensor core touches the stage
tx_bytes                                 the tiles that tensor copies fill
tile of a global port                    the ring tile that it is copied into
bytes, align of a buffer                 the box of the store that reads it
roles, count of a named barrier          the roles that name it: 32 threads a warp
accumulate                               f32 fragments and tensor memory
arch                                     sm_90a for wgmma, sm_100a for tensor memory
tile and its parameters, fields, `where` the file of the work kind

The file of a work kind, what all components that process such work tiles agree on, is
`kinds/<kind>.yaml` beside the component or above it, else among the components of PipeLink.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from pipelink_rules.contract.clause_nodes import ClauseTable, OperationLine, operation_lines
from pipelink_rules.contract.yaml_tree import (
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    parse_yaml,
    read_text,
)
from pipelink_rules.expression.parse import FUNCTIONS
from pipelink_rules.files.installed_files import shipped
from pipelink_rules.model.source_span import Span

ROWS_PER_WARP = 16  # PTX ISA, wgmma: a warp holds 16 of the 64 rows of an accumulator fragment
SWIZZLE_ALIGNMENT = {"128": "1024", "64": "512", "32": "256"}  # 8 rows of the swizzle span
PLAIN_ALIGNMENT = "128"  # cp.async.bulk.tensor: shared address without a swizzle
# The setmaxnreg values of consumers and producers in the kernels of CUTLASS.
WANT_FRAGMENT, WANT_OTHERS = "240", "40"
FIRST_VERSION = "1.0.0"
# Clauses that only ports of one space have, in the order in which they decide the space.
SPACE_MARKS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ring", ("item",)),
    ("registers", ("fragment", "in_place")),
    ("scalar", ("type",)),
    ("counter", ("scope", "count")),
)

KINDS_FOLDER = "kinds"
HIGHEST_FOLDER = 6  # folders above the contract that are searched
_TABLES = ("roles", "ports", "buffers", "named_barriers")
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_OUT = re.compile(
    rf"(?:acquire|expect|write|signal) ({_NAME})|copy {_NAME}(?:\[.*\])? ?-> ?({_NAME})\."
    rf"|(?:store|mma) {_NAME} ?-> ?({_NAME})"
)
_IN = re.compile(rf"(?:wait|read|mma|release|store|wait_until) ({_NAME})|copy ({_NAME})")
_COPY = re.compile(rf"copy ({_NAME})(?:\[.*\])? ?-> ?({_NAME})\.({_NAME})")
_STORE = re.compile(rf"store ({_NAME}) ?-> ?({_NAME})")
_BARRIER = re.compile(rf"(?:sync|arrive) ({_NAME})")


def complete(top: Node, file: str) -> Node:
    """Return the contract with every derived clause; parts of a wrong type stay as they are."""
    if not isinstance(top, MappingNode):
        return top
    return _Deriver(top, file).complete()


@dataclass(frozen=True)
class WorkKind:
    """One kind of work tile."""

    name: str
    tile: dict[str, MappingNode]  # parameter -> its clauses
    fields: dict[str, MappingNode]  # field -> its clauses
    where: tuple[ScalarNode, ...]  # conditions that every work tile meets


def _find_kind(name: str, contract: str) -> WorkKind | None:
    """Return the kind of that name for a contract file, None where no file declares it."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,80}", name):
        return None
    for folder in _kind_folders(contract):
        path = folder / KINDS_FOLDER / f"{name}.yaml"
        try:
            if path.is_file():
                return _read_kind(path, path.stat().st_mtime_ns)
        except OSError:
            continue
    return None


def _kind_folders(contract: str) -> Iterator[Path]:
    with contextlib.suppress(OSError, ValueError):
        yield from list(Path(contract).absolute().parents)[:HIGHEST_FOLDER]
    yield shipped("components")


@lru_cache(maxsize=64)
def _read_kind(path: Path, changed: int) -> WorkKind:
    nodes = parse_yaml(read_text(path, str(path)), str(path))
    clauses = (
        {key.text: value for key, value in nodes.entries} if isinstance(nodes, MappingNode) else {}
    )
    where = clauses.get("where")
    conditions = where.items if isinstance(where, SequenceNode) else ()
    return WorkKind(
        path.stem,
        _named_mappings(clauses.get("tile")),
        _named_mappings(clauses.get("fields")),
        tuple(item for item in conditions if isinstance(item, ScalarNode)),
    )


def _named_mappings(table: Node | None) -> dict[str, MappingNode]:
    inner = table.entries if isinstance(table, MappingNode) else ()
    return {name.text: value for name, value in inner if isinstance(value, MappingNode)}


class _Deriver:
    def __init__(self, top: MappingNode, file: str):
        self.top = ClauseTable(top)
        self.work = self._work()
        self.kind = _find_kind(self.work.text("kind"), file)
        self.tables = {key: self._tables(key) for key in _TABLES}
        self.roles, self.ports, self.buffers, self.barriers = self.tables.values()
        self.lines = [
            line for name, role in self.roles.items() for line in operation_lines(name, role)
        ]

    def complete(self) -> Node:
        self._work_kind()
        for derive, tables in (
            (self._port_basics, self.ports),
            (self._in_place, self.ports),
            (self._role, self.roles),
            (self._tensor_map, self.ports),
            (self._ring, self.ports),
            (self._buffer, self.buffers),
            (self._barrier, self.barriers),
        ):
            for name, table in tables.items():
                derive(name, table)
        for key, tables in self.tables.items():
            whole = ClauseTable(self.top.get(key))
            for name, table in tables.items():
                whole.put(name, table.node())
            self.top.store(key, whole)
        self._numeric()
        self.top.fill("version", FIRST_VERSION)
        self.top.fill("arch", self._archs())
        return self.top.node()

    # -- the file ------------------------------------------------------------------------------

    def _tables(self, key: str) -> dict[str, ClauseTable]:
        node = self.top.get(key)
        entries = node.entries if isinstance(node, MappingNode) else ()
        names = [name.text for name, _ in entries]
        return {
            name.text: ClauseTable(value)
            for name, value in entries
            if isinstance(value, MappingNode) and names.count(name.text) == 1
        }

    def _work(self) -> ClauseTable:
        """`work: gemm_tile` is short for `work: {kind: gemm_tile}`."""
        node = self.top.get("work")
        if isinstance(node, ScalarNode) and node.text:
            node = MappingNode(((ScalarNode("kind", True, node.span), node),), node.span)
        return ClauseTable(node)

    def _work_kind(self) -> None:
        work, kind = self.work, self.kind
        if not work.whole:
            return
        work.fill("direction", "out" if "tiles" in work else "in")
        fields = work.get("fields")
        if isinstance(fields, SequenceNode):
            names = [item for item in fields.items if isinstance(item, ScalarNode)]
            if len(names) == len(fields.items):
                empty = tuple((name, MappingNode((), name.span)) for name in names)
                work.put("fields", MappingNode(empty, fields.span))
        elif fields is None:
            work.fill("fields", MappingNode((), work.span))
        if kind is not None and "tile" not in work:
            self._tile(kind)
        if kind is not None:
            self._fields(kind)
            self._conditions(kind)
        self.top.put("work", work.node())

    def _tile(self, kind: WorkKind) -> None:
        """The tile of the kind, and those of its parameters that the component leaves open."""
        span = self.work.span
        names = tuple(ScalarNode(name, True, span) for name in kind.tile)
        self.work.fill("tile", SequenceNode(names, span))
        params = self.top.inner("params", span)
        missing = [
            (ScalarNode(name, True, span), node)
            for name, node in kind.tile.items()
            if name not in params
        ]
        params.entries = [*missing, *params.entries]
        self.top.store("params", params)

    def _fields(self, kind: WorkKind) -> None:
        """Fields without clauses of their own have those of the kind."""
        fields = ClauseTable(self.work.get("fields"))
        for name, node in list(fields.entries):
            if isinstance(node, MappingNode) and not node.entries and name.text in kind.fields:
                entries = kind.fields[name.text].entries
                if self.work.text("direction") == "out":
                    entries = tuple(item for item in entries if item[0].text != "default")
                fields.put(name.text, MappingNode(entries, node.span))
        self.work.store("fields", fields)

    def _conditions(self, kind: WorkKind) -> None:
        """The conditions of the kind on fields, symbols and parameters that the component has."""
        names = {name.text for name, _ in ClauseTable(self.work.get("fields")).entries}
        for key in ("params", "symbols"):
            names |= {name.text for name, _ in ClauseTable(self.top.get(key)).entries}
        met = [
            ScalarNode(node.text, True, self.work.span, derived=True)
            for node in kind.where
            if set(re.findall(_NAME, node.text)) - {*FUNCTIONS, "and", "or", "not"} <= names
        ]
        if met:
            self.work.fill("where", SequenceNode(tuple(met), self.work.span))

    def _numeric(self) -> None:
        if self._spaces() & {"registers", "tensor_memory"}:
            numeric = self.top.inner("numeric")
            numeric.fill("accumulate", "f32")
            self.top.store("numeric", numeric)

    def _spaces(self) -> set[str]:
        return {port.text("space") for port in self.ports.values()}

    def _archs(self) -> SequenceNode | None:
        spaces = self._spaces()
        if "tensor_memory" in spaces:
            arch = "sm_100a"
        elif "registers" in spaces or any(_is_wgmma(line) for line in self.lines):
            arch = "sm_90a"
        else:
            return None
        return SequenceNode((ScalarNode(arch, True, self.top.span),), self.top.span)

    # -- roles ---------------------------------------------------------------------------------

    def _role(self, name: str, role: ClauseTable) -> None:
        if role.text("scheduler") == "true" or self.work.text("direction") == "out":
            return
        fragments = [
            port
            for port in self.ports.values()
            if port.text("role") == name and port.text("fragment")
        ]
        shape = fragments[0].texts("shape") if fragments else ()
        wgmma = any(_is_wgmma(line) for line in self.lines if line.role == name)
        if len(shape) == 2:
            role.fill("warps", f"{_factor(shape[0])} // {ROWS_PER_WARP}")
        if wgmma:
            role.fill("converged", "warpgroup")
        registers = role.inner("registers")
        if "min" not in registers:
            registers.fill("want", WANT_FRAGMENT if fragments else WANT_OTHERS)
            registers.fill("min", _estimate(fragments))
        if wgmma and len(shape) == 2:
            registers.fill("entry", f"{_factor(shape[1])} // 2 + 26")
        role.store("registers", registers)

    def _only_role(self) -> str:
        names = list(self.roles)
        return names[0] if len(names) == 1 else ""

    def _warps(self, role: str) -> str:
        return self.roles[role].text("warps") if role in self.roles else ""

    # -- ports ---------------------------------------------------------------------------------

    def _port_basics(self, name: str, port: ClauseTable) -> None:
        out = _first(line for line in self.lines if name in _names(_OUT, line))
        use = out or _first(line for line in self.lines if name in _names(_IN, line))
        staged = any(
            line.text.split(" ")[0] in ("acquire", "wait") and name in line.text.split(" ")
            for line in self.lines
        )
        port.fill("space", _space(port, staged))
        if use is not None and port.text("space") != "scalar":
            port.fill("direction", "out" if out else "in", use.span)
        elif port.text("in_place"):
            port.fill("direction", "out")
        port.fill("role", use.role if use else self._only_role(), use.span if use else None)

    def _in_place(self, _: str, port: ClauseTable) -> None:
        other = self.ports.get(port.text("in_place"))
        if port.text("space") != "registers":
            return
        if other is not None:
            port.fill("fragment", other.text("fragment"))
            port.fill("dtype", other.text("dtype") or "f32")
            port.fill("shape", other.get("shape"))
        port.fill("dtype", "f32")

    def _ring(self, name: str, port: ClauseTable) -> None:
        space, out = port.text("space"), port.text("direction") == "out"
        raw = port.text("raw") == "true"
        if space == "counter":
            if out:
                port.fill("arrivals", self._warps(port.text("role")))
            return
        if space not in ("ring", "tensor_memory"):
            return
        lines = [line for line in self.lines if line.role == port.text("role") and line.in_body]
        if not raw:
            one = any(re.fullmatch(rf"commit mma ?-> ?{name}", line.text) for line in lines)
            port.fill("arrivals", "1" if one else self._warps(port.text("role")))
        rate, span = _rate(name, lines, out)
        port.fill("rate", rate, span)
        if space == "ring":
            proxy = _first(line for line in lines if _is_async(line, name, out))
            port.fill("proxy", "async" if proxy else "generic", proxy.span if proxy else None)
            if out and proxy and not raw and self._whole_boxes(name):
                port.fill("tx_bytes", _item_bytes(port), proxy.span)

    def _whole_boxes(self, ring: str) -> bool:
        """Whether only tensor copies fill the ring: they count whole boxes, bulk copies may not."""
        copies = [copy for line in self.lines if (copy := _COPY.fullmatch(line.text))]
        tensors = [self.ports.get(copy.group(1)) for copy in copies if copy.group(2) == ring]
        return all(tensor is not None and "tile" in tensor for tensor in tensors)

    def _tensor_map(self, name: str, port: ClauseTable) -> None:
        """The box of a tensor that is copied into a ring tile, or stored out of one."""
        if port.text("space") != "global" or port.text("scratch") == "true":
            return
        for line in self.lines:
            member = self._other_side(name, line)
            if member is None:
                continue
            shape, tensor = member.texts("shape"), port.texts("shape")
            swizzle = member.text("swizzle")
            tile = port.inner("tile", line.span)
            if len(shape) != len(tensor) or not tile.whole or "box" in tile:
                return
            if "tile" not in port and swizzle in ("", "0"):
                return  # one bulk copy of whole rows: no tensor map
            tile.fill("box", member.get("shape"))
            tile.fill("swizzle", swizzle)
            port.store("tile", tile)
            return

    def _other_side(self, name: str, line: OperationLine) -> ClauseTable | None:
        """The ring tile that an operation moves from or to the tensor `name`."""
        if (copy := _COPY.fullmatch(line.text)) and copy.group(1) == name:
            ring, member = copy.group(2), copy.group(3)
        elif (store := _STORE.fullmatch(line.text)) and store.group(2) == name:
            ring, member = store.group(1), ""
        else:
            return None
        items = ClauseTable(self.ports[ring].get("item") if ring in self.ports else None)
        names = [key.text for key, _ in items.entries]
        chosen = items.get(member or (names[0] if len(names) == 1 else ""))
        return ClauseTable(chosen) if isinstance(chosen, MappingNode) else None

    # -- buffers and named barriers --------------------------------------------------------------

    def _buffer(self, name: str, buffer: ClauseTable) -> None:
        words = [line for line in self.lines if name in re.findall(_NAME, line.text)[1:]]
        if words:
            buffer.fill("role", words[0].role, words[0].span)
        buffer.fill("role", self._only_role())
        for line in self.lines:
            store = _STORE.fullmatch(line.text)
            if not store or store.group(1) != name or store.group(2) not in self.ports:
                continue
            tensor = self.ports[store.group(2)]
            tile = ClauseTable(tensor.get("tile"))
            box, dtype = tile.texts("box"), tensor.text("dtype")
            shares = self._shares(line.role)
            if box and dtype and shares:
                factors = [shares, buffer.text("stages") or "1", *map(_factor, box)]
                buffer.fill("bytes", " * ".join([*factors, f"sizeof({dtype})"]), line.span)
                span = tile.text("swizzle") or "0"
                widest = "128"  # that of an expression is not known yet
                known = span if span.isdigit() else widest
                alignment = SWIZZLE_ALIGNMENT.get(known, PLAIN_ALIGNMENT)
                buffer.fill("align", alignment, line.span)

    def _shares(self, role: str) -> str:
        """How many parts of a role store by themselves."""
        table = self.roles[role]
        warps = _factor(table.text("warps"))
        if not warps or table.text("split") in ("", "role"):
            return "1"
        return warps if table.text("split") == "warp" else f"{warps} // 4"

    def _barrier(self, name: str, barrier: ClauseTable) -> None:
        users = [
            line for line in self.lines if (m := _BARRIER.match(line.text)) and m.group(1) == name
        ]
        roles = list(dict.fromkeys(line.role for line in users))
        if not roles:
            return
        span = users[0].span
        named = tuple(ScalarNode(role, True, span) for role in roles)
        barrier.fill("roles", SequenceNode(named, span), span)
        members = barrier.texts("roles")
        if all(map(self._warps, members)):
            count = " + ".join(f"32 * {_factor(self._warps(role))}" for role in members)
            barrier.fill("count", count, span)


def _space(port: ClauseTable, staged: bool) -> str:
    for space, marks in SPACE_MARKS:
        if any(mark in port for mark in marks):
            return space
    return "tensor_memory" if staged else "global"


def _estimate(fragments: list[ClauseTable]) -> str:
    """Registers per thread before anything is measured: the fragments, and 40 for the rest."""
    held = [port for port in fragments if not port.text("in_place")]
    columns = [
        f"{_factor(port.texts('shape')[1])} // 2" for port in held if port.texts("shape")[1:]
    ]
    return " + ".join([*columns, "40"])


def _names(pattern: re.Pattern[str], line: OperationLine) -> set[str]:
    matched = pattern.match(line.text)
    return {name for name in matched.groups() if name} if matched else set()


def _is_wgmma(line: OperationLine) -> bool:
    return line.text.startswith("mma ") and "->" not in line.text


def _is_async(line: OperationLine, name: str, out: bool) -> bool:
    """Whether TMA or the tensor core touches the stage in this operation."""
    if out:
        copy = _COPY.fullmatch(line.text)
        return bool(copy) and copy.group(2) == name  # type: ignore[union-attr]
    verb, _, rest = line.text.partition(" ")
    return verb in ("mma", "store") and re.match(rf"{name}\b", rest) is not None


def _rate(name: str, lines: list[OperationLine], out: bool) -> tuple[str, Span | None]:
    """Items per work tile, and the operation that begins an item: the repeats around it."""
    verb = "acquire" if out else "wait"
    found = [line for line in lines if line.text == f"{verb} {name}"]
    if not found:
        return "", None
    products = [" * ".join(map(_factor, line.repeats)) or "1" for line in found]
    if len(found) == 1 and len(found[0].repeats) == 1:
        products = [found[0].repeats[0]]
    return " + ".join(products), found[0].span


def _item_bytes(port: ClauseTable) -> str:
    parts = []
    for _, node in ClauseTable(port.get("item")).entries:
        member = ClauseTable(node)
        factors = [*map(_factor, member.texts("shape")), f"sizeof({member.text('dtype')})"]
        parts.append(" * ".join(factors))
    return " + ".join(parts)


def _factor(text: str) -> str:
    """The text as a factor of a product."""
    return text if re.fullmatch(r"\w+", text) or not text else f"({text})"


def _first(lines: Iterable[OperationLine]) -> OperationLine | None:
    return next(iter(lines), None)
