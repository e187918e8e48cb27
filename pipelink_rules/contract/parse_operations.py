"""Parser of roles and of their operations: Block -> Role, `release ab lag 1` -> Operation."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from pipelink_rules.contract.block_parser import Block, ContractSink, clauses
from pipelink_rules.contract.parse_ports import COMPILE_TIME, PER_ITEM
from pipelink_rules.contract.yaml_tree import MappingNode, Node, ScalarNode
from pipelink_rules.diagnostics.diagnostic import PipelinkError
from pipelink_rules.diagnostics.wording import list_of, similar_name_help
from pipelink_rules.expression import expression
from pipelink_rules.model.contract import (
    Buffer,
    NamedBarrier,
    Operation,
    Port,
    Registers,
    Repeat,
    Role,
    Work,
)
from pipelink_rules.model.operation import SOURCES, VERBS, operations, target_kinds
from pipelink_rules.model.source_span import Expr, Span

CONVERGED = ("thread", "warp", "warpgroup", "role")
SPLIT = ("role", "warpgroup", "warp")

ROLE_KEYS = clauses("scheduler warps converged split registers prologue body epilogue")
REGISTERS_KEYS = clauses("min want entry")
# What a role may do outside its work tiles, where the glue calls the runtime for it.
OUTSIDE = frozenset({"await", "fence", "sync", "arrive"})
REPEAT_KEYS = clauses("repeat* body*")
LARGEST_COUNT = 64  # of `await` and `lag`
DEEPEST_REPEAT = 4

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# What follows the verb: parts of an Operation.
_TARGET = rf"(?P<target>{_NAME})"
_SOURCE = rf"(?P<source>{_NAME})"
_FORMS = {
    "copy": (rf"{_SOURCE} ?-> ?{_TARGET}\.(?P<member>{_NAME})",),
    "commit": (rf"(?:(?P<source>mma) ?-> ?)?{_TARGET}",),
    "mma": (rf"{_TARGET}(?: ?-> ?{_SOURCE})?",),
    "await": (
        "(?P<target>mma) (?P<count>[0-9]+)",
        "(?P<target>store) (?P<count>[0-9]+)(?P<full> full)?",
        "(?P<target>tensor (?:load|store))",
    ),
    "release": (rf"{_TARGET}(?: lag (?P<lag>[0-9]+))?",),
    "store": (rf"{_TARGET} ?-> ?{_SOURCE}",),
    "fence": ("(?P<target>async|tensor before|tensor after|global)",),
    "wait_until": (rf"{_TARGET} (?P<threshold>.+)",),
}
_SPACES = {
    "tensor_memory out": "tensor-memory out",
    "tensor_memory in": "tensor-memory in",
    "registers out": "register out",
    "registers in": "register in",
    "scalar in": "scalar",
}


@dataclass(frozen=True)
class OperationScope:
    """The names that the operations of one role may use."""

    role: str
    ports: Mapping[str, Port]
    buffers: Mapping[str, Buffer]
    barriers: Mapping[str, NamedBarrier]
    roles: Collection[str]  # all declared roles
    sink: ContractSink

    def kind(self, name: str) -> str:
        """`ring out`, `buffer`, `named barrier`, ...; "" where the name is not declared."""
        if name in self.ports:
            return f"{self.ports[name].space} {self.ports[name].direction}"
        return (
            "buffer" if name in self.buffers else "named barrier" if name in self.barriers else ""
        )

    def owners(self, name: str) -> tuple[str, ...]:
        """The roles that may use it."""
        if name in self.ports:
            return (self.ports[name].role,)
        return (self.buffers[name].role,) if name in self.buffers else self.barriers[name].roles

    def span(self, name: str) -> Span | None:
        """Where it is declared."""
        item = self.ports.get(name) or self.buffers.get(name) or self.barriers.get(name)
        return item.span if item else None


def parse_role(name: str, block: Block, work: Work | None, scope: OperationScope) -> Role:
    scheduler = block.flag("scheduler", False)
    for key in ("warps", "body"):
        if scheduler:
            block.refuse(key, "a tile scheduler runs inside the other roles")
        else:
            block.require(key, "which runs on its own warps")
    if scheduler:
        for key in ("registers", "converged", "split", "prologue", "epilogue"):
            block.refuse(key, "a tile scheduler runs inside the other roles")
        if work is not None and work.direction == "in":
            block.refuse(
                "scheduler",
                "the work of this component is an input",
                "set `direction: out` of `work`",
            )
    bodies = {
        key: _parse_nodes(block, key, block.items(key, "operations"), scope, 0)
        for key in ("prologue", "body", "epilogue")
    }
    mma = any(op.wgmma for op in operations(bodies["body"]))
    return Role(
        name=name,
        warps=block.expr("warps", COMPILE_TIME) or Expr("1"),
        converged=block.word("converged", CONVERGED, "warp"),
        split=block.word("split", SPLIT, "role"),
        registers=_parse_registers(block, mma),
        scheduler=scheduler,
        uses_mma=mma,
        span=block.span,
        spans=tuple(sorted(block.value_spans.items())),
        **bodies,
    )


def _parse_registers(block: Block, mma: bool) -> Registers:
    least = Expr("24")
    inner = block.block("registers", REGISTERS_KEYS)
    if inner is None:
        return Registers(least, least, least)
    if mma:
        inner.require(
            "entry",
            "which issues wgmma",
            "add `entry: N // 2 + 26`, the measured count for m64nN with an f32 accumulator",
        )
    least = inner.expr("min", COMPILE_TIME) or least
    want = inner.expr("want", COMPILE_TIME) or least
    # Without wgmma any entry count compiles: setmaxnreg raises it before the role starts.
    entry = inner.expr("entry", COMPILE_TIME) or Expr("24")
    probed = "min" not in inner or inner.is_derived("min")
    return Registers(least, want, entry, inner.span, probed)


def _parse_nodes(
    block: Block, key: str, nodes: tuple[Node, ...], scope: OperationScope, depth: int
) -> tuple[Operation | Repeat, ...]:
    found: list[Operation | Repeat] = []
    for node in nodes:
        if isinstance(node, ScalarNode):
            if (op := _parse_operation(node, scope, key)) is not None:
                found.append(op)
        elif isinstance(node, MappingNode):
            if (repeat := _parse_repeat(block, key, node, scope, depth)) is not None:
                found.append(repeat)
        else:
            block.wrong(node, "an operation or a repeat", f"this part of {block.named(key)}")
    return tuple(found)


def _parse_repeat(
    block: Block, key: str, node: MappingNode, scope: OperationScope, depth: int
) -> Repeat | None:
    inner = Block(block.sink, node, "a repeat", node.span, REPEAT_KEYS)
    if depth >= DEEPEST_REPEAT:
        block.sink.add("PL0014", f"repeats are nested more than {DEEPEST_REPEAT} deep", node.span)
        return None
    count = inner.expr("repeat", PER_ITEM)
    nodes = inner.items("body", "operations")
    read = _parse_nodes(block, key, nodes, scope, depth + 1)
    return Repeat(count or Expr("1"), read, inner.keys.get("repeat", node.span))


def _parse_operation(node: ScalarNode, scope: OperationScope, key: str) -> Operation | None:
    sink = scope.sink
    text = " ".join(node.text.split())
    verb = text.split(" ")[0] if text else ""
    if verb not in VERBS:
        sink.add(
            "PL0014",
            f"unknown operation `{text[:60]}`" if text else "empty operation",
            node.span,
            expected="one of " + ", ".join(VERBS),
            found=verb[:40],
            suggestions=similar_name_help(verb, VERBS),
        )
        return None
    indexed = split_index(text)
    op = _parse(verb, indexed.text)
    if op is None:
        sink.add(
            "PL0014",
            f"malformed operation `{text[:60]}`",
            node.span,
            expected=VERBS[verb][0],
            found=text[:60],
        )
        return None
    op = _parse_index(node, scope, replace(op, span=node.span), indexed)
    if max(op.count, op.lag) > LARGEST_COUNT:
        sink.add(
            "PL0017",
            f"count in `{text}` is too large",
            node.span,
            expected=f"at most {LARGEST_COUNT}",
            found=str(max(op.count, op.lag)),
        )
    if key != "body" and (verb not in OUTSIDE or op.target == "mma"):
        sink.add(
            "PL0018",
            f"`{text}` requires a work tile, which `{key}` of role `{scope.role}` does not have",
            node.span,
            suggestions=("move it to `body`",),
        )
    _check_target(node, scope, op)
    return op


def _parse(verb: str, text: str) -> Operation | None:
    for form in _FORMS.get(verb, (_TARGET,)):
        if matched := re.fullmatch(f"{verb} {form}", text):
            part = matched.groupdict(default="")
            threshold = part.get("threshold")
            return Operation(
                verb,
                part["target"],
                count=int(part.get("count", "0")[:6]),
                lag=int(part.get("lag", "")[:6] or 0),
                member=part.get("member", ""),
                source=part.get("source", ""),
                full=bool(part.get("full")),
                threshold=Expr(threshold) if threshold else None,
            )
    return None


def _check_target(node: ScalarNode, scope: OperationScope, op: Operation) -> None:
    accepted = target_kinds(op)
    if accepted and _check_name(node, scope, op.verb, op.target, accepted) and op.verb == "copy":
        members = [member.name for member in scope.ports[op.target].members]
        if members and op.member not in members:
            span = _part(node, f"{op.target}.{op.member}")
            items = f"items of `{op.target}`"
            scope.sink.unknown("PL0015", "tile", op.member, items, span, members)
    if op.verb in SOURCES and op.source:
        _check_name(node, scope, op.verb, op.source, (SOURCES[op.verb],))


def _check_name(
    node: ScalarNode, scope: OperationScope, verb: str, name: str, accepted: tuple[str, ...]
) -> bool:
    sink = scope.sink
    everything = {**scope.ports, **scope.buffers, **scope.barriers}
    usable = [other for other in everything if scope.kind(other) in accepted]
    kind = scope.kind(name)
    span = _part(node, name)
    if not kind:
        if not sink.incomplete:  # else it may be declared where the file cannot be read
            sink.add(
                "PL0015",
                f"unknown name `{name}` in operation `{verb}`",
                span,
                expected=_kinds(accepted),
                found=name,
                suggestions=similar_name_help(name, usable, f"`{verb}` applies to"),
            )
        return False
    declared = (scope.span(name), "declared here")
    if kind not in accepted:
        space, _, direction = kind.rpartition(" ")
        other = {"in": "out", "out": "in"}.get(direction, "")
        reversed_port = f"{space} {other}" in accepted
        sink.add(
            "PL0015",
            f"`{verb}` requires an {other} port, but `{name}` is an {direction} port"
            if reversed_port
            else f"`{verb}` does not apply to `{name}`",
            span,
            declared,
            expected=_kinds(accepted),
            found=_kinds((kind,)),
            suggestions=similar_name_help(name, usable, f"`{verb}` applies to"),
        )
        return False
    if scope.role not in scope.owners(name):
        if not set(scope.owners(name)) <= set(scope.roles):
            return False  # the declaration names an unknown role, which is reported there
        owners = list_of(scope.owners(name), "and")
        sink.add(
            "PL0015",
            f"role `{scope.role}` uses `{name}`, which belongs to role {owners}",
            span,
            declared,
            suggestions=(
                (f"add `{scope.role}` to the roles of `{name}`",)
                if kind == "named barrier"
                else (f"move the operation to role {owners}",)
            ),
        )
        return False
    return True


def _kinds(kinds: tuple[str, ...]) -> str:
    """Return `a ring in port, a buffer or a named barrier`."""
    *others, last = (
        f"a {kind}" if kind in ("buffer", "named barrier") else f"a {_SPACES.get(kind, kind)} port"
        for kind in kinds
    )
    return f"{', '.join(others)} or {last}" if others else last


def _part(node: ScalarNode, word: str) -> Span:
    """Return the span of a word of an operation."""
    at = re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", node.text[1:])
    return _characters(node, at.start() + 1 if at else -1, len(word))


def _inside(node: ScalarNode, text: str) -> Span:
    """Return the span of a part, searched from the end: the verb may contain the same text."""
    return _characters(node, node.text.rfind(text), len(text))


def _characters(node: ScalarNode, start: int, length: int) -> Span:
    offset = 0 if node.plain else 1
    if start < 0 or node.span.length != len(node.text) + 2 * offset:
        return node.span
    return replace(node.span, column=node.span.column + start + offset, length=max(1, length))


_INDEX = r"([A-Za-z_][A-Za-z0-9_]*) ?\[([^\[\]]*)\]"
_AFTER_VERB = re.compile(rf"(\w+ ){_INDEX}()")
_PLACES = {  # elsewhere than behind the verb, or with more behind it
    "copy": re.compile(rf"(copy ){_INDEX}( ?->.*)"),
    "store": re.compile(rf"(store [^\[\]]*-> ?){_INDEX}()"),
    "wait_until": re.compile(rf"(wait_until ){_INDEX}( .*)"),
}
_WITHOUT = ("await", "fence", "release")


@dataclass(frozen=True)
class Indexed:
    """An operation without its index, and the index."""

    text: str
    name: str = ""  # what is indexed
    parts: tuple[str, ...] = ()


def split_index(text: str) -> Indexed:
    """`read sums[tile, 0]` -> `read sums`, sums, (tile, 0); the text itself where it has none."""
    verb = text.split(" ", 1)[0]
    found = _PLACES.get(verb, _AFTER_VERB).fullmatch(text)
    if found is None or verb in _WITHOUT:
        return Indexed(text)
    before, name, index, after = found.groups()
    return Indexed(f"{before}{name}{after}", name, tuple(part.strip() for part in _at_top(index)))


def _at_top(text: str) -> list[str]:
    """The parts between commas that are in no parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _parse_index(
    node: ScalarNode, scope: OperationScope, op: Operation, indexed: Indexed
) -> Operation:
    """Return the operation with its index and threshold; report their unknown names."""
    sink = scope.sink
    if op.threshold is not None:
        threshold = _expression(sink, node, op.threshold.text, "the threshold")
        op = replace(op, threshold=threshold or Expr("0"))
    name = op.source if op.verb in ("copy", "store") else op.target
    port = scope.ports.get(name)
    counter = port is not None and port.space == "counter"
    accepted = counter or (port is not None and port.scratch)
    written = f"{name}[{', '.join(indexed.parts)}]" if indexed.name else name
    if indexed.name and not accepted and scope.kind(indexed.name):
        sink.add(
            "PL0015",
            f"`{indexed.name}` does not take an index: it is not a counter or scratch memory",
            node.span,
            (port.span if port else None, "declared here"),
            expected=indexed.name,
            found=f"{indexed.name}[{', '.join(indexed.parts)}]",
        )
        return op
    most = 1 if counter else 2
    if accepted and not 1 <= len(indexed.parts) <= most:
        what = "counter" if counter else "scratch memory"
        sink.add(
            "PL0015",
            f"{'malformed' if indexed.name else 'missing'} index of {what} `{name}`",
            node.span,
            expected=f"{name}[FIELD]" + ("" if counter else f" or {name}[FIELD, SLICE]"),
            found=written,
        )
        return op
    if not accepted:
        return op
    parts = [_expression(sink, node, part, "the index") for part in indexed.parts]
    first = indexed.parts[0]
    if parts[0] is not None and sink.known.get(first) != "field" and not sink.incomplete:
        sink.add(
            "PL0031",
            f"invalid index `{first}` of `{name}`",
            _inside(node, first),
            expected="a work field",
            found=first,
        )
    return replace(op, index=tuple(part for part in parts if part is not None))


def _expression(sink: ContractSink, node: ScalarNode, text: str, what: str) -> Expr | None:
    expr = Expr(text, _inside(node, text))
    try:
        expression.check_syntax(expr)
    except PipelinkError as problem:
        sink.adopt(problem)
        return None
    sink.check_names(expr, what, PER_ITEM)
    return expr


_WRITTEN = {  # operations that are written with more than their target
    "copy": "copy {0.source} -> {0.target}.{0.member}",
    "store": "store {0.target} -> {0.source}",
    "mma": "mma {0.target} -> {0.source}",
    "commit": "commit {0.source} -> {0.target}",
    "release": "release {0.target} lag {0.lag}",
    "wait_until": "wait_until {0.target}{0.piece} {0.threshold}",
}


def format_operation(op: Operation) -> str:
    """Return the operation as it is written in a contract."""
    if op.verb == "await" and not op.target.startswith("tensor"):
        return f"await {op.target} {op.count}" + (" full" if op.full else "")
    if op.verb in _WRITTEN and (op.source or op.verb not in ("mma", "commit")):
        return _WRITTEN[op.verb].format(op)
    return f"{op.verb} {op.target}{op.piece}".strip()
